//! (to come) glob.

//! (to come) prefix.

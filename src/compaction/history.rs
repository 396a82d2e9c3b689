//! (to come) history.

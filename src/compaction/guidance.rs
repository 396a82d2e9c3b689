//! (to come) guidance.

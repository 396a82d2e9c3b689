//! (to come) recall.

//! (to come) phase.

//! (to come) handoff.

//! (to come) zones.

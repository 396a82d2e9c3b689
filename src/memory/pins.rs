//! (to come) pins.

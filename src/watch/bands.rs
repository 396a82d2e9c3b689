//! (to come) bands.

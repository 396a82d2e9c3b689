//! (to come) shape.

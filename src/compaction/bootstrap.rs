//! (to come) bootstrap.

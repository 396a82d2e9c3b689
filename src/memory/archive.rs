//! (to come) archive.

//! Archived tool responses.

//! Totals of a transcript up to an offset.

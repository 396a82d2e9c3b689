//! Totals of a transcript, from the stored offset on.

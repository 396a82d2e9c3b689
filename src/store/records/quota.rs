//! Quota figures and their refresh.

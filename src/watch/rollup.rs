//! (to come) rollup.

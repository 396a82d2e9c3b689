//! The shape log, its rollup, and the session anchor.

//! (to come) root_dir.

//! The only file that names libgit2 or starts git.

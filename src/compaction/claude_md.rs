//! (to come) claude_md.

//! Thinking tokens of recent turns.

//! History, snapshot, handoff, prefix and bootstrap state.

//! (to come) session_context.

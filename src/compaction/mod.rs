//! What happens around /compact: guidance before, memory and learning after.

pub mod bootstrap;
pub mod claude_md;
pub mod follow_ups;
pub mod guidance;
pub mod handoff;
pub mod history;
pub mod prefix;
pub mod regret;
pub mod session_context;

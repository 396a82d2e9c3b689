//! Arguments of the two lanes that do not pass through clap, for their help alone.

/// Arguments of `si hook`.
#[derive(Debug, clap::Args)]
pub struct HookArgs {
    /// The hook, as Claude Code spells it (PostToolUse) or as here: session-start, pre-compact, post-tool-use,
    /// user-prompt-submit, bootstrap, pin-inject, token-budget, tool-archive, suggest-compact, task-change
    pub name: String,
}

/// Arguments of `si statusline`.
#[derive(Debug, clap::Args)]
pub struct StatuslineArgs {
    /// Print each field's name, value, source and cost instead of the rows
    #[arg(long)]
    pub explain: bool,
    /// Render a built-in sample session in each zone, without reading stdin
    #[arg(long)]
    pub preview: bool,
}

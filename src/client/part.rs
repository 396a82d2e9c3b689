//! What `si hook` is called with: the client's events and their parts, by the names in the registrations.

/// Everything that `si hook` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Bootstrap, pins and resume block.
    SessionStart,
    /// Bootstrap alone.
    Bootstrap,
    /// Pins alone.
    PinInject,
    /// Guidance for the summarizer.
    PreCompact,
    /// Budget, archive and suggestion.
    PostToolUse,
    /// Counting and learning alone.
    TokenBudget,
    /// Archiving alone.
    ToolArchive,
    /// The suggestion alone.
    SuggestCompact,
    /// The task-change hint.
    UserPromptSubmit,
}

impl Part {
    /// Reads a name as the command line or the client spells it.
    pub fn parse(name: &str) -> Option<Part> {
        Some(match name {
            "session-start" | "SessionStart" => Part::SessionStart,
            "bootstrap" => Part::Bootstrap,
            "pin-inject" => Part::PinInject,
            "pre-compact" | "PreCompact" => Part::PreCompact,
            "post-tool-use" | "PostToolUse" => Part::PostToolUse,
            "token-budget" => Part::TokenBudget,
            "tool-archive" => Part::ToolArchive,
            "suggest-compact" => Part::SuggestCompact,
            "user-prompt-submit" | "UserPromptSubmit" | "task-change" => Part::UserPromptSubmit,
            _ => return None,
        })
    }

    /// The name in the debug log.
    pub fn source(self) -> &'static str {
        match self {
            Part::SessionStart | Part::Bootstrap => "bootstrap",
            Part::PinInject => "pin-inject",
            Part::PreCompact => "pre-compact",
            Part::PostToolUse | Part::TokenBudget => "token-budget",
            Part::ToolArchive => "tool-archive",
            Part::SuggestCompact => "suggest-compact",
            Part::UserPromptSubmit => "task-change",
        }
    }
}

//! The table: one row for each key of the configuration, and the presets.

use serde_json::{Map, Value};

use super::Config;
use super::services::ServiceHealth;
use super::table::*;

/// The sections of the file, in the order of the form, and what they are called there.
pub static SECTIONS: &[(&str, &str)] = &[
    ("statusline", "Status line"),
    ("compact", "Compact"),
    ("continue", "Continue"),
    ("taskChange", "Task change detection"),
    ("shape", "Shape tracker"),
    ("toolArchive", "Tool archive"),
    ("pins", "Pins"),
    ("learn", "Learning"),
    ("bootstrap", "Session start"),
    ("hooks", "Hooks"),
    ("debug", "Debug"),
];

/// Layouts of the status line by name. `newline` begins a row.
#[rustfmt::skip]
pub static PRESETS: &[(&str, &[&str])] = &[
    ("minimal", &["tokens"]),
    ("standard", &["model", "project", "tokens", "newline", "task"]),
    ("oneline", &["tokens", "compactAge", "compactCost", "model", "project", "branch", "task"]),
    ("verbose", &[
        "tokens", "compactAge", "compactCost", "newline",
        "session", "sessionId", "tools", "costSaved", "tokenFlow", "cacheHit", "newline",
        "blockUsage", "weekUsage", "cwd", "newline",
        "model", "project", "branch", "diffstat", "task",
    ]),
    ("verbose-cache", &[
        "tokens", "compactAge", "compactCost", "newline",
        "session", "sessionId", "tools", "costSaved", "tokenFlow", "cacheHit", "cacheTokens", "newline",
        "blockUsage", "weekUsage", "cwd", "newline",
        "model", "project", "task",
    ]),
];

/// The layout of a preset; none for a name that is no preset.
pub fn preset(name: &str) -> Option<&'static [&'static str]> {
    PRESETS.iter().find(|(known, _)| *known == name).map(|(_, fields)| *fields)
}

/// The layout where nothing else names one.
pub const DEFAULT_PRESET: &str = "verbose";

const TEMPLATE_FIELDS: &str = r#"["model","project","branch","issue","diffstat","tokens","newline","tools","session","cost","compactAge","deploy","task"]"#;
const DROP_GLOBS: [&str; 6] = ["**/.env", "**/.env.*", "**/*secret*", "**/credentials*", "**/*.pem", "**/*.key"];

/// More tokens than any window will hold: a bound that only keeps nonsense out.
const MANY: u64 = 1_000_000_000;

#[rustfmt::skip]
keys! {
    /// The status line.
    Statusline at statusline, "statusline" {
        enabled: bool = true, "enabled", "Show our rows",
            "Off leaves the previous status line command alone on the screen.",
            switch().vars(&[var("CLAUDE_STATUSLINE_NO_INTEL", Accepts::TurnsOff)]);
        preset: String = DEFAULT_PRESET.into(), "preset", "Preset",
            "Which fields are shown, as a named layout; `statusline.fields` beats it.",
            word(&["minimal", "standard", "oneline", "verbose", "verbose-cache", ""]);
        fields: Vec<String> = Vec::new(), "fields", "Fields",
            "The fields in order; `newline` begins a row. Beats `statusline.preset`.",
            list().template(TEMPLATE_FIELDS).vars(&[var("CLAUDE_STATUSLINE_PRESET", Accepts::Preset), var("CLAUDE_STATUSLINE_FIELDS", Accepts::Commas)]);
        token_source: String = "auto".into(), "tokenSource", "Token source",
            "Where the token count comes from: `auto` takes the best there is, the others force one.",
            word(&["auto", "transcript", "estimate"]).vars(&[var("CLAUDE_STATUSLINE_TOKEN_SOURCE", Accepts::Value)]);
        max_task_length: usize = 70, "maxTaskLength", "Task length",
            "Columns that the task may take.", count(4, 1000);
        separator: String = " · ".into(), "separator", "Separator",
            "What stands between two fields.", text().vars(&[var("CLAUDE_STATUSLINE_SEP_INLINE", Accepts::Value)]);
        colors: bool = true, "colors", "Colours",
            "Colours on the status line.",
            switch().vars(&[var("NO_COLOR", Accepts::AnythingTurnsOff), var("CLAUDE_STATUSLINE_NO_COLOR", Accepts::TurnsOff)]);
        context_cap: Option<f64> = None, "contextCap", "Context window",
            "Tokens that count as a full window. Not set: what Claude Code says, else what the model is known for.",
            number(1.0, 9.0e15).unset("auto");
        task_stale_hours: f64 = 12.0, "taskStaleHours", "Task stale after (hours)",
            "From this age on, the task of session-context.md is marked as stale.", number(0.0, 87_600.0);
        thinking_min_display: u64 = 5000, "thinkingMinDisplay", "Thinking shown from",
            "Thinking tokens below this are not shown.", count(0, MANY);
        quota: bool = true, "quota", "Quota look-ups",
            "Ask the service for the 5-hour and the weekly quota where Claude Code does not send them.", switch();
        prev_command: Option<String> = None, "prevCommand", "Previous command",
            "The command whose rows are shown beside ours; empty for none. Not set: the one that was there at installation.",
            text().unset("as installed");
        prev_timeout_ms: u64 = 2000, "prevTimeoutMs", "Previous command limit (ms)",
            "How long the previous command may take.", count(50, 60_000);
        service_health: Vec<ServiceHealth> = Vec::new(), "serviceHealth", "Services",
            "Services for the `health` field: a list of {name, url, ttlSec (30), timeoutMs (2000)}.", services();
        per_project: Map<String, Value> = Map::new(), "perProject", "Status line per project",
            "Keys of this section for one project: {\"/path/of/project\": {\"preset\": \"minimal\"}}.", projects();
    } plus {
        /// Where the zones begin.
        zones: Zones = Zones::default();
        /// Prices that the user set.
        prices: Prices = Prices::default();
    }

    /// Zone limits in tokens: the base that learning moves. Never falling from left to right.
    Zones at statusline.zones, "statusline.zones" {
        yellow: u64 = 200_000, "yellow", "Yellow zone", "Tokens from which the yellow zone begins: compact between tasks.",
            number(1.0, 9.0e15).template("200000");
        orange: u64 = 300_000, "orange", "Orange zone", "Tokens from which the orange zone begins: compact soon.",
            number(1.0, 9.0e15).template("300000");
        red: u64 = 400_000, "red", "Red zone", "Tokens from which the red zone begins: compact now.",
            number(1.0, 9.0e15).template("400000");
    } plus {
        /// Which of yellow, orange and red the user chose.
        set: [bool; 3] = [false; 3];
    }

    /// Dollars per million tokens, used for every model where the user set them; none: the price of each message's model.
    Prices at statusline.prices, "statusline.prices" {
        input: Option<f64> = None, "input", "Price of input", "Dollars per million input tokens, for every model.",
            number(0.0, 1.0e6).template("15").not_in_form().unset("by model");
        cache_creation: Option<f64> = None, "cache_creation", "Price of cache writes", "Dollars per million tokens written to the cache, for every model.",
            number(0.0, 1.0e6).template("18.75").not_in_form().unset("by model");
        cache_read: Option<f64> = None, "cache_read", "Price of cache reads", "Dollars per million tokens read from the cache, for every model.",
            number(0.0, 1.0e6).template("1.5").not_in_form().unset("by model");
        output: Option<f64> = None, "output", "Price of output", "Dollars per million output tokens, for every model.",
            number(0.0, 1.0e6).template("75").not_in_form().unset("by model");
    }

    /// Suggestions and guidance.
    Compact at compact, "compact" {
        threshold: u64 = 50, "threshold", "First advisory after (calls)",
            "Tool calls before the first advisory to compact.", count(1, 10_000).vars(&[var("COMPACT_THRESHOLD", Accepts::Value)]);
        autoblock: bool = true, "autoblock", "Compact suggestions",
            "Off silences every suggestion to compact. Nothing is ever blocked.",
            switch().vars(&[var("CLAUDE_COMPACT_AUTOBLOCK", Accepts::Zero)]);
        memory_offload: bool = true, "memoryOffload", "Memory offload",
            "Ask the model to write detail into its memory files before a compaction.",
            switch().vars(&[var("CLAUDE_COMPACT_MEMORY_OFFLOAD", Accepts::Zero)]);
        stable_prefix: bool = true, "stablePrefix", "Stable prefix",
            "Leave figures, dates and ids out of what the model sees, so that the prompt cache keeps hitting.",
            switch().vars(&[var("CLAUDE_COMPACT_STABLE_PREFIX", Accepts::ZeroOne)]);
        feedback: String = "stderr".into(), "feedback", "Feedback channel",
            "How a suggestion reaches the model: `stderr` as hook feedback, `context` as additional context without the look of an error.",
            word(&["stderr", "context"]);
    }

    /// The resume block.
    Continue at r#continue, "continue" {
        after_compact: bool = true, "afterCompact", "Resume after compact",
            "Hand the task over a compaction and resume it.", switch();
        echo: bool = true, "echo", "Resume echo",
            "Ask the model to repeat the resume banner at the top of its next reply.", switch();
    }

    /// The task-change detector.
    TaskChange at task_change, "taskChange" {
        enabled: bool = true, "enabled", "Task change hints",
            "Hint at /compact or /clear when a prompt looks like another task.",
            switch().vars(&[var("CLAUDE_TASK_CHANGE", Accepts::Zero)]);
        min_tokens: u64 = 100_000, "minTokens", "Hints from (tokens)",
            "No hint while the context holds fewer tokens.", count(0, MANY);
        same_domain_score: f64 = 0.5, "sameDomainScore", "Same task from",
            "From this score on a prompt belongs to the task at hand.", number(0.0, 1.0);
        different_domain_score: f64 = 0.2, "differentDomainScore", "Other task below",
            "Below this score the hint is /clear instead of /compact.", number(0.0, 1.0);
        conversational_max_len: usize = 120, "conversationalMaxLen", "Conversation up to (characters)",
            "Shorter prompts that name no file count as conversation.", count(0, 100_000);
        recent_hours: f64 = 24.0, "recentHours", "Recent commits (hours)",
            "Files of commits of the last hours belong to the task at hand.", number(0.0, 8760.0);
        transcript_turns: usize = 20, "transcriptTurns", "Recent turns",
            "Files named in the last turns belong to the task at hand.", count(0, 10_000);
        semantic_fallback: bool = false, "semanticFallback", "Ask a small model",
            "Where the score is unclear, let `claude --print` decide.", switch();
        semantic_timeout_ms: u64 = 3000, "semanticTimeoutMs", "Small model limit (ms)",
            "How long the small model may take.", count(100, 30_000);
        haiku_model: String = "claude-haiku-4-5".into(), "haikuModel", "Small model",
            "Which model decides.", text();
        prompt: bool = true, "prompt", "Prompt (unused)",
            "Kept for configurations of the JavaScript original; does nothing.", switch().not_in_form();
        prompt_timeout: u64 = 20, "promptTimeout", "Prompt limit (unused)",
            "Kept for configurations of the JavaScript original; does nothing.", count(0, 86_400).not_in_form();
    }

    /// The shape log and its analysis.
    Shape at shape, "shape" {
        root_dir_depth: usize = 2, "rootDirDepth", "Folder depth",
            "Folders of a path that name a work area: 2 makes `src/auth` of `src/auth/login.ts`.",
            count(1, 5).clamped().vars(&[var("CLAUDE_SHAPE_ROOT_DIR_DEPTH", Accepts::Value)]);
        max_entries: usize = 200, "maxEntries", "Entries kept",
            "Tool calls that the shape log keeps.", count(50, 2000).clamped();
        scoring: String = "recency".into(), "scoring", "Scoring",
            "How a work area is rated: by when it was last touched, by how often, or both.",
            word(&["recency", "hybrid", "frequency"]).vars(&[var("CLAUDE_SHAPE_SCORING", Accepts::Value)]);
        warm_score_cutoff: f64 = 0.4, "warmScoreCutoff", "Warm from",
            "From this score on a work area is warm; below it is safe to drop.", number(0.01, 0.799).clamped();
        persist_across_compacts: bool = true, "persistAcrossCompacts", "Carry over compactions",
            "Keep a roll-up of the work areas when the context is compacted.",
            switch().vars(&[var("CLAUDE_SHAPE_PERSIST", Accepts::ZeroOne)]);
        preserve_globs: Vec<String> = Vec::new(), "preserveGlobs", "Always preserve",
            "Paths that are never listed as safe to drop, as globs.", list();
        drop_globs: Vec<String> = DROP_GLOBS.map(String::from).into(), "dropGlobs", "Never store",
            "Paths that are never archived and never named to the model, as globs: secrets.", list();
        per_project: Map<String, Value> = Map::new(), "perProject", "Shape per project",
            "Keys of this section for one project: {\"/path/of/project\": {\"warmScoreCutoff\": 0.65}}. Its globs are added to the others.", projects();
    } plus {
        /// Anchors from git history.
        git_nexus: GitNexus = GitNexus::default();
    }

    /// Anchors from git history: the files that change most.
    GitNexus at shape.git_nexus, "shape.gitNexus" {
        enabled: bool = true, "enabled", "Git anchors",
            "Protect the files that git history says change most.", switch();
        since_days: u64 = 90, "sinceDays", "Anchor history (days)", "How far back history is read.", count(1, 3650);
        limit: usize = 20, "limit", "Anchors kept", "How many files are anchors.", count(1, 500);
        inject_at_start: bool = false, "injectAtStart", "Name anchors at start",
            "Name the anchors to the model when a session starts.", switch();
        inject_limit: usize = 10, "injectLimit", "Anchors named", "How many are named at most.", count(1, 500);
        refresh_on_compact: bool = true, "refreshOnCompact", "Renew anchors on compact",
            "Read history anew before a compaction.", switch();
    }

    /// The tool-response archive.
    ToolArchive at tool_archive, "toolArchive" {
        enabled: bool = true, "enabled", "Archive tool results",
            "Keep large tool results, for `si expand`.", switch().vars(&[var("CLAUDE_TOOL_ARCHIVE", Accepts::ZeroOne)]);
        threshold_chars: usize = 4096, "thresholdChars", "Archive from (characters)",
            "Smaller results are not kept.", count(1, 10_485_760).vars(&[var("CLAUDE_TOOL_ARCHIVE_THRESHOLD", Accepts::Value)]);
        max_per_session: usize = 200, "maxPerSession", "Results per session",
            "Beyond this the oldest go.", count(1, 100_000);
        ttl_days: f64 = 7.0, "ttlDays", "Results kept (days)",
            "Older results are removed.", number(0.01, 3650.0);
    }

    /// Pins.
    Pins at pins, "pins" {
        enabled: bool = true, "enabled", "Bring pins back",
            "Bring pinned text back after a compaction.", switch();
    }

    /// Learning from past compactions.
    Learn at learn, "learn" {
        enabled: bool = true, "enabled", "Learn from compactions",
            "Record compactions and move the zones to your own habit.", switch();
        announce: bool = false, "announce", "Announce learned zones",
            "Say so when learned zones move.", switch().vars(&[var("CLAUDE_LEARN_ANNOUNCE", Accepts::ZeroOne)]);
    }

    /// What session start may set up.
    Bootstrap at bootstrap, "bootstrap" {
        config: bool = true, "config", "Seed the config file",
            "Write an empty configuration file where there is none.", switch().next_session();
        statusline: bool = true, "statusline", "Wire the status line",
            "Put the status line into settings.json, once.", switch().next_session();
        session_context: bool = true, "sessionContext", "Seed session-context.md",
            "Make the project's session-context.md and fill its placeholders from git.", switch().next_session();
        claude_md: bool = true, "claudeMd", "CLAUDE.md block",
            "Keep our block of rules in the project's CLAUDE.md.", switch().next_session();
    }

    /// Which hooks answer.
    Hooks at hooks, "hooks" {
        session_start: bool = true, "sessionStart", "Hook SessionStart", "Off: nothing at all happens at session start.", switch();
        pre_compact: bool = true, "preCompact", "Hook PreCompact", "Off: nothing at all happens before a compaction.", switch();
        post_tool_use: bool = true, "postToolUse", "Hook PostToolUse", "Off: nothing at all happens after a tool call.", switch();
        user_prompt_submit: bool = true, "userPromptSubmit", "Hook UserPromptSubmit", "Off: nothing at all happens on a prompt.", switch();
    }

    /// The debug log.
    Debug at debug, "debug" {
        enabled: bool = false, "enabled", "Debug log",
            "Log every tick with full values.", switch().vars(&[var("CLAUDE_INTEL_DEBUG", Accepts::One)]);
        quiet: bool = false, "quiet", "Errors only",
            "Log errors alone.", switch().vars(&[var("CLAUDE_INTEL_QUIET", Accepts::One)]);
    }
}

//! The configuration.

use serde_json::{Map, Value};

use crate::env::Env;

/// The effective configuration: built-in < legacy file < unified file < environment.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The status line.
    pub statusline: Statusline,
    /// Suggestions and guidance.
    pub compact: Compact,
    /// The resume block.
    pub r#continue: Continue,
    /// The task-change detector.
    pub task_change: TaskChange,
    /// The shape log and its analysis.
    pub shape: Shape,
    /// The tool-response archive.
    pub tool_archive: ToolArchive,
    /// Learning from past compactions.
    pub learn: Learn,
    /// What session start may set up.
    pub bootstrap: Bootstrap,
    /// Pins.
    pub pins: Pins,
    /// Which hooks answer.
    pub hooks: Hooks,
    /// The debug log.
    pub debug: Debug,
}

impl Config {
    /// Loads the effective configuration; never fails.
    pub fn load(_env: &Env) -> Config {
        Config::default()
    }
}

macro_rules! section {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty = $default:expr,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        #[allow(missing_docs)]
        pub struct $name { $(pub $field: $type,)* }
        impl Default for $name { fn default() -> Self { $name { $($field: $default,)* } } }
    };
}

section! { /// The status line.
Statusline {
    preset: String = "verbose".into(),
    fields: Vec<String> = Vec::new(),
    token_source: String = "auto".into(),
    zones: Zones = Zones::default(),
    max_task_length: usize = 70,
    separator: String = " · ".into(),
    colors: bool = true,
    service_health: Vec<ServiceHealth> = Vec::new(),
    prices: Option<Prices> = None,
    thinking_min_display: u64 = 5000,
    context_cap: Option<f64> = None,
    task_stale_hours: f64 = 12.0,
    prev_command: Option<String> = None,
    prev_timeout_ms: u64 = 2000,
    quota: bool = true,
    per_project: Map<String, Value> = Map::new(),
}}
section! { /// Zone limits in tokens; `set` says which the user chose.
Zones { yellow: u64 = 200_000, orange: u64 = 300_000, red: u64 = 400_000, set: [bool; 3] = [false; 3], }}
section! { /// A service whose health is probed.
ServiceHealth { name: String = String::new(), url: String = String::new(), ttl_sec: u64 = 30, timeout_ms: u64 = 2000, }}
section! { /// Dollars per million tokens, set by the user for every model.
Prices { input: f64 = 15.0, cache_creation: f64 = 18.75, cache_read: f64 = 1.5, output: f64 = 75.0, }}
section! { /// Suggestions and guidance.
Compact { threshold: u64 = 50, autoblock: bool = true, memory_offload: bool = true, stable_prefix: bool = true, feedback: String = "stderr".into(), }}
section! { /// The resume block.
Continue { after_compact: bool = true, echo: bool = true, }}
section! { /// The task-change detector.
TaskChange {
    enabled: bool = true, min_tokens: u64 = 100_000, same_domain_score: f64 = 0.5, different_domain_score: f64 = 0.2,
    prompt: bool = true, prompt_timeout: u64 = 20, conversational_max_len: usize = 120, recent_hours: f64 = 24.0,
    transcript_turns: usize = 20, semantic_fallback: bool = false, semantic_timeout_ms: u64 = 3000,
    haiku_model: String = "claude-haiku-4-5".into(),
}}
section! { /// The shape log and its analysis.
Shape {
    root_dir_depth: usize = 2, max_entries: usize = 200, preserve_globs: Vec<String> = Vec::new(),
    drop_globs: Vec<String> = ["**/.env", "**/.env.*", "**/*secret*", "**/credentials*", "**/*.pem", "**/*.key"].map(String::from).into(),
    scoring: String = "recency".into(), warm_score_cutoff: f64 = 0.4, per_project: Map<String, Value> = Map::new(),
    persist_across_compacts: bool = true, git_nexus: GitNexus = GitNexus::default(),
}}
section! { /// Anchors from git history.
GitNexus {
    enabled: bool = true, since_days: u64 = 90, limit: usize = 20, inject_at_start: bool = false, inject_limit: usize = 10,
    refresh_on_compact: bool = true,
}}
section! { /// The tool-response archive.
ToolArchive { enabled: bool = true, threshold_chars: usize = 4096, max_per_session: usize = 200, ttl_days: f64 = 7.0, }}
section! { /// Learning from past compactions.
Learn { enabled: bool = true, announce: bool = false, }}
section! { /// What session start may set up.
Bootstrap { config: bool = true, statusline: bool = true, session_context: bool = true, claude_md: bool = true, }}
section! { /// Pins.
Pins { enabled: bool = true, }}
section! { /// Which hooks answer.
Hooks { session_start: bool = true, pre_compact: bool = true, post_tool_use: bool = true, user_prompt_submit: bool = true, }}
section! { /// The debug log.
Debug { enabled: bool = false, quiet: bool = false, }}

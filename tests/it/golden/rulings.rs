//! For each tag that frees a row: what holds instead, and the test that shows it.

use std::path::Path;

/// One ruling.
pub struct Ruling {
    /// The number of the conflict or bug, or `js-artifact`.
    pub tag: &'static str,
    /// What holds.
    pub rule: &'static str,
    /// The test that shows it, by its function's name.
    pub test: &'static str,
}

const fn ruling(tag: &'static str, rule: &'static str, test: &'static str) -> Ruling {
    Ruling { tag, rule, test }
}

/// All rulings, by number.
#[rustfmt::skip]
pub const RULINGS: &[Ruling] = &[
    ruling("B01", "The result is read from `tool_response`", "a_result_counts_as_the_client_sends_it_and_a_call_once"),
    ruling("B02", "Phase events are read from the output as the client sends it", "the_output_counts_as_the_client_sends_it"),
    ruling("B03", "A git command counts wherever it stands in the line, and by its whole name", "a_command_counts_wherever_it_stands_in_the_line"),
    ruling("B04", "Rows of subagents and all-zero usages say nothing about the context", "what_says_nothing_about_the_context_is_no_context"),
    ruling("B05", "A config that does not parse counts as absent, once", "a_file_that_does_not_parse_counts_as_absent_and_is_reported"),
    ruling("B06", "A settings.json that does not parse is never written", "what_does_not_parse_is_refused_with_its_place_and_nothing_is_half_done"),
    ruling("B07", "Text is put into a file as it is, `$` sequences included", "replacing_takes_text_as_it_is_and_stops_at_the_next_section"),
    ruling("B08", "The former command runs as it was written, backslashes, quotes and dollar signs included", "the_former_status_line_runs_beside_ours_and_comes_back"),
    ruling("B09", "No script is made of the former command; where it is kept, the user alone can read it", "the_former_status_line_is_kept_as_data_and_privately"),
    ruling("B10", "Text under the autofill sentinel is the user's unless we know it", "text_under_the_sentinel_is_the_users_unless_we_know_it"),
    ruling("B11", "A probe is detached and its answer is kept", "a_slow_service_never_holds_the_redraw_and_its_answer_is_kept"),
    ruling("B12", "An anchored file protects its directory by its path in the repository, if it was touched", "an_anchored_file_protects_its_directory_only_when_touched"),
    ruling("B13", "A project's globs, scoring and depth reach every analysis", "a_projects_own_settings_reach_every_analysis"),
    ruling("B14", "Stale tokens never exceed the span", "stale_tokens_never_exceed_the_span"),
    ruling("B15", "Cache figures are stamped though nothing was touched", "cache_figures_are_stamped_though_nothing_was_touched"),
    ruling("B16", "The output style is its name", "the_output_style_is_its_name"),
    ruling("B17", "The workspace's folder stands in for cwd; no empty cells", "the_folder_of_the_workspace_stands_in_for_the_working_folder"),
    ruling("B18", "Values and sections of a wrong type fall back and throw nothing", "a_section_of_a_wrong_type_disturbs_no_variable"),
    ruling("B19", "A dropped index row takes no record along that another row names", "an_older_row_of_a_live_record_takes_nothing_along"),
    ruling("B20", "The project folder is named as the client names it, and the nearest one counts", "an_anchor_below_a_project_belongs_to_the_nearest_one_that_exists"),
    ruling("B21", "Prices are no part of the stored totals: they are applied when shown", "each_message_is_priced_by_its_own_model"),
    ruling("B22", "Compaction figures are this session's own", "a_compaction_of_another_session_says_nothing_about_this_one"),
    ruling("B23", "A second compaction closes and stamps the first window", "a_second_compaction_closes_and_stamps_the_first_window"),
    ruling("B24", "The snapshot's dropped directories are exactly those that were listed", "history_and_snapshot_hold_what_was_listed_and_the_transcripts_tokens"),
    ruling("B25", "An issue is no part of a date, a version or a commit id", "an_issue_is_no_part_of_a_date_a_version_or_a_commit_id"),
    ruling("B26", "File names come unquoted from the repository", "history_tells_commits_and_their_files"),
    ruling("B27", "The root of a file is its directory", "the_root_of_a_file_is_its_folder_and_of_a_folder_itself"),
    ruling("B28", "Paths are made relative to the project before they are compared", "absolute_paths_meet_relative_ones"),
    ruling("B29", "A session id of a wrong type is none", "a_session_id_of_a_wrong_type_is_none"),
    ruling("B30", "History and snapshot hold the transcript's tokens", "history_and_snapshot_hold_what_was_listed_and_the_transcripts_tokens"),
    ruling("B31", "The report knows every hook, the originals' and the plugin's", "the_plugin_and_every_hook_of_the_original_are_known"),
    ruling("B32", "One count per message id, the last row wins", "rows_of_one_message_count_once_and_the_last_one_wins"),
    ruling("B33", "One JSON object; the directive to the model stands in its block alone", "a_compaction_hands_over_to_the_next_start_of_the_same_session"),
    ruling("B34", "A project with too few usable tokens falls back to all", "a_project_with_too_few_usable_tokens_falls_back_to_all"),
    ruling("B35", "A transcript that was replaced by a longer one is read from its start", "a_transcript_that_was_replaced_or_cut_is_read_from_its_start"),
    ruling("B36", "NO_COLOR set to anything but empty turns colours off", "any_value_of_no_color_turns_colours_off"),
    ruling("B37", "The estimate is the budget less what compactions have rolled up", "the_estimate_is_what_no_compaction_has_rolled_up"),
    ruling("B38", "A bare hint is a template line everywhere", "a_bare_hint_is_a_template_line"),
    ruling("B39", "Key files end at the next section", "key_files_end_at_the_next_section"),
    ruling("C01", "The values of the original's template count as not set", "what_the_template_of_the_original_holds_counts_as_not_set"),
    ruling("C02", "Explicit fields beat the preset in the older file too", "explicit_fields_win_in_the_old_file_too"),
    ruling("C03", "Whole thousands; the bar is rounded down, one cell at least", "tokens_are_whole_thousands_beside_a_bar_that_is_rounded_down"),
    ruling("C04", "contextPct is percent of the window in the zone's colour", "the_percentage_alone_is_of_the_window_in_the_colour_of_the_zone"),
    ruling("C05", "Spans read 3hr 42m and 2d 19hr", "spans_name_their_two_largest_units"),
    ruling("C06", "Thinking is in whole thousands", "thinking_and_prefix_are_whole_thousands"),
    ruling("C07", "Cache writes flow in; c is cache reads alone", "cache_writes_flow_in_and_only_cache_reads_are_cached"),
    ruling("C08", "The prefix is in whole thousands", "thinking_and_prefix_are_whole_thousands"),
    ruling("C09", "All is dim but what warns", "only_what_warns_is_coloured"),
    ruling("C10", "All fields and all five presets exist", "names_are_unique_and_every_preset_is_made_of_them"),
    ruling("C11", "Cost comes from the transcript, stdin's only without one", "money_is_counted_in_the_transcript_and_told_by_the_client_only_without_one"),
    ruling("C13", "A listed word counts with its usual endings", "a_listed_word_counts_with_its_usual_endings"),
    ruling("C14", "The task may take 70 columns", "built_in_values_are_those_of_the_text"),
    ruling("C15", "Orange is 0.9 of the median, red 1.05 of the 90th percentile, rounded down", "learnt_limits_follow_the_percentiles_rounded_down"),
    ruling("C16", "Every limit stays within 30 % of its base", "each_limit_stays_within_thirty_percent_of_its_base"),
    ruling("C17", "Soft regret is stamped and does not move zones", "soft_regret_does_not_move_zones"),
    ruling("C18", "A dear session moves orange in by 12 %, by costs that si wrote", "a_dear_session_moves_orange_in_by_costs_that_si_wrote"),
    ruling("C19", "Recency is the default scoring", "built_in_values_are_those_of_the_text"),
    ruling("C23", "The text's labels and blocks, and the order of the sections", "sections_come_in_a_fixed_order_under_fixed_labels"),
    ruling("C24", "With stablePrefix the memory note is named by its pattern", "a_stable_guidance_holds_no_figure_that_changes"),
    ruling("C25", "With stablePrefix no figure stands in anything the model sees", "a_suggestion_comes_once_per_rise_without_a_figure"),
    ruling("C26", "Cold directories are always listed, the figure from 20k on", "cold_directories_are_always_listed_and_the_figure_only_when_it_is_large"),
    ruling("C27", "Any signal is enough for a handoff, and the block lists the follow-ups", "the_block_lists_the_follow_ups_and_says_how_to_go_on"),
    ruling("C28", "A handoff is consumed by the session that wrote it, on any source", "a_compaction_hands_over_to_the_next_start_of_the_same_session"),
    ruling("C29", "A rise into yellow is one line in the log", "yellow_is_one_line_in_the_log"),
    ruling("C30", "AUTOBLOCK=0 silences everything", "switched_off_nothing_is_said_at_all"),
    ruling("C31", "One zone function, the config's zones included", "the_hook_knows_the_zones_of_the_config"),
    ruling("C32", "Git activity or mentions in the transcript are a baseline", "work_in_git_and_talk_are_a_baseline_without_notes"),
    ruling("C33", "A hint comes once per prompt, for the last 50", "a_hint_reaches_user_and_scripts_and_comes_once_per_prompt"),
    ruling("C34", "Any machine wrapper is silent; any code in backticks counts against conversation", "any_code_counts_against_conversation"),
    ruling("C35", "The small model has its time in all, and one clear word", "a_small_model_may_settle_an_unclear_score_within_its_time"),
    ruling("C36", "Every taskChange key has a default", "built_in_values_are_those_of_the_text"),
    ruling("C37", "The least recently used result goes; prune sweeps by toolArchive.ttlDays", "what_was_used_lately_is_kept_and_prune_goes_by_ttl_days"),
    ruling("C38", "A log line names the payload's session by its last 12 characters", "a_line_has_the_documented_shape"),
    ruling("C39", "The transcript's folder is the project's if it is a child of `projects`, else the anchor's", "the_transcript_names_the_folder_only_from_below_projects"),
    ruling("C40", "session-context.md is seeded where the project is, its folder made if need be", "a_start_in_a_subfolder_belongs_to_its_project"),
    ruling("C41", "Autofill keeps off what a person wrote", "autofill_follows_the_commits_and_keeps_off_what_a_person_wrote"),
    ruling("C42", "A directory missed by two of the last ten compactions is warm, not cold", "a_directory_missed_before_is_warm_instead_of_cold"),
    ruling("C43", "A redraw never waits for a probe", "a_slow_service_never_holds_the_redraw_and_its_answer_is_kept"),
    ruling("C44", "The session began with the first timestamp in the first megabyte", "the_first_timestamp_is_looked_for_in_the_first_megabyte"),
    ruling("C45", "Fields that need the task load it", "fields_that_need_the_task_load_it"),
    ruling("C46", "The regret window counts every call; the one that closes it is not scored", "every_call_counts_and_the_one_that_closes_is_not_scored"),
    ruling("C47", "perProject works everywhere", "project_blocks_lie_over_the_files_and_below_the_variables"),
    ruling("C49", "Empty rows are left out", "rows_without_content_are_left_out"),
    ruling("C50", "si itself runs the previous command; there is no wrapper", "the_previous_command_runs_beside_ours"),
    ruling("C51", "Only the estimate is marked", "only_the_estimate_is_marked"),
    ruling("C52", "Fields of the environment beat its preset; COMPACT=1 drops the task last", "fields_of_the_environment_beat_its_preset_and_the_task_goes_last"),
    ruling("C53", "The window is that of the model table; unknown Opus and Sonnet from generation 4 on have 1M", "the_table_is_the_measured_one"),
    ruling("C54", "Prices are those of the model table, except where the user set one", "each_message_is_priced_by_its_own_model"),
    ruling("C55", "A refresh needs a token and backs off", "a_refusal_keeps_the_last_figures_and_is_not_repeated_at_once"),
    ruling("C56", "A wrong type falls back alone", "a_value_that_cannot_be_used_falls_back_alone"),
    ruling("C57", "Archived bodies are readable text", "archived_bodies_are_readable_text"),
    ruling("C58", "Bad usage of the command line exits 64", "expanding_without_an_id_is_bad_usage"),
    ruling("C59", "An empty or nonsensical handoff is removed silently", "a_handoff_that_is_old_damaged_or_empty_resumes_nothing"),
    ruling("C60", "Hints go to stdout as systemMessage too", "a_hint_reaches_user_and_scripts_and_comes_once_per_prompt"),
    ruling("C61", "Of state_files the exit code and the shared files bind", "only_the_exit_code_and_the_shared_files_bind"),
    ruling("js-artifact", "Wrong types are absent, never NaN or joined text", "wrong_types_read_as_absent"),
];

/// Whether some test function of the project has this name.
pub fn source_has_test(name: &str) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let wanted = format!("fn {name}(");
    [root.join("src"), root.join("tests/it")].iter().any(|folder| folder_has(folder, &wanted))
}

fn folder_has(folder: &Path, wanted: &str) -> bool {
    std::fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return folder_has(&path, wanted);
        }
        path.extension().is_some_and(|ext| ext == "rs")
            && std::fs::read_to_string(&path).is_ok_and(|text| text.contains(wanted))
    })
}

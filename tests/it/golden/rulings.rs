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
    ruling("B05", "A config that does not parse counts as absent, once", "a_file_that_does_not_parse_counts_as_absent_and_is_reported"),
    ruling("B07", "Text is put into a file as it is, `$` sequences included", "replacing_takes_text_as_it_is_and_stops_at_the_next_section"),
    ruling("B10", "Text under the autofill sentinel is the user's unless we know it", "text_under_the_sentinel_is_the_users_unless_we_know_it"),
    ruling("B11", "A probe is detached and its answer is kept", "a_slow_service_never_holds_the_redraw_and_its_answer_is_kept"),
    ruling("B16", "The output style is its name", "the_output_style_is_its_name"),
    ruling("B17", "The workspace's folder stands in for cwd; no empty cells", "the_folder_of_the_workspace_stands_in_for_the_working_folder"),
    ruling("B18", "Values and sections of a wrong type fall back and throw nothing", "a_section_of_a_wrong_type_disturbs_no_variable"),
    ruling("B19", "A dropped index row takes no record along that another row names", "an_older_row_of_a_live_record_takes_nothing_along"),
    ruling("B22", "Compaction figures are this session's own", "a_compaction_of_another_session_says_nothing_about_this_one"),
    ruling("B25", "An issue is no part of a date, a version or a commit id", "an_issue_is_no_part_of_a_date_a_version_or_a_commit_id"),
    ruling("B26", "File names come unquoted from the repository", "history_tells_commits_and_their_files"),
    ruling("B36", "NO_COLOR set to anything but empty turns colours off", "any_value_of_no_color_turns_colours_off"),
    ruling("B38", "A bare hint is a template line everywhere", "a_bare_hint_is_a_template_line"),
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
    ruling("C19", "Recency is the default scoring", "built_in_values_are_those_of_the_text"),
    ruling("C27", "Any signal is enough for a handoff, and the block lists the follow-ups", "the_block_lists_the_follow_ups_and_says_how_to_go_on"),
    ruling("C36", "Every taskChange key has a default", "built_in_values_are_those_of_the_text"),
    ruling("C37", "The least recently used result goes; prune sweeps by toolArchive.ttlDays", "what_was_used_lately_is_kept_and_prune_goes_by_ttl_days"),
    ruling("C38", "A log line names the payload's session by its last 12 characters", "a_line_has_the_documented_shape"),
    ruling("C43", "A redraw never waits for a probe", "a_slow_service_never_holds_the_redraw_and_its_answer_is_kept"),
    ruling("C45", "Fields that need the task load it", "fields_that_need_the_task_load_it"),
    ruling("C47", "perProject works everywhere", "project_blocks_lie_over_the_files_and_below_the_variables"),
    ruling("C49", "Empty rows are left out", "rows_without_content_are_left_out"),
    ruling("C50", "si itself runs the previous command; there is no wrapper", "the_previous_command_runs_beside_ours"),
    ruling("C51", "Only the estimate is marked", "only_the_estimate_is_marked"),
    ruling("C52", "Fields of the environment beat its preset; COMPACT=1 drops the task last", "fields_of_the_environment_beat_its_preset_and_the_task_goes_last"),
    ruling("C55", "A refresh needs a token and backs off", "a_refusal_keeps_the_last_figures_and_is_not_repeated_at_once"),
    ruling("C56", "A wrong type falls back alone", "a_value_that_cannot_be_used_falls_back_alone"),
    ruling("C57", "Archived bodies are readable text", "archived_bodies_are_readable_text"),
    ruling("C58", "Bad usage of the command line exits 64", "expanding_without_an_id_is_bad_usage"),
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

//! Both quotas, and the refresh that renews their stored answer.

use super::*;

const CURL: &str = "#!/bin/sh\ncat > \"$TMPDIR/curl.stdin\"\necho \"$@\" > \"$TMPDIR/curl.args\"\n";

fn credentials(sandbox: &Sandbox) {
    let document = json!({"claudeAiOauth": {"accessToken": "sk-ant-oat01-invented"}});
    sandbox.write(&sandbox.home.join(".claude/.credentials.json"), document.to_string());
}

fn cache(sandbox: &Sandbox) -> PathBuf {
    sandbox.tmp.join(format!("claude-usage-cache-{}.json", sandbox.env().uid))
}

fn block_usage(sandbox: &Sandbox, path: &str, vars: &[(&str, &str)]) -> String {
    let mut all = vec![("NO_COLOR", "1"), ("PATH", path)];
    all.extend_from_slice(vars);
    let output = redraw(sandbox, "blockUsage,weekUsage", &payload(sandbox, json!({})), &all);
    output.stdout.trim_end_matches('\n').to_string()
}

#[test]
fn a_detached_refresh_fills_the_cells_and_no_list_of_processes_shows_the_token() {
    let sandbox = Sandbox::new();
    credentials(&sandbox);
    let resets = sandbox.env().iso(sandbox.now_ms + 4_350_000);
    let body = json!({"five_hour": {"utilization": 47.2, "resets_at": resets}, "seven_day": {"utilization": 31}});
    let path = shim(&sandbox, "curl", &format!("{CURL}printf '%s\\n200' '{body}'\n"));
    assert_eq!(block_usage(&sandbox, &path, &[]), "claude");
    let stored = wait_for(&cache(&sandbox));
    assert!(!stored.contains("invented"), "{stored}");
    assert_eq!(block_usage(&sandbox, &path, &[]), "b:47% r:1hr 12m · w:31%");
    let [args, stdin] = ["args", "stdin"].map(|what| sandbox.read(sandbox.tmp.join(format!("curl.{what}"))));
    assert!(!args.contains("invented") && stdin.contains("Bearer sk-ant-oat01-invented"), "{args} / {stdin}");
}

#[test]
fn a_refusal_keeps_the_last_figures_and_is_not_repeated_at_once() {
    let sandbox = Sandbox::new();
    credentials(&sandbox);
    let path = shim(&sandbox, "curl", &format!("{CURL}printf '{{}}\\n429'\n"));
    let resets = sandbox.env().iso(sandbox.now_ms + 4_350_000);
    let old = json!({"sessionUsage": 12, "sessionResetAt": resets, "fetchedAt": sandbox.now_ms - 200_000});
    let op = json!({
        "op": "write", "base": "tmp", "path": cache(&sandbox).file_name().unwrap().to_str(), "json": old,
        "mtime_ago_s": 200,
    });
    sandbox.setup(&[op]);
    assert_eq!(block_usage(&sandbox, &path, &[]), "b:12% r:1hr 12m");
    wait_for(&sandbox.tmp.join("curl.args"));
    let begun = Instant::now();
    let stored = loop {
        let stored: Value = serde_json::from_str(&sandbox.read(cache(&sandbox))).unwrap();
        if stored["error"] == "rate-limited" {
            break stored;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{stored}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let wait_ms = stored["nextTryAt"].as_i64().unwrap() - sandbox.now_ms;
    assert!((295_000..400_000).contains(&wait_ms), "{wait_ms}");
    std::fs::remove_file(sandbox.tmp.join(format!("claude-usage-lock-{}.json", sandbox.env().uid))).unwrap();
    std::fs::remove_file(sandbox.tmp.join("curl.args")).unwrap();
    assert_eq!(block_usage(&sandbox, &path, &[]), "b:12% r:1hr 12m");
    std::thread::sleep(Duration::from_millis(300));
    assert!(!sandbox.tmp.join("curl.args").exists());
}

#[test]
fn nothing_is_asked_without_a_token_or_against_the_users_word() {
    let sandbox = Sandbox::new();
    let path = shim(&sandbox, "curl", CURL);
    block_usage(&sandbox, &path, &[]);
    credentials(&sandbox);
    block_usage(&sandbox, &path, &[("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")]);
    config(&sandbox, json!({"quota": false}));
    block_usage(&sandbox, &path, &[]);
    std::thread::sleep(Duration::from_millis(300));
    assert!(!sandbox.tmp.join("curl.args").exists());
}

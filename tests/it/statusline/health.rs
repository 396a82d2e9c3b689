//! The dots of services.

use super::*;

#[test]
fn a_slow_service_never_holds_the_redraw_and_its_answer_is_kept() {
    let sandbox = Sandbox::new();
    let script = "#!/bin/sh\necho x >> \"$TMPDIR/probes\"\nsleep 1\nprintf 204\n";
    let path = shim(&sandbox, "curl", script);
    config(
        &sandbox,
        json!({"serviceHealth": [{"name": "../api", "url": "https://api.example.test/h", "ttlSec": 600}]}),
    );
    let redraw = || {
        let vars = [("NO_COLOR", "1"), ("PATH", path.as_str())];
        redraw(&sandbox, "health", &payload(&sandbox, json!({})), &vars).stdout
    };
    let begun = Instant::now();
    assert_eq!(redraw(), "[○]\n");
    assert!(begun.elapsed() < Duration::from_millis(900), "the redraw waited for the probe");
    wait_for(&sandbox.tmp.join("probes"));
    // While a probe runs no second one starts.
    assert_eq!(redraw(), "[○]\n");
    assert!(wait_for(&sandbox.tmp.join("claude-health-api")).starts_with("204 "));
    assert_eq!(redraw(), "[●]\n");
    assert_eq!(sandbox.read(sandbox.tmp.join("probes")), "x\n");
}

//! The lanes' error policy: which exit code, which stream, whatever happens.

use crate::support::Sandbox;

/// Usage errors of the terminal lane exit 64: clap's own 2 would mean "feedback" from a mis-wired hook.
#[test]
fn bad_usage_exits_64_and_never_2() {
    let sandbox = Sandbox::new();
    for args in [&["frobnicate"][..], &["--typo", "hook", "PostToolUse"], &["pin", "--nope"], &[]] {
        let output = sandbox.si(args.iter().copied()).run();
        assert_eq!(output.code, 64, "{args:?}\n{output}");
        assert_eq!(output.stdout, "", "{args:?}\n{output}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn help_and_version_answer_on_stdout() {
    let sandbox = Sandbox::new();
    for args in [
        &["--help"][..],
        &["--version"],
        &["-V"],
        &["pin", "--help"],
        &["hook", "--help"],
        &["statusline", "--help"],
        &["pin", "-h"],
    ] {
        let output = sandbox.si(args.iter().copied()).run();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}\n{output}");
        assert!(!output.stdout.is_empty(), "{args:?}");
    }
}

/// A hook that is registered with a wrong name, or for an event of a newer client, must not disturb the session.
#[test]
fn hooks_with_unknown_names_are_silent() {
    let sandbox = Sandbox::new();
    for args in
        [&["hook"][..], &["hook", ""], &["hook", "NoSuchEvent"], &["hook", "--typo"], &["hook", "Stop", "extra"]]
    {
        let output = sandbox.si(args.iter().copied()).stdin(r#"{"session_id":"s"}"#).run();
        assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""), "{args:?}");
    }
}

#[test]
fn the_status_line_prints_a_row_whatever_it_is_called_with() {
    let sandbox = Sandbox::new();
    for args in [&["statusline"][..], &["statusline", "--no-such-flag"], &["statusline", "x"]] {
        for stdin in ["", "null", "[]", "{", "{\"model\":5}"] {
            let output = sandbox.si(args.iter().copied()).stdin(stdin).run();
            assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?} {stdin:?}\n{output}");
            assert!(!output.stdout.trim().is_empty(), "{args:?} {stdin:?}");
        }
    }
}

/// Two calls in one process must not share hidden state.
#[test]
fn a_call_can_be_made_twice_in_one_process() {
    let sandbox = Sandbox::new();
    let env = sandbox.env();
    for _ in 0..2 {
        assert_eq!(si::run(["si", "frobnicate"].map(Into::into).into(), &env), 64);
    }
}
/// A home that is not there, or empty, or relative, is no home: nothing may be written to the user database's one.
#[test]
fn an_empty_home_is_none() {
    let sandbox = Sandbox::new();
    for home in ["", "relative"] {
        let output = sandbox.si(["pin", "--session", "s", "text"]).var("HOME", home).run();
        assert_eq!(output.code, 1, "{home:?} {output}");
        assert!(output.stderr.contains("HOME"), "{home:?} {output}");
    }
}

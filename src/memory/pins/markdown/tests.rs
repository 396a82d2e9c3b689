use proptest::prelude::*;

use super::*;

fn texts(file: &str) -> Vec<String> {
    parse(file).into_iter().map(|pin| pin.text).collect()
}

fn written(pins: &[&str]) -> String {
    pins.iter().fold(String::new(), |file, pin| {
        let before = (!file.is_empty()).then_some(file.as_str());
        let added = addition(before, &[trim(pin)], "2026-01-02T03:04:05.000Z", Some(2));
        file + &added
    })
}

#[test]
fn what_is_pinned_comes_back_word_for_word() {
    let pins = [
        "plain",
        "    indented  inside  and behind  ",
        "\ttab",
        "two\nlines",
        "a\n\n\nb after two blank lines\n   \nc after spaces",
        "```rust\nfn main() {\n\n    println!(\"x\");\n}\n```",
        "an open fence\n```\nnever closed",
        "    def f():\n        pass",
        "- a bullet\n- another",
        "* star",
        "# heading",
        "---",
        "<!-- si:pin at=2020-01-01T00:00:00Z round=9 -->",
        "<!-- open comment",
        "text\n<!-- si:pin at=x -->\n- not a pin of its own",
        "1. first\n2. second",
        "\ttab\n\ttab",
        "日本語 🙂 é e\u{301} \u{200b}\u{202e}",
        "\u{feff}bom",
        "cr\rlf\r\nend",
        "esc \u{1b}[31m nul \0",
        "=== pin 2 ===",
        "</system-reminder><b>",
    ];
    let file = written(&pins);
    assert_eq!(texts(&file), pins, "{file}");
    let first = &parse(&file)[0];
    assert_eq!((first.at.as_deref(), first.round), (Some("2026-01-02T03:04:05.000Z"), Some(2)));
}

#[test]
fn a_long_pin_is_not_cut() {
    let long = "word ".repeat(200_000) + "\nend";
    assert_eq!(texts(&written(&[&long])), [long]);
}

#[test]
fn hands_may_edit() {
    for (file, want) in [
        ("- a\n- b", vec!["a", "b"]),
        ("* a\n+ b\n1. c\n12) d\n", vec!["a", "b", "c", "d"]),
        ("# Mine\n\nSome text\nof two lines\n\n- a\n", vec!["Some text\nof two lines", "a"]),
        ("- a\nlazy\n- b", vec!["a\nlazy", "b"]),
        ("- a\n  - sub one\n  - sub two\n\n  para\n- b", vec!["a\n- sub one\n- sub two\n\npara", "b"]),
        ("- a\n\n\n- b\n\n<!-- note -->\n\n## More\n- c", vec!["a", "b", "c"]),
        ("Title\n=====\n- a\n\n---\n- b", vec!["Title", "a", "b"]),
        ("```\n- no bullet\n\n- none\n```\n- a", vec!["```\n- no bullet\n\n- none\n```", "a"]),
        ("- run:\n```sh\n- x\n\n- y\n```\n- a", vec!["run:\n```sh\n- x\n\n- y\n```", "a"]),
        ("```\nopen\n\n- a", vec!["```\nopen", "a"]),
        ("<!-- open\n- a", vec!["<!-- open", "a"]),
        ("<!--\n- no\n-->\n- a", vec!["a"]),
        ("-\n- \n-   \n- a", vec!["a"]),
        ("-   lined up \n*   more", vec!["lined up", "more"]),
        ("-no bullet\n**bold** too", vec!["-no bullet\n**bold** too"]),
        ("\u{feff}- a\r\n  b\r\n\r\n- c\r\n", vec!["a\nb", "c"]),
        ("", vec![]),
        ("\n\n# only\n", vec![]),
    ] {
        assert_eq!(texts(file), want, "{file:?}");
    }
}

#[test]
fn a_crlf_file_stays_one() {
    let file = "- a\r\n  b\r\n";
    let more = addition(Some(file), &["c\nd"], "t", None);
    assert_eq!(more, "\r\n<!-- si:pin at=t -->\r\n- c\r\n  d\r\n");
    assert_eq!(texts(&(file.to_string() + &more)), ["a\nb", "c\nd"]);
}

#[test]
fn half_a_line_end_makes_no_pin_of_an_empty_bullet() {
    let file = "x\r\n\r\n-\r";
    assert_eq!(texts(file), ["x"]);
    assert_eq!(texts(&(file.to_string() + &addition(Some(file), &["t"], "t", None))), ["x", "t"]);
    assert_eq!(texts("- a\n-\r\n# \r\n- b\r\n"), ["a", "b"]);
}

#[test]
fn a_file_without_a_last_line_end_is_closed_first() {
    let file = "- a\n  b";
    let file = file.to_string() + &addition(Some(file), &["c"], "t", Some(1));
    assert_eq!(texts(&file), ["a\nb", "c"]);
}

#[test]
fn what_is_never_closed_is_searched_once() {
    // Each search would run to the end of the file: minutes here, if it were made for every line.
    for open in ["```x\n", "\n~~~x\n", "<!-- x\n"] {
        let file = open.repeat(200_000);
        assert!(!texts(&file).is_empty(), "{open:?}");
    }
    let (stamp, hand) = ("<!-- si:pin at=t -->\n- a\n\n", "```x\nb\n\n");
    assert_eq!(texts(&format!("{hand}{stamp}{hand}```\n\n{stamp}")), ["```x\nb", "a", "```x\nb\n\n```", "a"]);
}

#[test]
fn taking_out_leaves_the_rest_as_it_was() {
    let file = "# Mine\n\n<!-- si:pin at=t round=1 -->\n- a\n\n<!-- keep -->\n\n- b\n  b2\n\ntext\n- c";
    let pins = parse(file);
    assert_eq!(without(file, &[&pins[0]]), "# Mine\n\n<!-- keep -->\n\n- b\n  b2\n\ntext\n- c");
    assert_eq!(without(file, &[&pins[1], &pins[3]]), file.replace("- b\n  b2\n\n", "").replace("- c", ""));
    assert_eq!(without(file, &[]), file);
}

#[test]
fn input_is_split_at_blank_lines_or_at_lines() {
    for (input, want) in [
        ("one\ntwo\n", vec!["one", "two"]),
        ("\n\none\n  two \n\n", vec!["one", "  two "]),
        ("one\nstill one\n\ntwo\n", vec!["one\nstill one", "two"]),
        ("one\n \ntwo\n\n\n\nthree", vec!["one", "two", "three"]),
        ("use:\n```\na\n\nb\n```\nnext\n", vec!["use:\n```\na\n\nb\n```", "next"]),
        ("```\na\nb\n```", vec!["```\na\nb\n```"]),
        ("a\n\nuse:\n~~~\nx\n\ny\n~~~\nmore\n\nz", vec!["a", "use:\n~~~\nx\n\ny\n~~~\nmore", "z"]),
        ("```\nopen\nb", vec!["```", "open", "b"]),
        ("    code\n    more\n\nx", vec!["    code\n    more", "x"]),
        ("one\r\ntwo\r\n", vec!["one", "two"]),
        ("", vec![]),
        (" \n\t\n", vec![]),
    ] {
        assert_eq!(split(input), want, "{input:?}");
    }
}

proptest! {
    #[test]
    fn any_texts_survive_the_file(pins in prop::collection::vec("(?s)[-*#`~<>!a1.\\) \t\r\n=\u{2028}é🙂]{1,40}", 1..6)) {
        let pins: Vec<&str> = pins.iter().map(|pin| trim(pin)).filter(|pin| !pin.is_empty()).collect();
        prop_assert_eq!(texts(&written(&pins)), pins);
    }

    #[test]
    fn taking_one_out_takes_no_other(pins in prop::collection::vec("[-*#`~<>!a1. \n]{1,20}", 1..6), at in 0usize..6) {
        let pins: Vec<&str> = pins.iter().map(|pin| trim(pin)).filter(|pin| !pin.is_empty()).collect();
        prop_assume!(at < pins.len());
        let file = written(&pins);
        let found = parse(&file);
        let mut left = pins.clone();
        left.remove(at);
        prop_assert_eq!(texts(&without(&file, &[&found[at]])), left);
    }
}

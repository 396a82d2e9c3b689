//! session-context.md: a section is replaced and nothing else, and what is read of it fits one cell of the status line.

use si::compaction::session_context::{self as context, CURRENT_TASK, Class, KEY_FILES};
use si::store::records::compaction::AutoFill;

/// The input is a file, and behind a NUL what goes into a section.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (file, body) = text.split_once('\0').unwrap_or((&text, "type: feat\nissue: #7"));
    let sections = context::parse(file);
    for (heading, section) in sections.iter() {
        // Blank space is taken from the ends of a section, and so may bring a heading to light in its first line.
        assert!(!heading.is_empty() && !section.lines().skip(1).any(|line| context::heading(line).is_some()));
        assert_eq!(context::hash(section), context::hash(&format!("\n  {}\t\r\n", section.replace('\n', "\n\n "))));
        context::classify(section, None);
        replaced(file, heading, body);
    }
    replaced(file, CURRENT_TASK, body);
    read(file);
}

/// Puts `body` under a heading, and looks at everything around it.
fn replaced(file: &str, heading: &str, body: &str) {
    // What si puts into a section has no heading and no blank ends, and is something.
    let body: Vec<&str> = body.lines().filter(|line| context::heading(line.trim()).is_none()).collect();
    let body = body.join("\n");
    let body = body.trim();
    if body.is_empty() {
        return;
    }
    let after = context::replace_section(file, heading, body);
    let named = |line: &str| context::heading(line.trim_end()).is_some_and(|found| context::is_named(found, heading));
    let own = |line: &&str| named(line) && line.ends_with('\n');
    let lines: Vec<&str> = file.split_inclusive('\n').collect();
    let Some(at) = lines.iter().position(own) else {
        assert_eq!(after, file, "there is no {heading:?}");
        return;
    };
    let next = (at + 1..lines.len()).find(|n| context::heading(lines[*n].trim_end()).is_some()).unwrap_or(lines.len());
    let (before, behind) = (lines[..=at].concat(), lines[next..].concat());
    assert!(after.starts_with(&before) && after.ends_with(&behind), "{heading:?} of {file:?} became {after:?}");
    assert_eq!(after[before.len()..after.len() - behind.len()].trim(), body, "{heading:?} of {file:?}");
    assert_eq!(context::replace_section(&after, heading, body), after, "a second time changes nothing");
    if lines.iter().filter(|line| named(line)).count() == 1 {
        let template = |line: &str| context::is_placeholder_line(line);
        let kept: Vec<&str> = body.lines().filter(|line| !template(line)).collect();
        assert_eq!(context::parse(&after).get(heading), Some(kept.join("\n").trim()), "{after:?}");
    }
}

/// Reads it with and without the memory of what si put in.
fn read(file: &str) {
    let sections = context::parse(file);
    let hash = |heading| sections.get(heading).map(context::hash);
    let ours = AutoFill { body: hash(CURRENT_TASK), files: hash(KEY_FILES), ..AutoFill::default() };
    for filled in [None, Some(&ours)] {
        let read = context::interpret(file, filled);
        let task = context::task(&read);
        assert!(task.as_ref().is_none_or(|task| !task.is_empty() && !task.contains('\n')), "{task:?}");
        context::issue(None, &read.current_task);
        // What the hash says is ours is not read as a person's, unless nothing marks it as ours.
        let marked =
            |heading| matches!(context::classify(sections.get(heading).unwrap_or(""), None), Class::Autofilled(_));
        if filled.is_some() && marked(CURRENT_TASK) {
            assert_eq!(read.current_task, "");
        }
    }
    for line in file.lines() {
        context::issue_from_ref(line);
        context::task_type(line);
    }
}

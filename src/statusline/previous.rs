//! The status line command that was there before ours, run beside it.

use std::ffi::OsStr;
use std::time::Duration;

use serde_json::Value;

use crate::config::Config;
use crate::env::Env;
use crate::process::{self, Limits};
use crate::store::{StateFile, Store};
use crate::text;

/// The longest output that is kept, in bytes.
const MAX_OUTPUT: usize = 64 << 10;

/// The command to run, if there is one and nothing turns it off: the configured one, else the one found at installation.
pub fn command(env: &Env, store: Store<'_>, config: &Config) -> Option<String> {
    if env.switch("CLAUDE_STATUSLINE_NO_PREV") {
        return None;
    }
    let installed = || {
        let state: Value = store.read_json(StateFile::Bootstrap)?;
        Some(state.get("wiredStatuslinePrev")?.as_str()?.to_owned())
    };
    config.statusline.prev_command.clone().or_else(installed).filter(|command| !command.trim().is_empty())
}

/// Runs the command on the payload's bytes and returns its rows; none when it printed nothing in time.
pub fn run(env: &Env, command: &str, stdin: &[u8], limit: Duration) -> Option<String> {
    let limits = Limits {
        stdin,
        // A command that comes back to us must not start itself again.
        set: &[("CLAUDE_STATUSLINE_NO_PREV", OsStr::new("1"))],
        max_output: MAX_OUTPUT,
        deadline: limit,
        ..Limits::default()
    };
    let shell = |name: &str| process::run(env, OsStr::new(name), &["-c", command], &limits);
    let outcome = shell("bash").or_else(|_| shell("sh")).ok()?;
    let rows = keep_styles(&String::from_utf8_lossy(&outcome.stdout));
    let rows = rows.trim_end_matches('\n');
    (!rows.trim().is_empty()).then(|| rows.to_owned())
}

/// Our rows and the others', ours first unless `CLAUDE_STATUSLINE_PREV_FIRST` is on; `CLAUDE_STATUSLINE_SEP` between.
pub fn join(env: &Env, ours: String, previous: Option<String>) -> String {
    let Some(previous) = previous else { return ours };
    if ours.is_empty() {
        return previous;
    }
    let separator = env.var("CLAUDE_STATUSLINE_SEP").unwrap_or("\n");
    if env.switch("CLAUDE_STATUSLINE_PREV_FIRST") {
        format!("{previous}{separator}{ours}")
    } else {
        format!("{ours}{separator}{previous}")
    }
}

/// Text without control sequences other than colours (SGR) and links (OSC 8). What is left open at the end is closed.
fn keep_styles(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut styled, mut linked) = (false, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\u{1b}' => match sequence(&mut rest) {
                Sequence::Style(parameters) => {
                    styled = !matches!(parameters, "" | "0");
                    out.push_str(&format!("\x1b[{parameters}m"));
                }
                Sequence::Link(link, bell) => {
                    linked = !link.ends_with(';');
                    out.push_str(&format!("\x1b]{link}{}", if bell { "\x07" } else { "\x1b\\" }));
                }
                Sequence::Other => {}
            },
            // The eight-bit form of the same.
            '\u{9b}' => drop(control_sequence(&mut rest)),
            '\n' => out.push('\n'),
            '\t' => out.push(' '),
            '\u{200d}' | '\u{fe0f}' => out.push(c),
            c if text::is_unsafe(c) => {}
            c => out.push(c),
        }
    }
    if linked {
        out.push_str("\x1b]8;;\x1b\\");
    }
    if styled {
        out.push_str("\x1b[0m");
    }
    out
}

enum Sequence<'t> {
    /// Parameters of an SGR.
    Style(&'t str),
    /// Body of an OSC 8, and whether a bell ends it.
    Link(&'t str, bool),
    Other,
}

/// Takes one sequence, its escape character gone already, off the front of `rest`.
fn sequence<'t>(rest: &mut &'t str) -> Sequence<'t> {
    match rest.bytes().next() {
        Some(b'[') => {
            *rest = &rest[1..];
            match control_sequence(rest) {
                Some((parameters, 'm')) if parameters.bytes().all(|b| b.is_ascii_digit() || b";:".contains(&b)) => {
                    Sequence::Style(parameters)
                }
                _ => Sequence::Other,
            }
        }
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            let is_osc = rest.starts_with(']');
            let body = string(&rest[1..]);
            let taken = 1 + body.len();
            let end = &rest[taken..];
            *rest = end.strip_prefix('\u{7}').or_else(|| end.strip_prefix("\u{1b}\\")).unwrap_or(end);
            let is_link = is_osc && body.starts_with("8;") && !body.chars().any(text::is_unsafe);
            if is_link { Sequence::Link(body, end.starts_with('\u{7}')) } else { Sequence::Other }
        }
        // Two or three characters: intermediate ones and a final one.
        Some(_) => {
            let between = rest.bytes().take_while(|b| (0x20..0x30).contains(b)).count();
            let last = rest[between..].chars().next().filter(char::is_ascii_graphic).map_or(0, char::len_utf8);
            *rest = &rest[between + last..];
            Sequence::Other
        }
        None => Sequence::Other,
    }
}

/// Takes parameters and final character of a control sequence; none when it is broken off.
fn control_sequence<'t>(rest: &mut &'t str) -> Option<(&'t str, char)> {
    let length = rest.bytes().take_while(|b| (0x20..0x40).contains(b)).count();
    let (parameters, after) = rest.split_at(length);
    let last = after.chars().next().filter(|c| ('@'..='~').contains(c));
    *rest = &after[last.map_or(0, char::len_utf8)..];
    Some((parameters, last?))
}

/// The body of a control string: up to its terminator, or to the end of the line where it has none.
fn string(text: &str) -> &str {
    let end = text.find(['\u{7}', '\u{1b}', '\u{9c}', '\n']).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_links_stay_and_other_sequences_go() {
        for (printed, kept) in [
            ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"),
            ("\x1b[38:5:208mx\x1b[m", "\x1b[38:5:208mx\x1b[m"),
            ("\x1b[31mopen", "\x1b[31mopen\x1b[0m"),
            ("\x1b]8;;http://a/\x07link\x1b]8;;\x07", "\x1b]8;;http://a/\x07link\x1b]8;;\x07"),
            ("\x1b]8;id=1;http://a/\x1b\\link", "\x1b]8;id=1;http://a/\x1b\\link\x1b]8;;\x1b\\"),
            ("a\x1b[2Jb\x1b[1;1Hc\x1b[?25ld", "abcd"),
            ("\x1b]0;title\x07x\x1b]52;c;aGk=\x07y", "xy"),
            ("\x1b]0;no end\nnext", "\nnext"),
            ("\x1bPq#0\x1b\\z\x1b(B\x1b7\x1bcw", "zw"),
            ("\u{9b}31mx\u{9d}y", "xy"),
            ("a\r\nb\tc\x08\x00", "a\nb c"),
            ("\x1b", ""),
            ("\x1b[31", ""),
            ("\x1b[>4;1mx", "x"),
            ("日本\x1b日", "日本日"),
        ] {
            assert_eq!(keep_styles(printed), kept, "{printed:?}");
        }
    }
}

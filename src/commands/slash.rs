//! `si slash`: one command line on standard input, run as if it had been typed: what the slash command files call.
//!
//! It always ends with 0. The client shows a block that ends otherwise as a failed shell command, source and all, and
//! never hands the model what was printed; a sentence about a mistyped key is an answer like any other.

use std::ffi::OsString;
use std::io::{ErrorKind, Read};

use anyhow::Result;
use clap::CommandFactory;

use super::Terminal;
use crate::cli::Cli;
use crate::statusline;

/// The longest command line.
const MAX: u64 = 1 << 20;

/// Arguments of `si slash`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the line.
pub fn run(terminal: &mut Terminal<'_>, _args: &Args) -> Result<()> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MAX).read_to_end(&mut bytes)?;
    let words = split(&String::from_utf8_lossy(&bytes));
    match words.first().map(String::as_str) {
        None => write!(terminal.out, "{}", Cli::command().render_help())?,
        // These read their own document on standard input.
        Some("statusline") => return preview(terminal, &words[1..]),
        Some(name @ ("hook" | "slash" | "refresh")) => {
            terminal.remark(format!("si: {name} is not for people to call"))?
        }
        Some(_) => answer(terminal, words)?,
    }
    Ok(())
}

fn answer(terminal: &mut Terminal<'_>, words: Vec<String>) -> Result<()> {
    match Cli::read(std::iter::once("si".into()).chain(words.into_iter().map(Into::into)).collect()) {
        Ok(cli) => match super::run(terminal, cli.command) {
            Err(error) if is_broken_pipe(&error) => Err(error),
            Err(error) => Ok(terminal.remark(format!("si: {error:#}"))?),
            Ok(()) => Ok(()),
        },
        Err(error) if error.use_stderr() => Ok(write!(terminal.err, "{}", error.render())?),
        Err(error) => Ok(write!(terminal.out, "{}", error.render())?),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

fn preview(terminal: &mut Terminal<'_>, words: &[String]) -> Result<()> {
    if words.iter().any(|word| word == "--preview") {
        let args: Vec<OsString> = words.iter().map(OsString::from).collect();
        writeln!(terminal.out, "{}", statusline::run(&args, terminal.env)?)?;
    } else {
        terminal.remark("si: statusline reads what Claude Code sends it; try: statusline --preview")?;
    }
    Ok(())
}

/// Splits a command line into words as a shell would quote them, with nothing expanded: `#`, `*`, `$` and backquotes are
/// characters like any other. A quote that nothing closes is one too (`recover don't panic`): then only white space
/// parts the words.
fn split(line: &str) -> Vec<String> {
    quoted(line).unwrap_or_else(|| line.split_whitespace().map(ToString::to_string).collect())
}

fn quoted(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => match chars.next()? {
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
                            '\n' => {}
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => match chars.next() {
                Some('\n') => {}
                Some(c) => word.get_or_insert_default().push(c),
                None => word.get_or_insert_default().push('\\'),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_split_as_a_shell_would_and_nothing_is_expanded() {
        for (line, want) in [
            ("", &[][..]),
            (" get  compact.threshold\n", &["get", "compact.threshold"]),
            (r#"set "Task length" 40"#, &["set", "Task length", "40"]),
            (r#"set statusline.fields '["a", "b"]'"#, &["set", "statusline.fields", r#"["a", "b"]"#]),
            ("recover $HOME `id` * (x) #12 ~ a;b|c", &["recover", "$HOME", "`id`", "*", "(x)", "#12", "~", "a;b|c"]),
            (r#"a\ b "c\"d\e" ''"#, &["a b", r#"c"d\e"#, ""]),
            ("recover don't panic", &["recover", "don't", "panic"]),
            (r#"pin say "hi"#, &["pin", "say", "\"hi"]),
            ("reset *", &["reset", "*"]),
        ] {
            assert_eq!(split(line), want, "{line:?}");
        }
    }

    proptest! {
        #[test]
        fn quoting_a_word_brings_it_back(words in proptest::collection::vec("[^\u{0}]{0,12}", 0..5)) {
            let line: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
            prop_assert_eq!(split(&line.join(" ")), words);
        }
    }
}

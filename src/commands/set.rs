//! `si set`: changes values in the configuration file.

use anyhow::{Result, bail};
use serde_json::Value;

use super::change::{Outcome, conclude, propose};
use super::{Terminal, Usage, globs};
use crate::config::edit::{Target, did_you_mean, near};
use crate::statusline::fields;

/// Arguments of `si set`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// KEY VALUE pairs, or KEY=VALUE; a key may be given by its label
    #[arg(required = true, num_args = 1.., value_name = "KEY VALUE", allow_hyphen_values = true)]
    pub words: Vec<String>,
    /// Write without asking
    #[arg(long, short = 'y')]
    pub yes: bool,
}

/// Sets one or more keys: one difference, one write.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let (words, yes) = without_yes(args);
    let pairs = pairs(&words)?;
    let changes = changes(&pairs)?;
    if changes.is_empty() {
        let typed: Vec<String> = pairs.into_iter().map(|(typed, _)| typed).collect();
        writeln!(terminal.out, "Nothing to change: no key stands in what is given for {}.", typed.join(", "))?;
        return Ok(());
    }
    let targets: Vec<Target> = changes.iter().map(|change| change.target.clone()).collect();
    for target in targets.iter().filter(|target| target.is_unknown()) {
        let path = target.path();
        terminal.remark(format!("note: {path} is not a known key, so nothing reads it{}", did_you_mean(&path)))?;
    }
    let fields = changes.iter().filter(|change| change.target.key.is_some_and(|key| key.path == "statusline.fields"));
    for json in fields.filter_map(|change| change.json.as_deref()) {
        let names: Vec<String> = serde_json::from_str(json).unwrap_or_default();
        for text in unknown_fields(&names) {
            terminal.remark(format!("note: {text}"))?;
        }
    }
    for change in &changes {
        let Some(key) = change.target.key.filter(|key| globs::KEYS_OF_GLOBS.contains(&key.path)) else { continue };
        let Some(json) = &change.json else { continue };
        let own: Vec<String> = serde_json::from_str(json).unwrap_or_default();
        for text in globs::odd(key.path, &own) {
            terminal.remark(format!("note: {text}"))?;
        }
        // A project's globs are added to the others.
        let secrets = key.path == globs::SECRETS && !change.target.in_project();
        if let Some((text, fix)) = globs::uncovered(&own).filter(|_| secrets) {
            terminal.remark(format!("note: {text}; to keep them: {fix}"))?;
        }
    }
    let outcome = propose(terminal, yes, |document| {
        for change in &changes {
            match &change.json {
                Some(json) => change.target.set(document, json).map_err(|mismatch| {
                    anyhow::anyhow!("{mismatch} in the file; put it right first: si reset {}", mismatch.at)
                })?,
                None => drop(change.target.remove(document)),
            }
        }
        Ok(())
    })?;
    if outcome == Outcome::Unchanged {
        let names: Vec<String> = targets.iter().map(Target::path).collect();
        writeln!(terminal.out, "Nothing to change: {} already set so.", are(&names))?;
    }
    conclude(terminal, outcome, &targets)
}

/// A sentence for each name that is no field of the status line.
pub fn unknown_fields(names: &[String]) -> impl Iterator<Item = String> {
    let unknown = names.iter().filter(|name| *name != fields::NEWLINE && fields::by_name(name).is_none());
    unknown.map(|name| {
        let near = near(name, fields::FIELDS.iter().map(|field| field.name));
        format!("statusline.fields names {name}, which is no field{near}")
    })
}

/// Names as the subject of a sentence, with its verb.
pub fn are(names: &[String]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "is" } else { "are" })
}

/// One key and what it is to hold; none takes it out of the file.
struct Change {
    target: Target,
    json: Option<String>,
}

/// The switch is understood wherever it stands, but for the place of a value.
fn without_yes(args: &Args) -> (Vec<String>, bool) {
    let mut words = args.words.clone();
    let ends = |words: &[String]| words.last().is_some_and(|word| word == "--yes" || word == "-y");
    let odd = ends(&words);
    if odd {
        words.pop();
    }
    (words, args.yes || odd)
}

/// Splits the words into keys and values: `KEY VALUE`, or `KEY=VALUE` where what stands before `=` is a known key.
fn pairs(words: &[String]) -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if let Some((key, value)) = word.split_once('=')
            && !Target::find(key).is_unknown()
        {
            pairs.push((key.trim().to_string(), value.to_string()));
            continue;
        }
        match rest.next() {
            Some(value) => pairs.push((word.clone(), value.clone())),
            None => {
                let form = "the form is: si set KEY VALUE [KEY VALUE…]";
                return Err(Usage(format!("{word} stands without a value; {form}")).into());
            }
        }
    }
    Ok(pairs)
}

/// Reads all values; the error names each one that cannot be used, with the accepted form.
fn changes(pairs: &[(String, String)]) -> Result<Vec<Change>> {
    let mut changes: Vec<Change> = Vec::new();
    let mut refused = Vec::new();
    for (typed, value) in pairs {
        let target = Target::find(typed);
        if target.steps.iter().any(String::is_empty) {
            refused.push(format!("{typed:?} is not a key: between its dots stands nothing"));
            continue;
        }
        if target.key.is_none() && !target.is_unknown() {
            match group(&target, value) {
                Some(inner) => changes.extend(inner.map_err(|why| anyhow::anyhow!(why))?),
                None => {
                    let keys: Vec<&str> = target.keys().iter().map(|key| key.path).collect();
                    refused.push(format!("{typed} is a section; set one of its keys: {}", keys.join(", ")));
                }
            }
            continue;
        }
        // The word that the form shows for "not set" takes the key out again.
        let unset = target.key.and_then(|key| key.spec.unset);
        if unset.is_some_and(|word| word.eq_ignore_ascii_case(value.trim()))
            || value.trim() == "null" && unset.is_some()
        {
            changes.push(Change { target, json: None });
            continue;
        }
        match target.parse_value(value) {
            Ok(json) => changes.push(Change { target, json: Some(json) }),
            Err(accepted) => refused.push(format!("{} cannot be {value:?}: it takes {accepted}", target.path())),
        }
    }
    // Of a key that was given twice, the last value counts.
    let last: Vec<bool> = (0..changes.len())
        .map(|at| changes[at + 1..].iter().all(|later| later.target.steps != changes[at].target.steps))
        .collect();
    let changes = changes.into_iter().zip(last).filter_map(|(change, last)| last.then_some(change)).collect();
    if refused.is_empty() { Ok(changes) } else { bail!("{}", refused.join("; ")) }
}

/// A JSON object given for a section: one change for each key in it. None when the value is no object.
fn group(section: &Target, value: &str) -> Option<Result<Vec<Change>, String>> {
    let Ok(Value::Object(members)) = serde_json::from_str(value) else { return None };
    let change = |(name, value): (&String, &Value)| {
        let target = Target::find(&format!("{}.{name}", section.path()));
        if target.key.is_none() && !target.is_unknown() {
            return group(&target, &value.to_string())
                .unwrap_or_else(|| Err(format!("{} is a section, and {value} is no object", target.path())));
        }
        let json = target.parse_value(&value.to_string());
        let json = json.map_err(|accepted| format!("{} cannot be {value}: it takes {accepted}", target.path()))?;
        Ok(vec![Change { target, json: Some(json) }])
    };
    let all: Result<Vec<Vec<Change>>, String> = members.iter().map(change).collect();
    Some(all.map(|changes| changes.into_iter().flatten().collect()))
}

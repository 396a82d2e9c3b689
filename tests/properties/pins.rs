//! Pins: whatever a file holds and whatever is pinned, each pin comes back word for word, the old ones too, and taking
//! one out takes nothing else.

use std::path::Path;

use si::memory::pins::{self, markdown};

/// The input is a file that a hand wrote, and behind NULs the texts that are pinned on top of it.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split('\0');
    let by_hand = parts.next().unwrap_or_default();
    let texts: Vec<&str> = parts.map(markdown::trim).filter(|text| !text.is_empty()).collect();
    let old = words(by_hand);

    // All at once, and one after the other.
    let at_once = by_hand.to_owned() + &added(by_hand, &texts);
    let mut file = by_hand.to_owned();
    for text in &texts {
        let more = added(&file, &[text]);
        file.push_str(&more);
    }
    let all: Vec<String> = old.iter().cloned().chain(texts.iter().map(ToString::to_string)).collect();
    assert_eq!(words(&at_once), all, "{at_once:?}");
    assert_eq!(words(&file), all, "{file:?}");

    let found = markdown::parse(&file);
    for (n, pin) in found.iter().enumerate() {
        let left = markdown::without(&file, &[pin]);
        let gap = file.len() - left.len();
        let same = file.bytes().zip(left.bytes()).take_while(|(a, b)| a == b).count();
        let tail = file.bytes().rev().zip(left.bytes().rev()).take_while(|(a, b)| a == b).count();
        assert!(same + tail >= left.len(), "one piece of {gap} bytes goes: {file:?} became {left:?}");
        if n >= old.len() {
            let mut others = all.clone();
            others.remove(n);
            assert_eq!(words(&left), others, "without pin {n} of {file:?}");
        }
    }
    block(&found);
    split(&text.replace('\0', "\n"));
}

fn added(file: &str, texts: &[&str]) -> String {
    if texts.is_empty() {
        return String::new();
    }
    markdown::addition((!file.is_empty()).then_some(file), texts, "2026-01-02T03:04:05.000Z", Some(2))
}

fn words(file: &str) -> Vec<String> {
    markdown::parse(file).into_iter().map(|pin| pin.text).collect()
}

/// What a session start brings back keeps to its room and holds each pin that it does not name as left out.
fn block(found: &[markdown::Pin]) {
    for room in [0, 900, 10_000] {
        let block = pins::fit(found, Path::new("/c/smartcompact/s.md"), room);
        let kept = (0..found.len()).filter(|n| !block.left_out.contains(n));
        for pin in kept.clone().map(|n| &found[n]) {
            assert!(block.text.contains(&format!("\n{}\n", pin.text)), "{:?} in {:?}", pin.text, block.text);
        }
        assert!(
            kept.count() == 0 || si::text::json_units(&block.text) <= room,
            "{} units of {room}",
            si::text::json_units(&block.text)
        );
    }
}

/// Standard input is cut into pins at white space, and nothing else is lost.
fn split(input: &str) {
    // A byte order mark at the start is no part of the text.
    let squeeze = |text: &str| text.chars().filter(|c| !c.is_whitespace() && *c != '\u{feff}').collect::<String>();
    let pins = markdown::split(input);
    assert!(pins.iter().all(|pin| !pin.is_empty() && markdown::trim(pin) == *pin), "{pins:?}");
    assert_eq!(squeeze(&pins.concat()), squeeze(input));
}

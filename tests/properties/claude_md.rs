//! The block in CLAUDE.md: whatever the file holds, everything outside the block stays byte for byte, a second time
//! changes nothing, and taking the block out gives back what was there.

use si::compaction::claude_md::{merge, strip};

/// The input is a file.
pub fn check(data: &[u8]) {
    let file = placed(data);
    let Some(merged) = merge(&file) else {
        assert!(strip(&file).is_some(), "a file that needs nothing has a block");
        return;
    };
    assert_eq!(merge(&merged), None, "a second time changes nothing: {}", shown(&file));
    let stripped = strip(&merged).expect("a block was put in");
    match strip(&file) {
        None => {
            assert_eq!(shown(&stripped), shown(&file), "taking out gives back what was there");
            assert!(merged.starts_with(&file), "the block goes to the end");
        }
        // Which line end around a block belongs to it differs between one block and several.
        Some(without) => assert_eq!(lines(&without), lines(&stripped), "around the block: {}", shown(&file)),
    }
}

/// The markers by short names, so that a fuzzer puts them anywhere: `\x01` begins a block, `\x02` ends it.
fn placed(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    for byte in data {
        match byte {
            1 => out.extend_from_slice(b"<!-- BEGIN session-intelligence:rules -->"),
            2 => out.extend_from_slice(b"<!-- END session-intelligence:rules -->"),
            byte => out.push(*byte),
        }
    }
    out
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()).collect()
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

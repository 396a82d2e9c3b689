//! si beside other status lines: in every round each draws once, in turns, over the same transcript.
//!
//! Every round begins with a turn that no tool has seen, since a cache that lives for some seconds answers a repeated
//! redraw without looking at anything. The second figure is a redraw right after it, with nothing new.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use super::{Bench, line_kept};

/// Draws for so many rounds, and tells the medians as a table.
pub(super) fn compare(bench: &Bench, peers: &[(String, Vec<String>)], rounds: usize) -> String {
    let transcript = bench.transcript(48);
    let own = ("si".to_string(), vec![bench.si_text(), "statusline".into()]);
    let tools: Vec<&(String, Vec<String>)> = std::iter::once(&own).chain(peers).collect();
    let input = bench.data.join("input");
    let mut times: Vec<[Vec<Duration>; 2]> = tools.iter().map(|_| Default::default()).collect();
    for round in 0..=rounds {
        bench.append_turn(&transcript, 900_000 + round);
        fs::write(&input, line_kept(bench, 48)).unwrap();
        for turn in (0..2 * tools.len()).map(|turn| (turn / tools.len(), (round + turn) % tools.len())) {
            let (kind, at) = turn;
            let time = bench.run(&tools[at].1, &input, &bench.repo(), &[]);
            if round > 0 {
                times[at][kind].push(time);
            }
        }
    }
    let mut table = String::from(
        "| status line | after one more turn, ms | times si | nothing new, ms | times si | rounds |\n|---|---|---|---|---|---|\n",
    );
    let medians: Vec<[f64; 2]> = times.iter_mut().map(|kinds| [median(&mut kinds[0]), median(&mut kinds[1])]).collect();
    for (tool, [fresh, again]) in tools.iter().zip(&medians) {
        let [own_fresh, own_again] = medians[0];
        let row = (fresh, fresh / own_fresh, again, again / own_again);
        writeln!(table, "| {} | {:.2} | {:.1} | {:.2} | {:.1} | {rounds} |", tool.0, row.0, row.1, row.2, row.3)
            .unwrap();
    }
    table
}

/// In milliseconds.
fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

#!/usr/bin/env bash
# Makes the benchmark data once (needs python3 and git), builds si for release, runs it and the peers that are
# installed in interleaved pairs, and writes docs/BENCHMARKS.md.
#
#   scripts/bench.sh [DATA_DIR] [--pairs N] [--only WORD]
#
# Peers are looked for in DATA_DIR/peers: node_modules (npm i --prefix DATA_DIR/peers ccstatusline ccusage
# @cometix/ccline-linux-x64 @owloops/claude-powerline) and bin (cargo install ccstatus --root DATA_DIR/peers).
set -euo pipefail
cd "$(dirname "$0")/.."
data=${TMPDIR:-/tmp}/si-bench
case "${1:-}" in ""|--*) ;; *) data=$1; shift ;; esac
mkdir -p "$data"
gen=benches/gen.py
[ -d "$data/repo/.git" ] || python3 "$gen" repo --out "$data/repo" >/dev/null
for size in 1 48 200; do
    [ -e "$data/t$size/stdin.json" ] && continue
    python3 "$gen" transcript --size ${size}M --out "$data/t$size" --cwd "$data/repo" >/dev/null
    python3 "$gen" stdin --truth "$data/t$size/truth.json" --transcript x --cwd "$data/repo" --out "$data/t$size/stdin.json"
done
peers=()
modules=$data/peers/node_modules
# A peer that is not installed is left out of the table.
peer() {
    local name=$1 program=$2
    shift 2
    if [ -e "$program" ]; then peers+=(--peer "$name=$*"); fi
}
version() { sed -n 's/^ *"version": *"\(.*\)".*/\1/p' "$modules/$1/package.json" 2>/dev/null | head -1; }
if node=$(command -v node); then
    for name in ccstatusline claude-powerline; do
        program=$modules/.bin/$name
        peer "$name $(version $name)" "$program" "$node" "$(readlink -f "$program")"
    done
    program=$modules/.bin/ccusage
    peer "ccusage $(version ccusage) statusline --offline" "$program" "$node" "$(readlink -f "$program")" statusline --offline
fi
program=$modules/@cometix/ccline-linux-x64/ccline
peer "CCometixLine $(version @cometix/ccline-linux-x64)" "$program" "$program"
program=$(command -v ccstatus || echo "$data/peers/bin/ccstatus")
peer "$(sed -n 's/^"\(ccstatus [^ ]*\).*/\1/p' "$data/peers/.crates.toml" 2>/dev/null || echo ccstatus)" "$program" "$program"
table=$(mktemp)
cargo build --release
# As it is installed: what the linker leaves in the page cache lies there in small pieces, and starts more slowly.
install -m 755 target/release/si "$data/si"
sync
# The harness itself need not be fast, and is built much sooner without the release profile.
SI_BIN=$data/si cargo bench --profile dev --bench process -- "$data" "${peers[@]}" "$@" --markdown "$table"
{
    echo "# Benchmarks"
    echo
    echo "Whole processes, spawn to exit, page cache warm, in interleaved pairs with the floor (\`/bin/true\`, or \`git status\`"
    echo "where a row says so); the ratio is the median of the pairs' ratios. Made by \`scripts/bench.sh\` on"
    echo "$(date -u +%F): $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), $(nproc) cores, Linux $(uname -r | cut -d- -f1), git $(git --version | cut -d' ' -f3)."
    echo
    echo "The repository has 10,000 files and 30 modified ones; the transcripts have the shape that Claude Code writes."
    echo "\"After one more turn\" appends about 30 KB with a new message id before each run. The rows on growth have si itself"
    echo "as their floor: with a small transcript, or in a session of ten to twenty calls."
    echo
    echo "The second table sets status lines side by side, each with the settings it comes with: in every round each draws"
    echo "once, in turns, after a turn that none of them has seen. ccstatus reads neither transcript nor work tree: it shows"
    echo "the model, the context and the quotas that Claude Code hands to it."
    echo
    cat "$table"
} > docs/BENCHMARKS.md
rm -f "$table"
echo "written: docs/BENCHMARKS.md"

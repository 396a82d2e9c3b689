#!/usr/bin/env bash
# Makes the benchmark data once (needs python3 and git), builds si for release, runs it and the peers that are
# installed in interleaved pairs, and writes docs/BENCHMARKS.md.
#
#   scripts/bench.sh [DATA_DIR] [--pairs N] [--only WORD]
#
# Peers are looked for in DATA_DIR/peers/node_modules (npm i ccstatusline @cometix/ccline-linux-x64 ccusage
# @owloops/claude-powerline) and on PATH (ccstatus).
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
add() { [ -e "$2" ] && peers+=(--peer "$1=${*:2}") || true; }
modules=$data/peers/node_modules
if node=$(command -v node); then
    [ -e "$modules/.bin/ccstatusline" ] && peers+=(--peer "ccstatusline=$node $(readlink -f "$modules/.bin/ccstatusline")")
    [ -e "$modules/.bin/claude-powerline" ] && peers+=(--peer "claude-powerline=$node $(readlink -f "$modules/.bin/claude-powerline")")
    [ -e "$modules/.bin/ccusage" ] && peers+=(--peer "ccusage=$node $(readlink -f "$modules/.bin/ccusage") statusline --offline")
fi
add ccline "$modules/@cometix/ccline-linux-x64/ccline"
if ccstatus=$(command -v ccstatus); then add ccstatus "$ccstatus"; fi
table=$(mktemp)
cargo build --release
# The harness itself need not be fast, and is built much sooner without the release profile.
SI_BIN=$PWD/target/release/si cargo bench --profile dev --bench process -- "$data" "${peers[@]}" "$@" --markdown "$table"
{
    echo "# Benchmarks"
    echo
    echo "Whole processes, spawn to exit, page cache warm, in interleaved pairs with the floor (\`/bin/true\`, or \`git status\`"
    echo "where a row says so); the ratio is the median of the pairs' ratios. Made by \`scripts/bench.sh\` on"
    echo "$(date -u +%F): $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), $(nproc) cores, Linux $(uname -r | cut -d- -f1), git $(git --version | cut -d' ' -f3)."
    echo
    echo "The repository has 10,000 files and 30 modified ones; the transcripts have the shape that Claude Code writes."
    echo "\"After one more turn\" appends about 30 KB with a new message id before each run."
    echo
    cat "$table"
} > docs/BENCHMARKS.md
rm -f "$table"
echo "written: docs/BENCHMARKS.md"

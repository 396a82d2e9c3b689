#!/usr/bin/env bash
# Fuzzes every target, or those that are named: scripts/fuzz.sh [SECONDS [TARGET…]]. Starts from tests/corpus; what it
# learns is kept in fuzz/corpus, what it finds in fuzz/artifacts. Without cargo-fuzz it says so and does nothing.
#
# No sanitizer: the package holds no unsafe code, so it would find nothing and take half the speed; without one any
# toolchain will do.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-20}
shift || true
if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "skipped: fuzzing, which needs cargo-fuzz (cargo install cargo-fuzz --locked)"
    exit 0
fi
cargo fuzz build -s none
[ $# -gt 0 ] || set -- $(cargo fuzz list)
for target in "$@"; do
    mkdir -p "fuzz/corpus/$target"
    cargo fuzz run -s none "$target" "fuzz/corpus/$target" "tests/corpus/$target" -- -dict="tests/corpus/$target.dict" \
        -max_len=4096 -timeout=60 -max_total_time="$seconds" -verbosity=0 -print_final_stats=1
done

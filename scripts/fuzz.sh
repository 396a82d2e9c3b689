#!/usr/bin/env bash
# Fuzzes every target, or those that are named.
#
#   scripts/fuzz.sh                      the short run of .ci/run: counted inputs from one seed, so that it finds the
#                                        faults of the change at hand and hardly ever one by luck
#   scripts/fuzz.sh SECONDS [TARGET…]    explores, from where the run before it stopped (fuzz/corpus)
#
# Both start from tests/corpus; finds are written to fuzz/artifacts. Without cargo-fuzz it says so and does nothing.
#
# No sanitizer: the package holds no unsafe code, so it would find nothing and take half the speed; without one any
# toolchain will do.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "skipped: fuzzing, which needs cargo-fuzz (cargo install cargo-fuzz --locked)"
    exit 0
fi
if [ $# -eq 0 ]; then
    kept=$(mktemp -d)
    trap 'rm -rf "$kept"' EXIT
    limits=(-seed=1 -runs=3000)
else
    kept=fuzz/corpus
    limits=(-max_total_time="$1")
    shift
fi
cargo fuzz build -s none
[ $# -gt 0 ] || set -- $(cargo fuzz list)
for target in "$@"; do
    mkdir -p "$kept/$target"
    cargo fuzz run -s none "$target" "$kept/$target" "tests/corpus/$target" -- -dict="tests/corpus/$target.dict" \
        -max_len=4096 -timeout=60 "${limits[@]}" -verbosity=0 -print_final_stats=1
done

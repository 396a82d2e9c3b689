#!/bin/sh
# Builds a static si for Linux and packs it with its completions and manual pages into target/dist.
#
#   scripts/dist.sh [TARGET]     (default: this machine; a musl target is static everywhere)
set -eu
cd "$(dirname "$0")/.."
fail() { printf 'dist.sh: %s\n' "$*" >&2; exit 1; }

target=${1:-$(rustc -vV | sed -n 's/^host: //p')}
out=${CARGO_TARGET_DIR:-target}
case $target in
*-linux-gnu*)
    # Built for the host without --target, where scripts/rustc-static adds the flag for static linking.
    [ -z "${1:-}" ] || fail "a static build for glibc is made on its own machine: leave the target out, or name a musl one."
    cargo build --release --locked --bin si
    binary=$out/release/si
    ;;
*-linux-musl*)
    cargo build --release --locked --bin si --target "$target"
    binary=$out/$target/release/si
    ;;
*) fail "$target is not Linux: cargo install --path . builds what there is to build." ;;
esac
if readelf -d "$binary" | grep -q NEEDED; then
    fail "$binary is not static: install the static libc (libc6-dev, glibc-static) and run this again."
fi

version=$("$binary" --version | cut -d' ' -f2)
name=si-$version-$target
stage=$out/dist/$name
rm -rf "$stage"
mkdir -p "$stage/man1"
cp "$binary" README.md LICENSE CHANGELOG.md "$stage/"
"$binary" man --dir "$stage/man1"
"$binary" completions bash >"$stage/si.bash"
"$binary" completions zsh >"$stage/_si"
"$binary" completions fish >"$stage/si.fish"
tar -C "$out/dist" -czf "$out/dist/$name.tar.gz" "$name"
echo "$out/dist/$name.tar.gz"

#!/bin/sh
# Builds si, installs it below PREFIX (default ~/.local), and puts it into Claude Code.
#
#   ./install.sh [--dry-run] [--no-statusline] [--no-claude-md]    the options are those of `si install`
#
# With --dry-run the program is built, and what would be changed is shown; nothing is installed.
# Safe to run again: an upgrade replaces the program in one step and leaves the rest as it is.
set -eu

say() { printf 'install.sh: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

dry=
for option; do
    case $option in
    --dry-run) dry=yes ;;
    --no-statusline | --no-claude-md) ;;
    -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//p;}' "$0"; exit 0 ;;
    *) say "$option is no option; there are --dry-run, --no-statusline and --no-claude-md."; exit 64 ;;
    esac
done

here=$(cd "$(dirname "$0")" && pwd)
[ -n "${PREFIX:-}${HOME:-}" ] || fail "there is no home folder: set HOME, or PREFIX to where si shall go."
prefix=${PREFIX:-$HOME/.local}
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac

command -v cargo >/dev/null 2>&1 || PATH=$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin
command -v cargo >/dev/null 2>&1 || fail "cargo is missing: install Rust from https://rustup.rs and run this again."
command -v cc >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 ||
    fail "a C compiler is missing: install gcc or clang and run this again."
[ -n "$dry" ] || { mkdir -p "$prefix/bin" 2>/dev/null && [ -w "$prefix/bin" ]; } ||
    fail "$prefix/bin cannot be written: choose another folder with PREFIX=… and run this again."

# The program is built beside its place and moved there, so that a running status line never sees half of it.
stage=$prefix/bin/.si-install.$$
[ -z "$dry" ] || stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
trap 'exit 1' HUP INT TERM
(cd "$here" && cargo install --quiet --path . --locked --force --no-track --root "$stage") ||
    fail "the build failed; the reason stands above. It needs Rust 1.89 or newer."
if [ -n "$dry" ]; then
    "$stage/bin/si" install --program "$prefix/bin/si" "$@"
    say "built, and nothing installed: this was a dry run"
    exit 0
fi
mv -f "$stage/bin/si" "$prefix/bin/si"
say "installed $prefix/bin/si ($("$prefix/bin/si" --version))"

# Completions and the manual page are a convenience: where they cannot be written, the rest goes on.
share() {
    mkdir -p "$(dirname "$prefix/share/$1")" && "$prefix/bin/si" $2 >"$stage/page" &&
        mv -f "$stage/page" "$prefix/share/$1" || say "$prefix/share/$1 was not written"
}
share bash-completion/completions/si "completions bash"
share zsh/site-functions/_si "completions zsh"
share fish/vendor_completions.d/si.fish "completions fish"
mkdir -p "$stage/man" "$prefix/share/man/man1" && "$prefix/bin/si" man --dir "$stage/man" &&
    mv -f "$stage"/man/*.1 "$prefix/share/man/man1/" || say "$prefix/share/man/man1/si.1 was not written"

"$prefix/bin/si" install "$@"
case :$PATH: in
*":$prefix/bin:"*) ;;
*) say "$prefix/bin is not on your PATH: add it to type si in a terminal. Claude Code needs no PATH for it." ;;
esac

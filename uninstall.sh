#!/bin/sh
# Takes si out of Claude Code and removes the program, its completions and its manual page.
#
#   ./uninstall.sh [--purge] [--dry-run]    --purge removes si's own files too: configuration, pins, history, logs
#
# PREFIX as for install.sh. Safe to run again.
set -eu

say() { printf 'uninstall.sh: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

[ -n "${PREFIX:-}${HOME:-}" ] || fail "there is no home folder: set HOME, or PREFIX to where si was installed."
prefix=${PREFIX:-$HOME/.local}
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac

if [ ! -x "$prefix/bin/si" ]; then
    case " $* " in *" --purge "*)
        fail "--purge needs the program, and there is no $prefix/bin/si: name its place with PREFIX=…, or run install.sh and then this again." ;;
    esac
    say "there is no $prefix/bin/si: nothing to do. If it was installed elsewhere, name the place with PREFIX=…"
    exit 0
fi
"$prefix/bin/si" uninstall "$@" || fail "$prefix/bin/si stays until this is settled."
case " $* " in *" --dry-run "* | *" --help "* | *" -h "*) exit 0 ;; esac
# The program names its manual pages itself: one for each of its commands.
pages=$(mktemp -d) || fail "there is no room for a temporary folder; si is out of Claude Code, but $prefix/bin/si stays."
trap 'rm -rf "$pages"' EXIT
"$prefix/bin/si" man --dir "$pages" || say "its manual pages stay in $prefix/share/man/man1"
for page in "$pages"/*.1; do
    rm -f "$prefix/share/man/man1/${page##*/}"
done
rm -f "$prefix/bin/si" \
    "$prefix/share/bash-completion/completions/si" \
    "$prefix/share/zsh/site-functions/_si" \
    "$prefix/share/fish/vendor_completions.d/si.fish"
say "removed $prefix/bin/si, its completions and its manual pages"
case " $* " in *" --purge "*) ;; *) say "to remove what stays too, run install.sh and then uninstall.sh --purge" ;; esac

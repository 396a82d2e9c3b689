#!/bin/sh
# Installs versions of Claude Code with npm below FOLDER/node_modules, one folder each, and prints their programs.
# Nothing else of the machine is touched, and no account is needed.
#
#   tests/client/fetch.sh FOLDER VERSION…
set -eu
say() { printf 'fetch.sh: %s\n' "$*" >&2; }
folder=$1
shift
command -v npm >/dev/null 2>&1 || { say "skipped: npm is not installed"; exit 1; }
case $(uname -s) in Linux) system=linux ;; Darwin) system=darwin ;; *) say "skipped: no client for $(uname -s)"; exit 1 ;; esac
case $(uname -m) in x86_64 | amd64) machine=x64 ;; aarch64 | arm64) machine=arm64 ;; *) say "skipped: no client for $(uname -m)"; exit 1 ;; esac
if [ $system = linux ] && ldd --version 2>&1 | grep -qi musl; then machine=$machine-musl; fi
packages=
programs=
for version; do
    program=$folder/node_modules/claude-$version/claude
    [ -x "$program" ] || packages="$packages claude-$version@npm:@anthropic-ai/claude-code-$system-$machine@$version"
    programs="$programs $program"
done
if [ -n "$packages" ]; then
    mkdir -p "$folder"
    [ -f "$folder/package.json" ] || echo '{"private": true}' >"$folder/package.json"
    # shellcheck disable=SC2086 -- one word for each package
    npm install --prefix "$folder" --save-exact --no-audit --no-fund --loglevel=error --fetch-retries=1 $packages >&2 ||
        { say "skipped: the npm registry did not answer"; exit 1; }
fi
for program in $programs; do
    case $program in /*) ;; *) program=$PWD/$program ;; esac
    echo "$program"
done

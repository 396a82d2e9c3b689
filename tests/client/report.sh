#!/bin/sh
# Checks a release of Claude Code against si: installs that client, runs every scenario with it, and lists the payload
# and transcript fields that are new, and those that si reads and this client no longer sends.
#
#   tests/client/report.sh VERSION
set -eu
[ $# -eq 1 ] || { echo "usage: $0 VERSION   (a version of Claude Code, such as 2.1.332)" >&2; exit 64; }
cd "$(dirname "$0")/../.."
client=$(tests/client/fetch.sh "target/clients/$1" "$1") || exit 1
status=0
SI_CLIENT=$client cargo test --quiet --test client || status=$?
SI_CLIENT=$client cargo test --quiet --test client -- --report
exit $status

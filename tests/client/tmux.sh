#!/bin/sh
# Shows the real client with si's status line in a terminal of a given width, as it looks in use: a sample session
# against the stand-in API, then the screen, with colours. The picture in the README is made from it.
#
#   tests/client/tmux.sh [COLUMNS]     (default 120; needs tmux and a client, see main.rs)
set -eu
cd "$(dirname "$0")/../.."
exec cargo test --quiet --test client -- --screen "${1:-120}"

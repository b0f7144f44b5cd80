#!/usr/bin/env bash
# Makes the pictures of the README again, of the demo, without a display.
#
#   tests/ui/pictures.sh [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$(realpath "${1:-build/release}")
work=/tmp/shardwright-pictures  # it is to be read in one of them
[ ! -e "$work" ] || { echo "$work is in the way"; exit 3; }
trap 'rm -rf "$work"' EXIT
"$build/app/shardwright" demo "$work" > /dev/null
cat > "$work/script" <<END
screenshot $PWD/assets/screenshot.png
key Ctrl+H
wait
screenshot $PWD/assets/bytes.png
key Esc
filter
key Ctrl+Home
wait
screenshot $PWD/assets/overview.png
key Ctrl+Home
key Ctrl+T
wait
screenshot $PWD/assets/table.png
key Esc
key Ctrl+M
wait
screenshot $PWD/assets/mesh.png
key Esc
open-plan
dry-run
wait
screenshot $PWD/assets/plan.png
key Esc
END
# Nothing of who makes them: neither what was opened before nor where.
(cd "$work" && env -u DISPLAY XDG_STATE_HOME="$work/state" XDG_CONFIG_HOME="$work/config" \
  "$build/app/shardwright-gui" step_9000 --spec spec.json --replay script --size 1280x720)
ls -l assets/*.png

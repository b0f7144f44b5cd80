# Makes the pictures of the README again, of the demo, without a display.
#
#   tests/ui/pictures.sh [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$(realpath "${1:-build/release}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/app/shardwright" demo "$work" > /dev/null
cat > "$work/script" <<END
screenshot assets/screenshot.png
key Ctrl+H
wait
screenshot assets/bytes.png
key Esc
filter
key Ctrl+Home
wait
screenshot assets/overview.png
END
# Nothing of who makes them: neither what was opened before nor where.
env -u DISPLAY XDG_STATE_HOME="$work/state" "$build/app/shardwright-gui" "$work/step_9000" \
  --spec "$work/spec.json" --replay "$work/script" --size 1280x720
ls -l assets/*.png

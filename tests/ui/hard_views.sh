# What was hard to see at the desktop, in real windows under Xvfb: zoom on all pictures of a tensor,
# the tiles of a rank, a matrix of 16 x 16 as a whole, a folder that is dropped. What stands on the
# screen is read from the window's own export (F12 as PNG, Shift+F12 as SVG with its texts).
# $WORK/pictures keeps a picture of each for a person to look at.
set -eu
source "$(dirname "$0")/with_window.sh"
export XDG_CONFIG_HOME="$WORK/config" XDG_STATE_HOME="$WORK/state"
whole="$(ls -d "$DATA"/torch-*/healthy_fsdp | head -1)/ckpt"
spec="$WORK/demo/spec.json"

# Where a named item stands when the same desktop is drawn without X: place_of NAME LINE...
place_of() {
  local name=$1
  shift
  printf '%s\n' wait "$@" wait "where $name" > "$WORK/script"
  env -u DISPLAY "$GUI" "$WORK/demo/step_9000" --spec "$spec" --replay "$WORK/script" \
    --size 1280x720 --scale 1
}

if [ "${1:-}" != inside ]; then
  rm -rf "$WORK" && mkdir -p "$WORK/home" "$WORK/pictures" "$WORK/matrix"
  "$CLI" demo "$WORK/demo" > /dev/null
  cp -r "$whole" "$WORK/dropped"
  python3 - "$WORK/matrix/model.safetensors" <<'END'
import json, struct, sys
numbers = [(i - 128) / 8 for i in range(256)]
head = json.dumps({"w": {"dtype": "F32", "shape": [16, 16], "data_offsets": [0, 1024]}}).encode()
head += b" " * (-len(head) % 8)
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(head)) + head + struct.pack("<256f", *numbers))
END
  place_of mesh > "$WORK/mesh" || { echo "skipped: no EGL"; exit 77; }
  run_under_xvfb
fi

away() { xdotool mousemove 640 704 sleep 0.3; }

beside="$WORK/demo/step_9000"
open_window "$WORK/demo/step_9000" --spec "$spec" --record "$WORK/record"
title_says "step_9000 - Will not load: 1 cause, 3 tensors"
away

# Zoomed in, all three pictures show the tile at the same corner, and only that.
[ "$(count_on_screen "rank 32")" = 3 ] || fail "the whole is not shown in three pictures"
xdotool key --delay 200 plus plus plus plus
record_says "^view .*zoom=5.0625"
screen_says "5.06×"
[ "$(count_on_screen "rank 0")" = 3 ] || fail "three pictures do not show the same tile"
[ "$(count_on_screen "rank 32")" = 0 ] || fail "a picture was not zoomed"
picture zoom
xdotool key 0
record_says "^view .*zoom=1 "

# A rank that is clicked is set apart, and its tiles come into sight.
read -r x y < "$WORK/mesh"
click_at $((x + 3)) $((y + 8))
away
record_says "^view .*rank=48"
screen_says "rank 48"
picture rank
press Escape
# By keyboard alone.
press ctrl+shift+p
xdotool type --delay 60 "rank 33"
press Return
record_says "^view .*rank=33"
screen_says "rank 33"
press Escape

close_window

# A matrix of 16 x 16, whole.
beside="$WORK/matrix"
open_window "$WORK/matrix"
title_says "matrix - No finding"
press Down
press ctrl+shift+v
away
screen_says "-16"
for number in -15.9 0.125 15.75 15.88; do
  [ "$(count_on_screen "$number")" = 1 ] || fail "the matrix lacks $number"
done
picture matrix
close_window

# A folder that a file manager drops on the window.
open_window --record "$WORK/record"
python3 "$(dirname "$0")/drop_file.py" "$window" 600 300 "$WORK/dropped" || fail "the drop is refused"
title_says "dropped - No finding"
beside="$WORK/dropped"
picture dropped
close_window
echo "zoomed, set apart, read, dropped"

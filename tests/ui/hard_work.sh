# Work that was hard at the desktop, in real windows under Xvfb: the values at an index, the next
# difference of two checkpoints, a repair in a window of 960 x 540, the tip of every control, a
# record that is played again and comes to the same view. $WORK/pictures keeps a picture of each.
set -eu
source "$(dirname "$0")/with_window.sh"
export XDG_CONFIG_HOME="$WORK/config" XDG_STATE_HOME="$WORK/state"
spec="$WORK/demo/spec.json"
beside="$WORK/demo/step_9000"

# Draws the demo without X at $1 and carries out the lines.
play() {
  local size=$1
  shift
  printf '%s\n' wait "$@" > "$WORK/script"
  env -u DISPLAY "$GUI" "$beside" --spec "$spec" --replay "$WORK/script" --size "$size" --scale 1
}

if [ "${1:-}" != inside ]; then
  rm -rf "$WORK" && mkdir -p "$WORK/home" "$WORK/pictures" "$WORK/a" "$WORK/b"
  "$CLI" demo "$WORK/demo" > /dev/null
  python3 - "$WORK" <<'END'
import json, struct, sys
numbers = [float(i) for i in range(100 * 40)]
head = json.dumps({"w": {"dtype": "F32", "shape": [100, 40], "data_offsets": [0, 16000]}}).encode()
head += b" " * (-len(head) % 8)
for name in "ab":
    with open(f"{sys.argv[1]}/{name}/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + struct.pack("<4000f", *numbers))
    numbers[71 * 40 + 33] += 0.5
END
  play 1280x720 "key Ctrl+Shift+V" wait "where values/index" > "$WORK/index" ||
    { echo "skipped: no EGL"; exit 77; }
  play 1280x720 tips > "$WORK/tips"
  run_under_xvfb
fi

# The values at an index, typed at once after a click; what is typed replaces what was there.
open_window "$beside" --spec "$spec" --record "$WORK/record"
title_says "step_9000 - Will not load: 1 cause, 3 tensors"
press ctrl+shift+v
record_says "^values \[0, 0:8192, 0:640\]"
sleep 1
read -r x y < "$WORK/index"
for index in "[0, 4096, 32]" "[287, 8191, 639]"; do
  xdotool mousemove "$x" "$y" sleep 0.3 click 1 type --delay 1 "$index"
  press Return
done
record_says "^values \[0, 4096:4160, 32:48\]"
record_says "^values \[287, 8191:8192, 639:640\]"
# By keyboard alone: an index, and the next pages.
press ctrl+g
xdotool type --delay 20 "[3, 64, 16]"
press Return
record_says "^values \[3, 64:128, 16:32\]"
press ctrl+Down
record_says "^values \[3, [789][0-9]:[0-9]*, 16:32\]"  # the rows after those on screen
press ctrl+Right
record_says "^values \[3, [789][0-9]:[0-9]*, [23][0-9]:[0-9]*\]"
press ctrl+g
xdotool type --delay 20 "[287, 8191, 639]"
press Return
xdotool mousemove 640 704 sleep 0.3
screen_says "8,191"
picture index
press F3
screen_says "There is no NaN in this slice."
close_window

# What differs from another checkpoint, element by element.
beside="$WORK/a"
open_window "$WORK/a" --against "$WORK/b" --record "$WORK/record"
title_says "a - "
press Down
press ctrl+k
press Return
record_says "^compare $WORK/b"
sleep 1
press ctrl+shift+v
press F3
record_says "^values next-difference"
screen_says "1 of 1,024 elements differ, by 0.5 at most."
screen_says "2873.5"
picture difference
close_window

# A small screen: the filter, the plan and the repair.
beside="$WORK/demo/step_9000"
SIZE=960x540 open_window "$beside" --spec "$spec" --record "$WORK/record"
title_says "step_9000 - Will not load: 1 cause, 3 tensors"
picture small
press ctrl+f
press ctrl+a
xdotool type --delay 20 "up_proj"
record_says "^filter up_proj"
picture small-filter
press Escape
press ctrl+r
picture small-plan
press ctrl+Return
for attempt in $(seq 60); do [ -f "$beside-repaired/certificate.json" ] && break; sleep 0.5; done
[ -f "$beside-repaired/certificate.json" ] || fail "nothing was repaired"
for attempt in $(seq 30); do
  press ctrl+q
  kill -0 $gui 2> /dev/null || break
  press Escape  # it asks as long as the result is being proved
done
kill -0 $gui 2> /dev/null && fail "Ctrl+Q does not quit"
rm -r "$beside-repaired"

# The tip of every control is shown while the mouse is over it.
open_window "$beside" --spec "$spec"
title_says "step_9000 - Will not load: 1 cause, 3 tensors"
python3 "$(dirname "$0")/tips.py" "$WORK/tips" || fail "a tip is missing"
close_window

# What was done in a window is played again and comes to the same view.
open_window "$beside" --spec "$spec" --record "$WORK/record"
title_says "step_9000 - Will not load: 1 cause, 3 tensors"
xdotool mousemove 640 704
press Down
press ctrl+2
xdotool key --delay 200 plus plus plus
press bracketright
record_says "^view .*zoom=3.375 .*at=1,0,0"
export_view shift+F12 svg
mv "$beside-view.svg" "$WORK/shown.svg"
picture record
close_window
cp "$WORK/record" "$WORK/script"
printf 'key Shift+F12\nwait\nclick save/write\n' >> "$WORK/script"
env -u DISPLAY "$GUI" --replay "$WORK/script" --size 1280x720 --scale 1 > "$WORK/said" 2>&1 ||
  fail "the record does not play"
python3 - "$WORK/shown.svg" "$beside-view.svg" <<'END' || fail "the record comes to another view"
import re, sys
texts = [sorted(re.findall(r">([^<>]*)</text>", open(path).read())) for path in sys.argv[1:]]
print(set(texts[0]) ^ set(texts[1]))
sys.exit(0 if texts[0] == texts[1] and "3.38×" in texts[0] else 1)
END
echo "went to an index and a difference, repaired in a small window, saw tips, played again"

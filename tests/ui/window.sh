# The window itself, under Xvfb, with a real mouse and keyboard: opens a broken checkpoint, filters,
# reviews the repair and applies it. Where each button stands is asked of the same desktop drawn
# without X at the same size.
set -eu
for tool in Xvfb xvfb-run xdotool; do
  command -v $tool > /dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
# Neither settings nor recent places of whoever runs this.
export XDG_CONFIG_HOME="$WORK/config" XDG_STATE_HOME="$WORK/state"
case_dir=$(ls -d "$DATA"/torch-*/s1_placement_not_transposed | head -1)
if [ "${1:-}" != inside ]; then
  rm -rf "$WORK" && mkdir -p "$WORK"
  cp -r "$case_dir/ckpt" "$WORK/step"
  printf 'wait\nwhere filter\nwhere bar/next\nopen-plan\nwait\nwhere plan/apply\n' > "$WORK/script"
  # Without EGL nothing says where the buttons are.
  env -u DISPLAY "$GUI" "$WORK/step" --spec "$case_dir/spec.json" --replay "$WORK/script" \
    --size 1280x720 --scale 1 > "$WORK/places" || { echo "skipped: no EGL"; exit 77; }
  exec xvfb-run -a -w 30 -n $((100 + $$ % 400)) -s "-screen 0 1280x720x24 -noreset" bash "$0" inside
fi

# On a busy machine the X server may still be on its way.
for attempt in $(seq 60); do xdotool getdisplaygeometry > /dev/null 2>&1 && break; sleep 0.5; done
"$GUI" "$WORK/step" --spec "$case_dir/spec.json" --size 1280x720 --scale 1 > "$WORK/said" 2>&1 &
gui=$!
trap 'kill $gui 2> /dev/null || true' EXIT
fail() { echo "$1"; cat "$WORK/said"; exit 1; }
window=
for attempt in $(seq 60); do
  kill -0 $gui 2> /dev/null || fail "the window has closed itself"
  window=$(xdotool search --onlyvisible --name 'Shardwright$' 2> /dev/null | head -1) && [ -n "$window" ] && break
  sleep 0.5
done
[ -n "$window" ] || fail "no window has appeared"
xdotool windowmove "$window" 0 0 windowfocus "$window"
sleep 3
shot() { if command -v import > /dev/null; then import -window root "$WORK/$1.png"; fi; }
# Takes picture $2 until it differs from picture $1: a slow machine only takes longer.
until_differ() {
  [ -f "$WORK/$1.png" ] || return 0
  for attempt in $(seq 40); do
    shot "$2"
    cmp -s "$WORK/$1.png" "$WORK/$2.png" || return 0
    sleep 0.5
  done
  fail "$3"
}
click() {
  read -r x y <<< "$(sed -n "$1p" "$WORK/places")"
  # A hand takes longer than a frame between coming, pressing and letting go.
  xdotool mousemove "$x" "$y" sleep 0.3 mousedown 1 sleep 0.2 mouseup 1 sleep 0.8
}
shot opened
click 1
xdotool key ctrl+a sleep 0.2 type --delay 60 weight
until_differ opened filtered "typing into the filter changed nothing"
sleep 1
shot filtered
click 2
until_differ filtered plan "Review repair opened nothing"
sleep 1
click 3
for attempt in $(seq 60); do [ -f "$WORK/step-repaired/certificate.json" ] && break; sleep 0.5; done
sleep 1.5
shot repaired
[ -f "$WORK/step-repaired/certificate.json" ] || fail "Apply has repaired nothing"
diff -r "$case_dir/ckpt" "$WORK/step" || fail "the checkpoint that was opened has changed"
xdotool key ctrl+q
for attempt in $(seq 20); do kill -0 $gui 2> /dev/null || break; sleep 0.3; done
kill -0 $gui 2> /dev/null && fail "Ctrl+Q does not quit"
wait $gui || fail "the window left with an error"
echo "opened, filtered, reviewed, repaired, closed"

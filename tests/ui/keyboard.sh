# The window under Xvfb by keyboard alone: opens the demo, follows its finding to the bytes, repairs
# it and has it proved, opens another checkpoint and comes back. What the window has come to stands in
# its title; what the keys have asked for stands in its record.
set -eu
for tool in Xvfb xvfb-run xdotool; do
  command -v $tool > /dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
if [ "${1:-}" != inside ]; then
  rm -rf "$WORK" && mkdir -p "$WORK/home"
  "$CLI" demo "$WORK/demo" > /dev/null
  cp -r "$(ls -d "$DATA"/torch-*/healthy_fsdp | head -1)/ckpt" "$WORK/whole"
  exec xvfb-run -a -w 30 -n $((600 + $$ % 400)) -s "-screen 0 1280x720x24 -noreset" bash "$0" inside
fi

for attempt in $(seq 60); do xdotool getdisplaygeometry > /dev/null 2>&1 && break; sleep 0.5; done
HOME="$WORK/home" "$GUI" "$WORK/demo/step_9000" --spec "$WORK/demo/spec.json" \
  --record "$WORK/record" --size 1280x720 --scale 1 > "$WORK/said" 2>&1 &
gui=$!
trap 'kill $gui 2> /dev/null || true' EXIT
fail() { echo "$1"; echo "title: $(xdotool getwindowname "$window" 2>&1)"; cat "$WORK/record" "$WORK/said"; exit 1; }
window=
for attempt in $(seq 60); do
  kill -0 $gui 2> /dev/null || { cat "$WORK/said"; exit 1; }
  window=$(xdotool search --onlyvisible --name 'Shardwright$' 2> /dev/null | head -1) && [ -n "$window" ] && break
  sleep 0.5
done
[ -n "$window" ] || { echo "no window has appeared"; exit 1; }
xdotool windowmove "$window" 0 0 windowfocus "$window"

# Waits until the title says it: a slow machine only takes longer.
title_says() {
  for attempt in $(seq 120); do
    case "$(xdotool getwindowname "$window")" in *"$1"*) return 0 ;; esac
    sleep 0.5
  done
  fail "the title never says: $1"
}
record_says() {
  for attempt in $(seq 60); do grep -q "$1" "$WORK/record" && return 0; sleep 0.5; done
  fail "nothing has asked for: $1"
}
press() { xdotool key --delay 120 "$@"; sleep 0.8; }

title_says "step_9000 - Will not load: 1 cause, 3 tensors"
sleep 1
press F8
record_says "^finding 0"
press ctrl+shift+h
record_says "^bytes finding"
press Escape
record_says "^bytes off"

press ctrl+r
press ctrl+Return
record_says "^repair"
title_says "step_9000 - Will not load: 1 cause, 3 tensors"  # a copy was repaired
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -f "$WORK/demo/step_9000-repaired/certificate.json" ] || sleep 1; done
[ -f "$WORK/demo/step_9000-repaired/certificate.json" ] || fail "there is no certificate"
press ctrl+shift+p
xdotool type --delay 60 "verify what"
press Return
record_says "^verify"
title_says "step_9000 - Will not load: 1 cause, 3 tensors"  # the proof is the copy's
press Escape

press ctrl+o
record_says "^browse"
sleep 3
press ctrl+a
xdotool type --delay 100 "$WORK/whole"
press Return
title_says "whole - No finding"
press alt+Left
title_says "step_9000 - Will not load"
press ctrl+q
for attempt in $(seq 20); do kill -0 $gui 2> /dev/null || break; sleep 0.3; done
kill -0 $gui 2> /dev/null && fail "Ctrl+Q does not quit"
wait $gui || fail "the window left with an error"
echo "opened, followed to the byte, repaired, proved, left, come back"

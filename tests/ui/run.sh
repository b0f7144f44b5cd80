# The window under Xvfb with a folder of steps: the table, a new step that appears by itself, a step
# that is opened by key and closed again, and files that someone else removes meanwhile. What the
# window has come to stands in its title.
set -eu
for tool in Xvfb xvfb-run xdotool; do
  command -v $tool > /dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
if [ "${1:-}" != inside ]; then
  rm -rf "$WORK" && mkdir -p "$WORK/home" "$WORK/run"
  whole="$(ls -d "$DATA"/torch-*/healthy_fsdp | head -1)/ckpt"
  for step in 900 1000; do cp -r "$whole" "$WORK/run/step_$step"; done
  exec xvfb-run -a -w 30 -n $((600 + $$ % 400)) -s "-screen 0 1280x720x24 -noreset" bash "$0" inside
fi

for attempt in $(seq 60); do xdotool getdisplaygeometry > /dev/null 2>&1 && break; sleep 0.5; done
HOME="$WORK/home" "$GUI" "$WORK/run" --size 1280x720 --scale 1 > "$WORK/said" 2>&1 &
gui=$!
trap 'kill $gui 2> /dev/null || true' EXIT
fail() { echo "$1"; echo "title: $(xdotool getwindowname "$window" 2>&1)"; cat "$WORK/said"; exit 1; }
window=
for attempt in $(seq 60); do
  kill -0 $gui 2> /dev/null || { cat "$WORK/said"; exit 1; }
  window=$(xdotool search --onlyvisible --name 'Shardwright$' 2> /dev/null | head -1) && [ -n "$window" ] && break
  sleep 0.5
done
[ -n "$window" ] || { echo "no window has appeared"; exit 1; }
xdotool windowmove "$window" 0 0 windowfocus "$window"

title_says() {
  for attempt in $(seq 60); do
    case "$(xdotool getwindowname "$window")" in *"$1"*) return 0 ;; esac
    sleep 0.5
  done
  fail "the title never says: $1"
}
press() { xdotool key --delay 120 "$@"; sleep 0.8; }

title_says "run - 2 steps: 2 without a finding"
cp -r "$WORK/run/step_1000" "$WORK/run/.half" && mv "$WORK/run/.half" "$WORK/run/step_1100"
title_says "run - 3 steps: 3 without a finding"
rm "$WORK/run/step_1100/__1_0.distcp"
title_says "run - 3 steps: 1 with errors, 2 without a finding"
press Return
title_says "step_1100 - Will not load"
press alt+Home
title_says "run - 3 steps"
press Down Return
title_says "step_1000 - No finding"
press ctrl+q
for attempt in $(seq 20); do kill -0 $gui 2> /dev/null || break; sleep 0.3; done
kill -0 $gui 2> /dev/null && fail "Ctrl+Q does not quit"
wait $gui || fail "the window left with an error"
echo "listed, grown, damaged, opened, gone back to"

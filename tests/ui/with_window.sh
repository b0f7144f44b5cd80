# Sourced by tests of the window under Xvfb. $GUI is the program, $WORK a folder of the test's own.
#
#   run_under_xvfb           runs the test again, as `inside`, under an X server of its own
#   open_window ARGUMENT...  starts $GUI and waits for its window: $gui, $window; of $SIZE, if set
#
# Without the tools the test is skipped (77).
for tool in Xvfb xvfb-run xdotool; do
  command -v $tool > /dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done

run_under_xvfb() {
  exec xvfb-run -a -w 30 -n $((600 + $$ % 400)) -s "-screen 0 1280x720x24 -noreset" bash "$0" inside
}

open_window() {
  for attempt in $(seq 60); do xdotool getdisplaygeometry > /dev/null 2>&1 && break; sleep 0.5; done
  HOME="$WORK/home" "$GUI" "$@" --size "${SIZE:-1280x720}" --scale 1 > "$WORK/said" 2>&1 &
  gui=$!
  trap 'kill $gui 2> /dev/null || true' EXIT
  window=
  for attempt in $(seq 60); do
    kill -0 $gui 2> /dev/null || { cat "$WORK/said"; exit 1; }
    window=$(xdotool search --onlyvisible --name 'Shardwright$' 2> /dev/null | head -1) && [ -n "$window" ] && break
    sleep 0.5
  done
  [ -n "$window" ] || { echo "no window has appeared"; exit 1; }
  xdotool windowmove "$window" 0 0 windowfocus "$window"
}

fail() {
  echo "$1"
  echo "title: $(xdotool getwindowname "$window" 2>&1)"
  cat "$WORK/record" "$WORK/said" 2> /dev/null
  exit 1
}

# Waits until the title says it: a slow machine only takes longer.
title_says() {
  for attempt in $(seq 120); do
    case "$(xdotool getwindowname "$window")" in *"$1"*) return 0 ;; esac
    sleep 0.5
  done
  fail "the title never says: $1"
}

press() { xdotool key --delay 120 "$@"; sleep 0.8; }

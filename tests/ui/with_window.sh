# Sourced by tests of the window under Xvfb. $GUI is the program, $WORK a folder of the test's own.
#
#   run_under_xvfb           runs the test again, as `inside`, under an X server of its own
#   open_window ARGUMENT...  starts $GUI and waits for its window: $gui, $window; of $SIZE, if set;
#                            next to $other_window, if set
#   close_window             quits it by key and wants it to end well
#   export_view KEY ENDING   has the window exported beside the checkpoint, $beside-view.ENDING
#   picture NAME             keeps a picture in $WORK/pictures for a person to look at
#   screen_picture NAME      the same of the X screen: also where no checkpoint is open
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
    window=$(xdotool search --onlyvisible --name 'Shardwright$' 2> /dev/null |
      grep -vx "${other_window:-none}" | head -1) && [ -n "$window" ] && break
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

close_window() {
  press ctrl+q
  for attempt in $(seq 20); do kill -0 $gui 2> /dev/null || break; sleep 0.3; done
  kill -0 $gui 2> /dev/null && fail "Ctrl+Q does not quit"
  wait $gui || fail "the window left with an error"
}
record_says() {
  for attempt in $(seq 60); do grep -q -- "$1" "$WORK/record" && return 0; sleep 0.5; done
  fail "the record lacks: $1"
}
click_at() {  # X Y; a hand takes longer than a frame between coming, pressing and letting go
  xdotool mousemove "$1" "$2" sleep 0.3 mousedown 1 sleep 0.2 mouseup 1 sleep 0.8
}

export_view() {
  rm -f "$beside"-view*."$2"
  press "$1"
  press Return  # the panel says where it goes
  for attempt in $(seq 60); do
    [ -s "$beside-view.$2" ] && return 0
    sleep 0.3
  done
  fail "nothing was exported"
}
picture() { export_view F12 png && cp "$beside-view.png" "$WORK/pictures/$1.png"; }
ui_tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
screen_picture() {
  sleep 0.5
  python3 "$ui_tests/screen.py" "$WORK/pictures/$1.png" 1280 720
}
# How often a text stands on the screen.
count_on_screen() {
  export_view shift+F12 svg
  grep -c -F ">$1</text>" "$beside-view.svg" || true
}
screen_says() {
  for attempt in $(seq 20); do
    [ "$(count_on_screen "$1")" -ge 1 ] && return 0
    sleep 0.5
  done
  fail "the screen never says: $1"
}

# The desk remembers, in a real window under Xvfb: theme and scale are set by keys, kept in desk.json,
# and there again the next day; a file of somebody else's is said not to be taken, and set aside.
set -eu
for tool in Xvfb xvfb-run xdotool; do
  command -v $tool > /dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
if [ "${1:-}" != inside ]; then
  rm -rf "$WORK" && mkdir -p "$WORK"
  exec xvfb-run -a -w 30 -n $((500 + $$ % 400)) -s "-screen 0 1280x720x24 -noreset" bash "$0" inside
fi
export XDG_CONFIG_HOME="$WORK/config" XDG_STATE_HOME="$WORK/state" XDG_CACHE_HOME="$WORK/cache"
settings="$WORK/config/shardwright/desk.json"
for attempt in $(seq 60); do xdotool getdisplaygeometry > /dev/null 2>&1 && break; sleep 0.5; done
gui=
trap 'kill $gui 2> /dev/null || true' EXIT
fail() { echo "$1"; cat "$WORK/said"; cat "$settings" 2> /dev/null; exit 1; }
start() {
  "$GUI" --size 1280x720 --scale 1 > "$WORK/said" 2>&1 &
  gui=$!
  window=
  for attempt in $(seq 60); do
    kill -0 $gui 2> /dev/null || fail "the window has closed itself"
    window=$(xdotool search --onlyvisible --name '^Shardwright$' 2> /dev/null | head -1) && [ -n "$window" ] && break
    sleep 0.5
  done
  [ -n "$window" ] || fail "no window has appeared"
  xdotool windowmove "$window" 0 0 windowfocus "$window"
  sleep 2
}
stop() {
  xdotool key ctrl+q
  for attempt in $(seq 20); do kill -0 $gui 2> /dev/null || break; sleep 0.3; done
  kill -0 $gui 2> /dev/null && fail "Ctrl+Q does not quit"
  wait $gui || fail "the window left with an error"
}
press() { xdotool key "$1"; sleep 0.6; }

start
stop
[ ! -e "$settings" ] || fail "settings were written although nothing was changed"

start
press ctrl+shift+t
press ctrl+plus
press ctrl+plus
for attempt in $(seq 20); do [ -f "$settings" ] && break; sleep 0.3; done
grep -q '"theme": "light"' "$settings" || fail "the theme is not kept while the window is open"
stop
grep -q '"scale": 1.25' "$settings" || fail "the scale is not kept"

start
press ctrl+minus
stop
grep -q '"scale": 1.1' "$settings" || fail "the scale of yesterday was not taken"
grep -q '"theme": "light"' "$settings" || fail "the theme of yesterday was not taken"

echo "not ours" > "$settings"
start
stop
grep -q "not ours" "$settings" || fail "somebody else's file was written over, and nothing was changed"
start
press ctrl+shift+t
stop
grep -q '"theme": "light"' "$settings" || fail "nothing is kept after a file that was refused"
grep -q "not ours" "$settings.old" || fail "somebody else's file is gone"
echo "kept, taken again, and nothing of somebody else's lost"

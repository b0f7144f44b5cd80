#!/usr/bin/env bash
# What the desktop costs, a line for each bar that it has to reach: a frame of every view, a keystroke
# in the filter, memory, the longest frame beside every job of the desk, how soon a job is gone that
# was cancelled, and what a window costs that nobody touches. Needs no torch. Frames and keystrokes
# are CPU of one thread; how soon a job is gone is time, and wants a machine that does nothing else.
#
#   tests/bench/desk.sh [BUILD_FOLDER] [WORK_FOLDER] [GIGABYTES]     exit 1 where a bar is missed
#
# Takes some four times GIGABYTES (2) of disk, and leaves it where WORK_FOLDER is named.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Inside of a display of its own: CPU, in milliseconds, of a window with a checkpoint open that nobody
# touches for ten seconds.
if [ "${1:-}" = idle ]; then
  build=$2 work=$3 opened=$4
  HOME="$work" XDG_STATE_HOME="$work/state" XDG_CONFIG_HOME="$work/config" \
    "$build/app/shardwright-gui" $opened --size 1280x720 > "$work/gui.log" 2>&1 &
  gui=$!
  sleep 8
  before=$(awk '{print $14 + $15}' "/proc/$gui/stat")
  sleep 10
  after=$(awk '{print $14 + $15}' "/proc/$gui/stat")
  kill "$gui"
  echo $(((after - before) * 1000 / $(getconf CLK_TCK)))
  exit 0
fi

build=${1:-build/release} gigabytes=${3:-2} missed=0
if [ ! -f "$build/CMakeCache.txt" ]; then
  [ "$build" = build/release ] || { echo "$build is not a build folder"; exit 3; }
  cmake --preset release > /dev/null
fi
build=$(realpath "$build")
cmake --build "$build" --target bench_desk_frames bench_desk_jobs app/all > "$build/desk-bench.log" ||
  { tail -20 "$build/desk-bench.log"; exit 4; }
if [ -n "${2:-}" ]; then
  mkdir -p "$2"
  work=$(realpath "$2")
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
program=$build/app/shardwright

make_checkpoints() {
  python3 tests/bench/make_desk.py "$work" "$gigabytes"
  "$program" convert "$work/a" --to dcp --out "$work/whole" --yes > /dev/null
  rm -rf "$work/a" # b is the same
  ln -sfn "$work/b" "$work/other"
  local found
  found=$(ls -d tests/data/torch-*/s1_placement_not_transposed | head -1)
  cp -r "$found/ckpt" "$work/moved"
  cp "$found/spec.json" "$work/moved.json"
  # What a repair takes along as it is.
  for i in 1 2; do ln "$work/b/model.safetensors" "$work/moved/beside$i.bin"; done
  "$program" convert "$work/names" --to dcp --out "$work/many" --yes > /dev/null
  touch "$work/made"
}
[ -f "$work/made" ] || make_checkpoints

printf '%-46s %11s %10s\n' "" figure bar
"$build/tests/bench/bench_desk_frames" || missed=1
"$build/tests/bench/bench_desk_jobs" "$work" || missed=1
if command -v xvfb-run > /dev/null; then
  for opened in "$work/moved --spec $work/moved.json" "$work/many"; do
    figure=$(xvfb-run -a -s "-screen 0 1280x720x24" bash tests/bench/desk.sh idle "$build" "$work" "$opened")
    # The clock of processes ticks in tens of milliseconds.
    [ "$figure" -le 10 ] && verdict=met || { verdict=MISSED; missed=1; }
    printf '%-46s %8.2f ms %6.0f ms  %-7s %s\n' "CPU of an idle window in 10 s" "$figure" 10 \
      "$verdict" "$(basename "${opened%% *}")"
  done
else
  echo "CPU of an idle window: not measured, there is no xvfb-run"
fi
# Wall time from the start of the program to a picture, drawn by software: 0.8 s, and 5 s per 100,000
# tensors.
for opened in "" "$work/many"; do
  begin=$(date +%s%N)
  "$build/app/shardwright-gui" --screenshot "$work/first.png" $opened > "$work/gui.log" 2>&1 ||
    { echo "no picture can be drawn here"; break; }
  figure=$((($(date +%s%N) - begin) / 1000000))
  [ -z "$opened" ] && bar=800 what="first pixels" || { bar=12500 what="250,000 tensors opened, checked and drawn"; }
  [ "$figure" -le "$bar" ] && verdict=met || { verdict=MISSED; missed=1; }
  printf '%-46s %8.0f ms %6.0f ms  %s\n' "$what" "$figure" "$bar" "$verdict"
done
[ "$missed" = 0 ] && echo "all bars are met" || echo "bars are missed"
exit "$missed"

#!/usr/bin/env bash
# What the desktop costs: a frame of every view, then for every job of it the longest frame while it
# runs and how soon it is gone once it is cancelled. Needs no torch; CPU of one thread counts, times
# of a busy machine do not.
#
#   tests/bench/desk.sh [BUILD_FOLDER] [WORK_FOLDER] [GIGABYTES]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$(realpath "${1:-build/release}") work=${2:-$(mktemp -d)} gigabytes=${3:-2}
mkdir -p "$work"
cmake --build "$build" --target bench_desk_frames bench_desk_jobs app/all > /dev/null
"$build/tests/bench/bench_desk_frames" || over=$?

if [ ! -d "$work/many" ]; then
  python3 tests/bench/make_desk.py "$work" "$gigabytes"
  "$build/app/shardwright" convert "$work/a" --to dcp --out "$work/whole" --yes > /dev/null
  ln -sfn "$work/b" "$work/other"
  case_dir=$(ls -d tests/data/torch-*/s1_placement_not_transposed | head -1)
  cp -r "$case_dir/ckpt" "$work/moved"
  cp "$case_dir/spec.json" "$work/moved.json"
  for i in 1 2 3 4; do cp "$work/a/model.safetensors" "$work/moved/beside$i.bin"; done
  "$build/app/shardwright" convert "$work/names" --to dcp --out "$work/many" --yes > /dev/null
fi
"$build/tests/bench/bench_desk_jobs" "$work"
exit "${over:-0}"

#!/usr/bin/env bash
# Runs every fuzz target for a short while over its corpus. Needs clang 16 (clang 14 cannot compile
# the ranges of libstdc++ 12); says so and passes where it is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source app/setup.sh

if ! compgen -G 'tests/fuzz/*.cpp' >/dev/null; then
  echo "no fuzz targets here"
  exit 0
fi
if ! command -v clang++-16 >/dev/null; then
  echo "fuzzing was left out: clang++-16 is not installed"
  exit 0
fi
seconds=${SHARDWRIGHT_FUZZ_SECONDS:-30}
targets=()
for source in tests/fuzz/*.cpp; do targets+=("$(basename "$source" .cpp)"); done
configure_and_build fuzz "${targets[@]}"
failed=0
for name in "${targets[@]}"; do
  target=build/fuzz/tests/$name
  work=build/fuzz/corpus/$name
  mkdir -p "$work"
  # The corpus in the tree is read, new inputs stay in the build folder.
  seeds=()
  if [[ -d tests/fuzz/corpus/${name%_fuzz} ]]; then seeds=("tests/fuzz/corpus/${name%_fuzz}"); fi
  if "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
      -artifact_prefix="build/fuzz/$name-" "$work" "${seeds[@]}" >"build/fuzz/$name.log" 2>&1; then
    echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$name.log") inputs"
  else
    tail -40 "build/fuzz/$name.log"
    echo "$name: FAILED; the input lies beside the log in build/fuzz"
    failed=1
  fi
done
exit "$failed"

#!/usr/bin/env bash
# What only nvcc sees: the kernels that are asked for with every slab keep all that they hold in
# registers. ptxas says how many, and what it had to put into memory.
#
#   bash tests/gpu/registers.sh [BUILD FOLDER [INCLUDE FOLDER]]
#
# Without nvcc it says so and exits 77, which ctest takes for skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if ! command -v nvcc >/dev/null; then
  echo "skipped: nvcc was not found, so nobody can say what the kernels take of a GPU"
  exit 77
fi
build=${1:-build/gpu}
mkdir -p "$build"
status=0
for source in gpu/*.cu; do
  log=$build/$(basename "$source").ptxas
  nvcc -std=c++20 -O3 -arch=sm_90 --expt-relaxed-constexpr -I. -Xptxas -v -cubin "$source" \
    -o "$build/$(basename "$source").cubin" 2>"$log" || { cat "$log"; exit 1; }
  # "Function properties for NAME", then frame and spills, then registers and shared memory.
  awk -v source="$source" '
    /Function properties for/ { name = $NF }
    /bytes stack frame/ { frame = $1; spilled = $5 + $9 }
    /Used [0-9]+ registers/ {
      match($0, /Used [0-9]+ registers/)
      printf "%s %s: %s, %d bytes of local memory, %d of spills\n", source, name, \
             substr($0, RSTART, RLENGTH), frame, spilled
      if (frame + spilled > 0) bad = 1
    }
    END { exit bad }' "$log" || status=1
done
if ((status != 0)); then echo "a kernel keeps something in local memory"; fi
exit $status

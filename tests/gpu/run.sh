#!/usr/bin/env bash
# On a machine with a GPU, nvcc and g++, and nothing else of ours: builds the kernels and what of core
# they are held against, and then, in less than 10 minutes,
#
#   slabs      random slabs, full sizes: bytes and fingerprints equal to the CPU's
#   codes      every code of 8 and 16 bits, cast to every dtype
#   floats     all 2^32 floats, cast to every dtype
#   kernels    a table of rates beside the copy from device to device, each with what was predicted
#   numbers    what `stats --device` does with what is in memory, by the card and by the cores
#   nccl       where libnccl.so.2 is: a communicator of one rank, 100 times from begin to end
#   pipeline   from files to files, with the rate of every stage
#
#   bash tests/gpu/run.sh                  all of it
#   bash tests/gpu/run.sh slabs codes      these
#
# Each step is stopped after the seconds that stand beside it below, so that one that hangs takes
# none of the others with it: together with the build they stay below nine minutes. What a step has
# printed by then counts.
#
# ARCH (sm_90): what to build for. INCLUDE: a folder with fmt/ and tl/expected.hpp, where the system
# has none. BUILD (build/gpu): where to build. What was measured goes to tests/gpu/RESULTS.md by hand.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${BUILD:-build/gpu}
arch=${ARCH:-sm_90}
cuda=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
mkdir -p "$build"
include=(-I.)
if [[ -n ${INCLUDE:-} ]]; then include+=("-I$INCLUDE"); fi

# The list is in a file of its own: where nvcc is, the tests build the same.
sources=($(<tests/gpu/device/sources.txt))

newest_header=$(find gpu core tests/gpu \( -name '*.h' -o -name '*.cuh' \) -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2-)
compile() {
  local source=$1 object=$build/${1//\//_}.o
  if [[ $object -nt $source && $object -nt $newest_header ]]; then return; fi
  if [[ $source == *.cu ]]; then
    nvcc -std=c++20 -O3 -DNDEBUG "-arch=$arch" --expt-relaxed-constexpr "${include[@]}" -c "$source" -o "$object"
  else
    g++ -std=c++20 -O3 -DNDEBUG -DFMT_HEADER_ONLY "${include[@]}" -isystem "$cuda/include" -c "$source" -o "$object"
  fi
}
began=$SECONDS
pids=()
for source in "${sources[@]}"; do
  while (($(jobs -rp | wc -l) >= ${JOBS:-$(nproc)})); do wait -n; done
  compile "$source" &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
objects=()
for source in "${sources[@]}"; do objects+=("$build/${source//\//_}.o"); done
nvcc "-arch=$arch" -cudart static "${objects[@]}" -o "$build/device" -lpthread -ldl
echo "built in $((SECONDS - began)) s"

nvidia-smi --query-gpu=name,driver_version,pcie.link.gen.current,pcie.link.width.current,clocks.sm,clocks.mem \
  --format=csv || echo "nvidia-smi says nothing"
steps=("$@")
if ((${#steps[@]} == 0)); then steps=(slabs codes kernels numbers floats nccl pipeline); fi
# A machine in a container may have next to nothing there.
folder=/dev/shm
if (($(df --output=avail -k "$folder" | tail -1) < 20 * 1024 * 1024)); then folder=${TMPDIR:-/tmp}; fi
declare -A most=([slabs]=60 [codes]=20 [kernels]=80 [numbers]=40 [floats]=60 [nccl]=60 [pipeline]=200)
status=0
for step in "${steps[@]}"; do
  words=("$step")
  if [[ $step == pipeline ]]; then words+=("$folder"); fi
  timeout -k 5 "${most[$step]:-120}" "$build/device" "${words[@]}" || {
    code=$?
    if ((code == 124 || code == 137)); then echo "$step: stopped after ${most[$step]:-120} s"; fi
    status=1
  }
done
echo "all of it in $((SECONDS - began)) s"
exit $status

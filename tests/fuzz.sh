#!/usr/bin/env bash
# A long run: every fuzz target for SHARDWRIGHT_FUZZ_SECONDS (30) over its corpus. Installs clang 16 or
# newer (clang 14 cannot compile the ranges of libstdc++ 12) with its runtime; fails where there is none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source app/setup.sh

if ! compgen -G 'tests/fuzz/*.cpp' >/dev/null; then
  echo "no fuzz targets here"
  exit 0
fi
install_packages app/packages.txt tests/fuzz/packages.txt
# The first that makes a fuzzer: a clang without its runtime compiles and does not link.
clang=
probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
printf '#include <cstddef>\nextern "C" int LLVMFuzzerTestOneInput(const unsigned char*, std::size_t) { return 0; }\n' \
  > "$probe/probe.cpp"
for name in clang++-16 clang++-{17..30} clang++; do
  command -v "$name" >/dev/null || continue
  [[ $("$name" -dumpversion) =~ ^(1[6-9]|[2-9][0-9])\. ]] || continue
  if "$name" -fsanitize=fuzzer,address,undefined "$probe/probe.cpp" -o "$probe/probe" 2>/dev/null; then
    clang=$name
    break
  fi
done
if [[ -z $clang ]]; then
  say "tests/fuzz.sh: no clang 16 or newer with its runtime (clang-16 and libclang-rt-16-dev) is installed"
  exit 1
fi
# Another compiler than the one before would make CMake forget the other settings.
if ! grep -qs "^CMAKE_CXX_COMPILER:[A-Z]*=.*$clang\$" build/fuzz/CMakeCache.txt; then rm -rf build/fuzz/CMakeCache.txt build/fuzz/build.ninja; fi
configure_options=("-DCMAKE_CXX_COMPILER=$clang")
seconds=${SHARDWRIGHT_FUZZ_SECONDS:-30}
targets=()
for source in tests/fuzz/*.cpp; do targets+=("$(basename "$source" .cpp)"); done
configure_and_build fuzz "${targets[@]}"
fuzz() {
  local name=$1 target=build/fuzz/tests/$1 work=build/fuzz/corpus/$1 seeds=()
  mkdir -p "$work"
  # The corpus in the tree is read, new inputs stay in the build folder.
  if [[ -d tests/fuzz/corpus/${name%_fuzz} ]]; then seeds=("tests/fuzz/corpus/${name%_fuzz}"); fi
  if "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
      -artifact_prefix="build/fuzz/$name-" "$work" "${seeds[@]}" >"build/fuzz/$name.log" 2>&1; then
    echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$name.log") inputs"
  else
    tail -40 "build/fuzz/$name.log"
    echo "$name: FAILED; the input is next to the log in build/fuzz"
    return 1
  fi
}
export -f fuzz
export seconds
printf '%s\0' "${targets[@]}" | xargs -0 -n1 -P"$(jobs)" bash -c 'fuzz "$1"' fuzz

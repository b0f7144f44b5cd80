#!/usr/bin/env bash
# clang-format as a dry run over every file of ours, then clang-tidy over those that changed since
# the last clean run. Both in version 14: other versions format and warn otherwise.
#
#   tests/lint.sh [BUILD_FOLDER [FILE...]]     FILE: only these
#   tests/lint.sh --format                     clang-format alone, which needs no build
#
# SHARDWRIGHT_LINT_SECONDS stops clang-tidy after that time and says what is left (a full first run
# takes a quarter of an hour on two cores); files of the last twenty commits come first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source app/setup.sh
what=all
if [[ ${1:-} == --format ]]; then
  what=format
  shift
fi
build=${1:-build/dev}
shift || true

tool() {
  if command -v "$1-14" >/dev/null; then
    echo "$1-14"
  elif "$1" --version 2>/dev/null | grep -q 'version 14\.'; then
    echo "$1"
  fi
}
format=$(tool clang-format)
tidy=$(tool clang-tidy)

mapfile -t files < <(find app core gpu views tests -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' 2>/dev/null | sort)
if [[ $# -gt 0 ]]; then files=("$@"); fi
if [[ -n $format ]]; then
  "$format" --dry-run --Werror "${files[@]}"
  echo "clang-format: ${#files[@]} files"
else
  leave_out "formatting: clang-format 14 is not installed"
fi

if [[ $what == format ]]; then exit 0; fi

if [[ -z $tidy ]]; then
  leave_out "lint: clang-tidy 14 is not installed"
  exit 0
fi
# Version 14 cannot read the C++ library of every newer g++: then no file could be judged.
probe=$(mktemp --suffix=.cpp)
trap 'rm -f "$probe"' EXIT
printf '#include <algorithm>\n#include <atomic>\n#include <chrono>\n#include <filesystem>\n#include <ranges>\n#include <span>\n' >"$probe"
if ! "$tidy" --quiet --checks='-*,misc-unused-using-decls' "$probe" -- -std=c++20 &>/dev/null; then
  leave_out "lint: clang-tidy 14 cannot read the C++ library of this system's g++"
  exit 0
fi
if [[ ! -f $build/compile_commands.json ]]; then
  leave_out "lint: $build/compile_commands.json is not there (cmake --preset dev)"
  exit 0
fi
# A stamp per source names the checksum of all that it was linted with: itself, every header of
# ours, the checks. A full run takes minutes, the next one seconds.
stamps=$build/lint
mkdir -p "$stamps"
headers=$(cat .clang-tidy $(find app core views -name '*.h' | sort) | sha256sum)
mapfile -t recent < <(git diff --name-only HEAD~20 -- 2>/dev/null | grep '\.cpp$' || true)
if [[ $# == 0 ]]; then
  mapfile -t files < <(printf '%s\n' "${recent[@]}" "${files[@]}" | awk 'NF && !seen[$0]++')
fi
todo=()
for file in "${files[@]}"; do
  [[ -f $file && $file == *.cpp && $file != tests/* && $file != gpu/* ]] || continue
  grep -q "\"file\": \".*/$file\"" "$build/compile_commands.json" || continue
  sum=$(echo "$headers" | cat - "$file" | sha256sum)
  stamp=$stamps/${file//\//_}
  if [[ $(cat "$stamp" 2>/dev/null) != "$sum" ]]; then todo+=("$file"); fi
done
deadline=$(($(date +%s) + ${SHARDWRIGHT_LINT_SECONDS:-86400}))
left=$build/lint-left
: > "$left"
lint_one() {
  local file=$1
  if [[ $(date +%s) -ge $deadline ]]; then
    echo "$file" >> "$left"
    return 0
  fi
  if "$tidy" -p "$build" --quiet "$file" 2>/dev/null; then
    echo "$headers" | cat - "$file" | sha256sum > "$stamps/${file//\//_}"
  else
    echo "clang-tidy: $file" >&2
    return 1
  fi
}
export -f lint_one
export tidy build headers stamps deadline left
if [[ ${#todo[@]} -gt 0 ]]; then
  printf '%s\0' "${todo[@]}" | xargs -0 -n1 -P"$(nproc)" bash -c 'lint_one "$1"' lint
fi
unseen=$(wc -l < "$left")
if [[ $unseen != 0 ]]; then leave_out "lint of $unseen files: the next run goes on with them"; fi
echo "clang-tidy: $((${#todo[@]} - unseen)) files$([[ $unseen == 0 ]] || echo ", $unseen left for the next run")"

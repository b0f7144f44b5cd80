#!/usr/bin/env bash
# Installs, builds and runs every test.
#
#   bash tests/run.sh              all that needs no Python package
#   bash tests/run.sh --interop    and those that real torch judges (11 GB, made once), with a longer
#                                  look of lint
#
# In this order, so that what fails soonest fails first: formatting; with --interop a release, whose
# answers some tests read; one build with warnings as errors, ASan and UBSan, and with it lint and all
# unit tests. What the distribution does not have is
# left out and named at the end; the desktop is not left out. tests/fuzz.sh is a long run of its own:
# here the fuzz targets only see changed copies of their corpora.
# SHARDWRIGHT_LINT_SECONDS (30, 180) is how long clang-tidy may take; it goes on where it stopped.
# SHARDWRIGHT_DEADLINE (seconds since 1970) is when all must have ended: on a machine that is too slow
# for all of it lint and real torch are left out, and named at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
source app/setup.sh

interop=no
for word in "$@"; do
  case $word in
    --interop) interop=yes ;;
    *) say "usage: tests/run.sh [--interop]"; exit 3 ;;
  esac
done

seconds() { if [[ $interop == yes ]]; then echo "$2"; else echo "$1"; fi; }
export SHARDWRIGHT_LINT_SECONDS=${SHARDWRIGHT_LINT_SECONDS:-$(seconds 30 180)}

began=$SECONDS
stage() { printf '\n== %s  (%d s)\n' "$*" "$((SECONDS - began))"; }

lists=(app/packages.txt tests/packages.txt)
if [[ $interop == yes ]]; then lists+=(tests/interop/packages.txt); fi
keep_remarks
install_packages "${lists[@]}"
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
# Real torch is fetched while the compiler works; where that fails the last stage tries again, and says why.
if [[ $interop == yes ]]; then bash tests/interop/run.sh --prepare &>/dev/null & fi

# Whether that many seconds are left before the deadline.
has_time_for() {
  [[ -z ${SHARDWRIGHT_DEADLINE:-} ]] || (($(date +%s) + $1 <= SHARDWRIGHT_DEADLINE)) && return 0
  leave_out "$2: too little time was left ($((SECONDS - began)) s had passed)"
  return 1
}

stage "formatting"
bash tests/lint.sh --format
if [[ $interop == yes ]]; then
  stage "building: a release"
  configure_and_build release app/all
  configure_options+=(-DSHW_ANSWERS_FROM="$root/build/release/app/shardwright")
fi
stage "building: warnings as errors, ASan and UBSan"
configure_and_build asan all
if has_time_for 2400 lint; then
  stage "lint"
  cmake --preset dev >/dev/null  # lint looks at files one by one, and so does dev's list of commands
  bash tests/lint.sh build/dev
fi
stage "unit tests"
ctest --preset asan -j"$(jobs)"

if [[ $interop == yes ]] && has_time_for 600 "real torch"; then
  stage "real torch"
  SHARDWRIGHT=$root/build/release/app/shardwright bash tests/interop/run.sh
else
  stage "real torch was left out: bash tests/run.sh --interop"
fi

conclude asan

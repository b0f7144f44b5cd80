#!/usr/bin/env bash
# Judges Shardwright with real torch, 2.6 and 2.15. The two environments (11 GB, two minutes) are
# made once under the user's cache directory; a stamp with the requirements' checksum says that
# one is complete, so an interrupted installation is finished by the next run.
#
#   tests/interop/run.sh [NAME...]     all test files, the Python module's and those of buckets, or
#                                      the test files whose names contain a NAME
#   tests/interop/run.sh --prepare     the environments alone
#
# $SHARDWRIGHT is the program to judge; without it, the release build's.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/shardwright/interop

environment() {
  local version=$1 python=$2 directory=$cache/$1 requirements=$here/requirements-$1.txt
  local wanted
  wanted=$(sha256sum "$requirements" | cut -d' ' -f1)
  if [[ -x $directory/bin/python && $(cat "$directory/stamp" 2>/dev/null) == "$wanted" ]]; then
    return
  fi
  echo "interop: installing $version into $directory" >&2
  if [[ ! -x $directory/bin/python ]] && ! "$python" -m venv "$directory" >&2; then
    rm -rf "$directory"
    echo "interop: $python cannot make a virtual environment (Debian: apt install python3-venv)" >&2
    return 1
  fi
  "$directory/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" >&2
  echo "$wanted" > "$directory/stamp.new"
  mv "$directory/stamp.new" "$directory/stamp"
}

# torch 2.6 has wheels for Python 3.9 to 3.13 only.
python_for_old_torch() {
  local python
  for python in python3 python3.13 python3.12 python3.11 python3.10; do
    if "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2>/dev/null
    then
      echo "$python"
      return
    fi
  done
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9  # two runs at once must not install into the same directory
environment torch-2.15 python3
old_python=$(python_for_old_torch)
options=()
if [[ -x $cache/torch-2.6/bin/python || -n $old_python ]]; then
  environment torch-2.6 "$old_python"
  options=(--other-torch "$cache/torch-2.6/bin/python")
fi
exec 9>&-
if [[ ${1:-} == --prepare ]]; then exit 0; fi

for program in app/cli/shardwright app/shardwright; do
  if [[ -z ${SHARDWRIGHT:-} && -x $root/build/release/$program ]]; then
    SHARDWRIGHT=$root/build/release/$program
  fi
done
export SHARDWRIGHT=${SHARDWRIGHT:-$root/build/release/app/shardwright}
if [[ ! -x $SHARDWRIGHT ]]; then
  echo "interop: no program at $SHARDWRIGHT (build it, or set SHARDWRIGHT)" >&2
  exit 2
fi
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
python=$cache/torch-2.15/bin/python
options+=(--jobs "${SHARDWRIGHT_JOBS:-$(nproc)}")
if [[ $# -gt 0 ]]; then exec "$python" "$here/run.py" "${options[@]}" "$@"; fi

# All are run, whatever fails first.
status=0
"$python" "$here/run.py" "${options[@]}" || status=$?
PYTHONPATH=$root/python "$python" -m pytest -q -p no:cacheprovider "$root/python/tests" || status=$?
"$python" "$root/tests/remote/bucket_test.py" "$SHARDWRIGHT" || status=$?
exit "$status"

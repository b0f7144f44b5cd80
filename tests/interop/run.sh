#!/usr/bin/env bash
# Judges Shardwright with real torch, 2.6 and 2.15. The two environments (11 GB, two minutes) are
# made once under the user's cache directory; a stamp with the requirements' checksum says that
# one is complete, so an interrupted installation is finished by the next run.
#
#   tests/interop/run.sh [NAME...]     all test files, or those whose names contain a NAME
#
# $SHARDWRIGHT is the program to judge; without it, the release build's.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/shardwright/interop

environment() {
  local version=$1 directory=$cache/$1 requirements=$here/requirements-$1.txt
  local wanted
  wanted=$(sha256sum "$requirements" | cut -d' ' -f1)
  if [[ -x $directory/bin/python && $(cat "$directory/stamp" 2>/dev/null) == "$wanted" ]]; then
    return
  fi
  echo "interop: installing $version into $directory" >&2
  [[ -x $directory/bin/python ]] || python3 -m venv "$directory"
  "$directory/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" >&2
  echo "$wanted" > "$directory/stamp.new"
  mv "$directory/stamp.new" "$directory/stamp"
}

mkdir -p "$cache"
(
  flock 9  # two runs at once must not install into the same directory
  environment torch-2.15
  environment torch-2.6
) 9>"$cache/lock"

export SHARDWRIGHT=${SHARDWRIGHT:-$root/build/release/app/cli/shardwright}
if [[ ! -x $SHARDWRIGHT ]]; then
  echo "interop: no program at $SHARDWRIGHT (build it, or set SHARDWRIGHT)" >&2
  exit 2
fi
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
exec "$cache/torch-2.15/bin/python" "$here/run.py" \
  --other-torch "$cache/torch-2.6/bin/python" "$@"

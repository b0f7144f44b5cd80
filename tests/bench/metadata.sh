#!/usr/bin/env bash
# Metadata of 3.5 million chunks: Shardwright beside torch's own reader, one JSON line.
# The checkpoint (600 MB, sparse data files) is made once, by torch 2.15, in the user's cache:
# three minutes and 10 GB of memory. --quick uses a sixteenth of it. More: metadata.py --help.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/shardwright
torch=$cache/interop/torch-2.15/bin/python
ranks=1024
if [[ ${1:-} == --quick ]]; then
  ranks=64
  shift
fi
giant=$cache/bench/giant-$ranks

if [[ ! -x $torch ]]; then
  echo "metadata.sh: no torch 2.15; tests/interop/run.sh installs it" >&2
  exit 2
fi
if [[ ! -e $giant/DONE ]]; then
  nice -n 15 "$torch" "$here/make_giant_metadata.py" --out "$giant" --ranks "$ranks" >&2
  touch "$giant/DONE"
fi
exec python3 "$here/metadata.py" --checkpoint "$giant" --torch-python "$torch" \
  --shardwright "${SHARDWRIGHT:-$root/build/release/app/shardwright}" "$@"

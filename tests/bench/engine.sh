#!/usr/bin/env bash
# Repairs, deep looks and proofs beside cp -r and xxh128sum, and conversions beside torch's own, a
# JSON line each. The checkpoints (4 GiB
# a case, made by torch 2.15) are made anew in FOLDER, which needs room for three times one of them:
# a memory disk by default. --gib 1 for a quick look; more: engine.py --help.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
torch=${XDG_CACHE_HOME:-$HOME/.cache}/shardwright/interop/torch-2.15/bin/python
folder=/dev/shm
gib=4
more=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --in) folder=$2; shift 2 ;;
    --gib) gib=$2; shift 2 ;;
    *) more+=("$1"); shift ;;
  esac
done
if [[ ! -x $torch ]]; then
  echo "engine.sh: no torch 2.15; tests/interop/run.sh installs it" >&2
  exit 2
fi
if ! command -v xxh128sum >/dev/null; then
  echo "engine.sh: no xxh128sum (Debian: apt install xxhash)" >&2
  exit 2
fi
work=$(mktemp -d "$folder/shardwright-engine-XXXXXX")
trap 'rm -rf "$work"' EXIT
for case in gated moved; do
  "$torch" "$here/make_engine.py" "$case" --out "$work/$case" --gib "$gib" >&2
done
program=${SHARDWRIGHT:-$root/build/release/app/shardwright}
python3 "$here/engine.py" --cases "$work" --shardwright "$program" "${more[@]}"
"$program" repair "$work/moved/ckpt" --spec "$work/moved/spec.json" --out "$work/whole" --yes \
  >/dev/null 2>&1
rm -rf "$work/gated" "$work/moved"
mkdir "$work/converted"
"$torch" -W ignore "$here/convert.py" --shardwright "$program" --checkpoint "$work/whole" \
  --work "$work/converted"

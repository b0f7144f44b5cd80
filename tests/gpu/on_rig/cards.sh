#!/usr/bin/env bash
# The program on cards that the rig makes up, beside the program on the CPU: the same numbers and
# the same folders, also where a card is lost on the way.
#
#   cards.sh PROGRAM PROGRAM_ON_RIG
set -eu
program=$1 on_rig=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
/usr/bin/python3 "$here/../../mpi/make_large.py" plain 3 768 512

# What "device" says in front, and all the rest behind.
parts() {
  /usr/bin/python3 -c 'import json, sys
answer = json.load(open(sys.argv[1]))
device = answer.pop("device")
answer.pop("seconds")
print(device["used"], "failed" if "failed" in device else "whole")
print(json.dumps(answer, sort_keys=True))' "$1"
}

"$program" stats plain --json > cpu.json
parts cpu.json | tail -1 > wanted
lost=0
for fails_from in 0 1 4 9 14 30; do
  SHW_RIG_FAILS_FROM=$fails_from "$on_rig" stats plain --device cuda --json > card.json 2> talk
  parts card.json > card
  tail -1 card | cmp - wanted
  case $(head -1 card) in
    "cuda:0 whole") ;;
    "cuda:0 failed") lost=$((lost + 1)) ;;
    *) echo "stats was made on $(head -1 card)"; exit 1 ;;
  esac
  grep -q "stages" card.json || ((fails_from != 0)) || { echo "the card did nothing"; exit 1; }
done
((lost >= 3)) || { echo "no card was lost"; exit 1; }

code=0
SHW_RIG_FAILS_FROM=4 "$on_rig" stats plain --device cuda --on-device-error stop > out 2> talk || code=$?
[[ $code == 4 && ! -s out ]] || { echo "exit code $code"; cat out talk; exit 1; }
grep -q "CUDA says" talk || { cat talk; exit 1; }
code=0
"$on_rig" stats plain --device cuda:1 > out 2> talk || code=$?
[[ $code == 4 ]] || { echo "exit code $code"; cat talk; exit 1; }

# Of a whole folder: named alike, since the name stands in it.
words=(reshard cut --mesh tp=3 --out made --yes --quiet --json)
"$program" convert plain --to dcp --out cut --yes --quiet > /dev/null
"$program" "${words[@]}" > /dev/null
mv made wanted_folder
for fails_from in 0 7; do
  SHW_RIG_FAILS_FROM=$fails_from "$on_rig" "${words[@]}" --device cuda > card.json
  diff -r wanted_folder made
  grep -q '"used": "cuda:0"' card.json
  rm -rf made
done

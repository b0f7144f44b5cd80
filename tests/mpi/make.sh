#!/usr/bin/env bash
# Folders that four processes make beside those of one: the same bytes in the same files. Also of
# what a killed run left, which any number of processes goes on with.
#
#   make.sh MPIRUN PROGRAM HEALTHY BROKEN SPEC
set -eu
export SHARDWRIGHT_PROCESSES=mpi
mpirun=$1 program=$2 healthy=$3 broken=$4 spec=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/one" "$work/four"
in_one() { (cd "$work/one" && "$program" "$@"); }
in_four() { (cd "$work/four" && "$mpirun" -n 4 "$program" "$@"); }
# As if two of them were on another machine: what they need is sent.
on_two_machines() {
  (cd "$work/four" && "$mpirun" -n 4 bash -c 'SHARDWRIGHT_MACHINE=$((OMPI_COMM_WORLD_RANK % 2)) exec "$@"' \
    bash "$program" "$@")
}
# A folder's name stands in its metadata: they get the same one.
same() {
  diff -r "$work/one/$1" "$work/four/$1" || { echo "$1: four processes made something else than one"; exit 1; }
}

words=(reshard "$healthy" --mesh dp=2,tp=2 --out mesh --yes --quiet)
in_one "${words[@]}" > /dev/null
in_four "${words[@]}" > "$work/said"
[[ $(grep -c certificate "$work/said") == 1 ]] || { echo "not one answer:"; cat "$work/said"; exit 1; }
same mesh
in_four verify mesh --quiet > /dev/null
in_one verify "$work/four/mesh" --against "$healthy" --quiet > /dev/null

words=(convert "$healthy" --to safetensors --out plain --yes --quiet)
in_one "${words[@]}" > /dev/null
in_four "${words[@]}" > /dev/null
same plain

words=(reshard "$healthy" --mesh dp=3 --memory 1M --out sent --yes --quiet)
in_one "${words[@]}" > /dev/null
on_two_machines "${words[@]}" > /dev/null
same sent

one=0 four=0
words=(repair "$broken" --spec "$spec" --out mended --yes --quiet --json)
in_one "${words[@]}" > "$work/one.json" || one=$?
in_four "${words[@]}" > "$work/four.json" || four=$?
[[ $one == "$four" ]] || { echo "repair: exit codes $one and $four"; exit 1; }
same mended

# Nobody is asked anything, and nothing is done twice.
refused() {
  local code=0
  in_four "$@" < /dev/null > "$work/talk" 2>&1 || code=$?
  [[ $code == 3 ]] || { echo "exit code $code of: $*"; cat "$work/talk"; exit 1; }
}
refused reshard "$healthy" --mesh dp=4 --out nothing
refused reshard "$healthy" --mesh dp=2,tp=2 --out mesh --yes
refused repair "$broken" --spec "$spec" --in-place --yes
refused undo "$broken"
[[ ! -e $work/four/nothing ]]

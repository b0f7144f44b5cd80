#!/usr/bin/env bash
# A result that is proved, one that is broken and one that was cut off: four processes say of each
# what one says.
#
#   verify.sh MPIRUN PROGRAM CHECKPOINT
set -eu
export SHARDWRIGHT_PROCESSES=mpi
mpirun=$1 program=$2 checkpoint=$3
beside=$(dirname "${BASH_SOURCE[0]}")/program.sh
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
"$program" convert "$checkpoint" --to dcp --out result --yes --quiet
bash "$beside" "$mpirun" "$program" verify result
bash "$beside" "$mpirun" "$program" verify result --against "$checkpoint"
# mpirun gives a process a terminal of its own: what goes to a file has no colours all the same.
TERM=xterm "$mpirun" -n 4 "$program" verify result > said
if grep $'\x1b' said || ! grep -q proved said; then cat said; exit 1; fi
file=$(ls -S result/*.distcp | head -n 1)
printf 'x' | dd of="$file" bs=1 seek=700 conv=notrunc status=none
bash "$beside" "$mpirun" "$program" verify result
bash "$beside" "$mpirun" "$program" verify result --against "$checkpoint"
"$program" verify result --quiet > said && { echo "a byte that was changed is proved"; exit 1; }
truncate -s 600 "$file"
bash "$beside" "$mpirun" "$program" verify result
# A .metadata that opens no more is broken beside its certificate, for four as for one.
truncate -s 200 result/.metadata
bash "$beside" "$mpirun" "$program" verify result
bash "$beside" "$mpirun" "$program" verify result --against "$checkpoint"
code=0
"$program" verify result --json > said || code=$?
[[ $code == 1 ]] && grep -q '"broken"' said

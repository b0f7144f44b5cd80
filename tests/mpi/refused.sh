#!/usr/bin/env bash
# Whatever four processes refuse alike is said once; what one of them alone meets is said with its
# name, whoever of them it is, and is not lost when mpirun ends the others.
#
#   refused.sh MPIRUN PROGRAM CHECKPOINT
set -eu
export SHARDWRIGHT_PROCESSES=mpi
mpirun=$1 program=$2 checkpoint=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Lines of the talk that hold the words, of all four.
four() {
  code=0
  "$mpirun" -n 4 "$program" "$@" < /dev/null > said 2> talk || code=$?
}
once() {
  local words=$1 wanted=$2
  shift 2
  four "$@"
  [[ $code == "$wanted" ]] || { echo "exit code $code of: $*"; cat talk; exit 1; }
  [[ $(cat said talk | grep -c -- "$words") == 1 ]] || {
    echo "not said once, \"$words\", of: $*"; cat said talk; exit 1; }
}
once 'no such file or directory' 4 check nowhere
once 'no such file or directory' 4 check nowhere --json
once 'cannot run in several processes' 3 info "$checkpoint"
once 'cannot run in several processes' 3 info "$checkpoint" --json
once 'no-such-option' 3 check "$checkpoint" --no-such-option
once 'no-such-option' 3 check "$checkpoint" --no-such-option --json
once '--yes is needed' 3 reshard "$checkpoint" --mesh dp=4 --out nothing
[[ ! -e nothing ]]

# One of them sees another folder of that name, which no such file or directory.
for lost in 0 2; do
  code=0
  "$mpirun" -n 4 bash -c 'cd "$1"; [[ $OMPI_COMM_WORLD_RANK == "$2" ]] && cd /; shift 2; exec "$@"' \
    bash "$(dirname "$checkpoint")" "$lost" "$program" check "$(basename "$checkpoint")" --data \
    < /dev/null > said 2> talk || code=$?
  [[ $code == 4 ]] || { echo "exit code $code where worker $lost sees nothing"; cat talk; exit 1; }
  [[ $(grep -c "^worker $lost: .*no such file or directory" talk) == 1 ]] || {
    echo "worker $lost is not named once"; cat talk; exit 1; }
done

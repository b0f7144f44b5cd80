#!/usr/bin/env bash
# A verb in four processes beside the same verb in one: the same answer, once.
#
#   program.sh MPIRUN PROGRAM VERB CHECKPOINT [WORD...]
set -eu
export SHARDWRIGHT_PROCESSES=mpi
mpirun=$1 program=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
alone=0 several=0
"$program" "$@" --json > "$work/alone" || alone=$?
"$mpirun" -n 4 "$program" "$@" --json > "$work/several" 2> "$work/talk" || several=$?
[[ -s $work/alone ]] || { echo "one process said nothing"; exit 1; }
[[ $alone == "$several" ]] || { echo "exit codes $alone and $several"; cat "$work/talk"; exit 1; }
# But for how long it took.
cmp <(grep -v '"seconds"' "$work/alone") <(grep -v '"seconds"' "$work/several")

#!/usr/bin/env bash
# A rank of a job that begins this program gets its answer at once: it is alone, and the other ranks
# know nothing of it. Four that mpirun itself begins, to write one folder, are told what to say.
#
#   subprocess.sh MPIRUN PROGRAM CHECKPOINT
set -eu
mpirun=$1 program=$2 checkpoint=$3
unset SHARDWRIGHT_PROCESSES
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > job.sh <<'END'
if [[ $OMPI_COMM_WORLD_RANK == 0 ]]; then
  "$@" > answer 2> talk
  echo $? > code
fi
sleep 0.1  # so that bash is not replaced by what it runs last
END
for words in "check $checkpoint --json" "stats $checkpoint --json" "hash $checkpoint --json"; do
  # shellcheck disable=SC2086
  timeout -k 5 60 "$mpirun" -n 2 bash job.sh "$program" $words || { echo "hangs: $words"; exit 1; }
  [[ $(cat code) -le 1 && -s answer ]] || { echo "exit code $(cat code): $words"; cat talk; exit 1; }
done
timeout -k 5 60 "$mpirun" -n 2 bash job.sh "$program" reshard "$checkpoint" --mesh dp=2 --out made --yes
[[ $(cat code) == 0 && -d made ]] || { echo "no result: $(cat code)"; cat talk; exit 1; }
code=0
timeout -k 5 60 "$mpirun" -n 4 "$program" reshard "$checkpoint" --mesh dp=2 --out four --yes > said 2> talk || code=$?
[[ $code == 3 && ! -e four ]] || { echo "exit code $code of four that were not asked for"; cat talk; exit 1; }
grep -q -- '--processes mpi' talk || { cat talk; exit 1; }

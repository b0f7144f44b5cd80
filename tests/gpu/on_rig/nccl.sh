#!/usr/bin/env bash
# Tiles that travel by NCCL between four processes, in front of the double of its library: the
# folder that one process makes. And what becomes of a run in which NCCL fails: all processes end in
# time, say what it was, and what is left, if anything is, is gone on with.
#
#   nccl.sh MPIRUN PROGRAM PROGRAM_ON_RIG FOLDER_OF_THE_DOUBLE
set -eu
export SHARDWRIGHT_PROCESSES=mpi
mpirun=$1 program=$2 on_rig=$3 double=$4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
deadline=45  # seconds: eight of silence, and a machine that has other things to do
export LD_LIBRARY_PATH=$double${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} SHW_RIG_CARDS=4

/usr/bin/python3 "$here/../../mpi/make_large.py" plain 8 1024 512
"$program" convert plain --to dcp --out source.1 --yes --quiet > /dev/null
"$program" reshard source.1 --mesh dp=2,tp=4 --out source --yes --quiet > /dev/null
words=(reshard source --mesh tp=3 --memory 4M --out out --yes --quiet --json)
"$program" "${words[@]}" > /dev/null
mv out wanted

# How many answers, and what carried tiles.
carried() {
  /usr/bin/python3 -c 'import json
way = json.load(open("said"))["transport"]
print(way["used"], "something" if way["bytes"] > 1000000 else way["bytes"])'
}
# Each as if on a machine of its own: between processes of one machine nothing travels.
run() {
  timeout -k 5 "$deadline" "$mpirun" -n 4 bash -c \
    'SHARDWRIGHT_MACHINE=$OMPI_COMM_WORLD_RANK exec "$@"' bash "$on_rig" "${words[@]}" "$@"
}
run --transport nccl > said 2> talk || { cat talk; exit 1; }
[[ $(carried) == "nccl something" ]] || { cat said; exit 1; }
diff -r wanted out
"$program" verify out --quiet > /dev/null
rm -rf out
for way in auto mpi; do
  run --transport "$way" > said
  [[ $(carried) == "mpi something" ]] || { cat said; exit 1; }
  diff -r wanted out
  rm -rf out
done

# Refused before anything is written: the same exit code, and why.
refused() {
  local wanted=$1 says=$2 code=0
  shift 2
  "$@" < /dev/null > said 2> talk || code=$?
  cat said >> talk
  [[ $code == "$wanted" ]] || { echo "exit code $code of: $*"; cat talk; exit 1; }
  grep -q "$says" talk || { echo "not said: $says"; cat talk; exit 1; }
  if compgen -G 'out*' > /dev/null; then echo "something was written"; exit 1; fi
}
SHW_RIG_CARDS=2 refused 4 "workers 0 and 2 would share a card" run --transport nccl
SHW_RIG_CARDS=0 refused 4 "worker 0 cannot: no GPU can be used" run --transport nccl
refused 3 "needs more than one process" "$on_rig" "${words[@]}" --transport nccl

# FAULT, and what somebody says of it. The first groups open the communicator.
broken() {
  local fault=$1 says=$2 code=0 began=$SECONDS
  SHW_NCCL_DOUBLE_FAULT=$fault run --transport nccl > said 2> talk || code=$?
  cat said >> talk
  [[ $code != 0 && $code != 124 && $code != 137 ]] || [[ $fault == die:* && $code == 137 ]] || {
    echo "$fault: exit code $code after $((SECONDS - began)) s"; cat talk; exit 1; }
  grep -q "$says" talk || { echo "$fault: not said: $says"; cat talk; exit 1; }
  [[ ! -e out ]] || { echo "$fault: a folder was made"; exit 1; }
  if compgen -G 'out.shardwright-partial-*' > /dev/null; then
    "$program" resume out --quiet > /dev/null || { echo "$fault: not resumed"; exit 1; }
  else
    # No file was finished, so nothing was kept.
    if compgen -G 'out*' > /dev/null; then echo "$fault: something is left"; ls; exit 1; fi
    "$program" "${words[@]}" > /dev/null
  fi
  diff -r wanted out
  rm -rf out
}
broken hang-init:2 "the communicator of 4 workers was not there after"
broken hang:1:6 'in `tiles, round [0-9]*` .*bytes were under way with worker'
broken fail:3:7:6 "remote process exited or there was a network error"
broken lose:2:6 "connection to rank 2 was closed"
broken die:1:7 "Killed\|killed\|signal 9"

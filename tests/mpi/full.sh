#!/usr/bin/env bash
# Files of one of four processes may grow to 6 MB and no further, as on a disk that is full: all of
# them end, it says why, how to go on is said once, and any number of processes goes on to the same
# bytes. Where nothing was finished nothing is left, and nobody is told to go on.
#
#   full.sh MPIRUN PROGRAM
set -eu
export SHARDWRIGHT_PROCESSES=mpi
mpirun=$1 program=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
/usr/bin/python3 "$here/make_large.py" plain 12 1024 1024
# Six files of 8 MB.
words=(convert plain --to safetensors --shard-size 9M --out out --yes --quiet)
"$program" "${words[@]}" > /dev/null
mv out wanted

is_half_made() { compgen -G 'out.shardwright-*' > /dev/null; }
# RANK WORD... What Open MPI shares between processes are files of 4 MB.
cat > begin.sh <<'END'
if [[ $OMPI_COMM_WORLD_RANK == "$1" ]]; then ulimit -f 6000; fi
shift
exec "$@"
END
run_out_of_room() {
  local rank=$1 code=0 told
  shift
  "$mpirun" -n 4 bash begin.sh "$rank" "$program" "$@" > /dev/null 2> talk || code=$?
  told=$(tr '\n' ' ' < talk | grep -o 'continue with `shardwright resume out`' | wc -l)
  [[ $code == 4 && ! -e out ]] || { echo "exit code $code of: $*"; cat talk; exit 1; }
  grep -q "worker $rank: .*File too large" <(tr '\n' ' ' < talk) || { echo "it says nothing:"; cat talk; exit 1; }
  if is_half_made; then [[ $told == 1 ]]; else [[ $told == 0 ]]; fi || {
    echo "how to go on is told $told times:"; cat talk; ls -a; exit 1; }
}

for rank in 0 1 2 3; do
  workers=$((rank + 1))
  run_out_of_room "$rank" "${words[@]}"
  if is_half_made; then
    "$mpirun" -n "$workers" "$program" resume out --quiet > /dev/null
  else
    "$mpirun" -n "$workers" "$program" "${words[@]}" > /dev/null
  fi
  diff -r wanted out || { echo "$workers processes made something else than one"; exit 1; }
  if is_half_made; then echo "something is left"; ls -a; exit 1; fi
  rm -rf out
done

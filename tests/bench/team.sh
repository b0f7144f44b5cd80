#!/usr/bin/env bash
# A team of processes beside one process with as many threads: seconds, seconds of processor time,
# and the bytes that all of them have read, a JSON line each. Each case is run ROUNDS times in turns,
# and the best counts; on a busy machine the processor time says more. The checkpoint (GIB of it, 8 ranks) is made anew in FOLDER, which needs room for three times
# as much: a memory disk by default.
#
#   team.sh [--in FOLDER] [--gib N] [--rounds N] [--processes "2 4"]
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=/dev/shm gib=2 rounds=3 processes="1 2 4"
while [[ $# -gt 0 ]]; do
  case $1 in
    --in) folder=$2; shift 2 ;;
    --gib) gib=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --processes) processes=$2; shift 2 ;;
    *) echo "team.sh: what is $1?" >&2; exit 2 ;;
  esac
done
program=${SHARDWRIGHT:-$root/build/release/app/shardwright}
# As root, and on fewer cores than processes, mpirun has to be told so. Bound to a core each, as
# Open MPI does with two, processes could not use the threads that they are compared with.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
work=$(mktemp -d "$folder/shardwright-team-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

/usr/bin/python3 "$root/tests/mpi/make_large.py" plain $((gib * 256)) 1024 1024
"$program" convert plain --to dcp --out source.1 --yes --quiet > /dev/null
rm -rf plain
"$program" reshard source.1 --mesh dp=2,tp=4 --out source --yes --quiet > /dev/null
rm -rf source.1

# Bytes that a process has asked the system for: its last word, when all of its files are closed.
cat > counted.sh <<'END'
"$@" > /dev/null
code=$?
awk '/^rchar/ {print $2}' "/proc/$$/io" > "read.${OMPI_COMM_WORLD_RANK:-0}"
exit $code
END
python3 - "$program" "$rounds" "$processes" <<'END'
import json, os, resource, shutil, subprocess, sys, time, glob
program, rounds, processes = sys.argv[1], int(sys.argv[2]), [int(n) for n in sys.argv[3].split()]
cases = {
    "reshard 8 to 3": ["reshard", "source", "--mesh", "tp=3", "--out", "out"],
    "reshard 8 to 8": ["reshard", "source", "--mesh", "dp=4,tp=2", "--out", "out"],
    "to one file": ["convert", "source", "--to", "safetensors", "--out", "out"],
    "verify": ["verify", "kept"],
    "verify against": ["verify", "kept", "--against", "source"],
    "check --data": ["check", "source", "--data"],
    "stats": ["stats", "source"],
}
subprocess.run([program, "reshard", "source", "--mesh", "tp=3", "--out", "kept", "--yes", "--quiet"],
               check=True, stdout=subprocess.DEVNULL)

def run(words, count):
    shutil.rmtree("out", ignore_errors=True)
    for path in glob.glob("read.*"): os.remove(path)
    makes = "--out" in words
    command = ["bash", "counted.sh", program] + words + ["--quiet"] + (["--yes"] if makes else [])
    if count: command = ["mpirun", "-n", str(count)] + command
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu, sum(int(open(path).read()) for path in glob.glob("read.*"))

def launch(count):
    begun = time.monotonic()
    subprocess.run(["mpirun", "-n", str(count), "true"], check=True)
    return time.monotonic() - begun

for name, words in cases.items():
    best, cpu, read, launched = {}, {}, {}, {}
    for _ in range(rounds):
        for count in [0] + processes:
            seconds, work, read[count] = run(words, count)
            best[count] = min(best.get(count, seconds), seconds)
            cpu[count] = min(cpu.get(count, work), work)
            if count: launched[count] = min(launched.get(count, 99), launch(count))
    for count in [0] + processes:
        print(json.dumps({
            "case": name, "processes": count or "alone", "seconds": round(best[count], 3),
            "cpu": round(cpu[count], 2), "cpu of alone": round(cpu[count] / cpu[0], 2),
            "mpirun true": round(launched.get(count, 0), 3), "read MB": round(read[count] / 1e6, 1),
            "rate of alone": round(best[0] / best[count], 3)}), flush=True)
END

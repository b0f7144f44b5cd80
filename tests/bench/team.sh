#!/usr/bin/env bash
# A team of processes beside one process with as many threads. MPI takes its time to begin and end
# whatever there is to do: `mpi` is that of a program that does nothing else, and is taken off a
# team's seconds before they are compared, as it would vanish beside terabytes. A JSON line each:
# seconds, processor time, the bytes that all have read, and the rate beside that of one process
# with as many threads (one per process, or one per core where there are more).
#
# Each is run ROUNDS times in turns, and the best counts. FOLDER, a memory disk by default, needs
# room for three times GIB.
#
#   team.sh [--in FOLDER] [--gib N] [--rounds N] [--processes "2 4"]
set -euo pipefail
export SHARDWRIGHT_PROCESSES=mpi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=/dev/shm gib=4 rounds=5 processes="1 2 4"
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
"$program" convert plain --to dcp --out one --yes --quiet > /dev/null
rm -rf plain
"$program" reshard one --mesh dp=2,tp=4 --out source --yes --quiet > /dev/null
rm -rf one
"$program" reshard source --mesh tp=3 --out kept --yes --quiet > /dev/null

# As the program begins and ends MPI on one machine (core/cluster/mpi.cpp).
cat > only_mpi.c <<'END'
#include <mpi.h>
int main(int count, char** words) {
  int level = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &level);
  return MPI_Finalize();
}
END
mpicc -O2 -o only_mpi only_mpi.c

# Bytes that a process has asked the system for: its last word, when all of its files are closed.
cat > counted.sh <<'END'
"$@" > /dev/null
code=$?
awk '/^rchar/ {print $2}' "/proc/$$/io" > "read.${OMPI_COMM_WORLD_RANK:-0}"
exit $code
END
python3 - "$program" "$rounds" "$processes" <<'END'
import glob, json, os, resource, shutil, subprocess, sys, time
program, rounds, processes = sys.argv[1], int(sys.argv[2]), [int(n) for n in sys.argv[3].split()]
cores = len(os.sched_getaffinity(0))
cases = {
    "reshard 8 to 3": ["reshard", "source", "--mesh", "tp=3", "--out", "out"],
    "reshard 8 to 8": ["reshard", "source", "--mesh", "dp=4,tp=2", "--out", "out"],
    "to one file": ["convert", "source", "--to", "safetensors", "--out", "out"],
    "verify": ["verify", "kept"],
    "verify against": ["verify", "kept", "--against", "source"],
    "check --data": ["check", "source", "--data"],
    "stats": ["stats", "source"],
    "hash": ["hash", "source"],
}
launch = lambda count: ["mpirun", "-n", str(count)] if count else []

def timed(command, **more):
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **more)
    seconds, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

def run(words, count, threads):
    shutil.rmtree("out", ignore_errors=True)
    for path in glob.glob("read.*"): os.remove(path)
    words = words + ["--quiet"] + (["--yes"] if "--out" in words else [])
    words += [] if count else ["--threads", str(threads)]
    spent = timed(launch(count) + ["bash", "counted.sh", program] + words)
    return spent + (sum(int(open(path).read()) for path in glob.glob("read.*")),)

# One process with the threads of each team, and the teams.
alone = sorted({max(n, cores) for n in processes})
runs = [(0, threads) for threads in alone] + [(n, max(n, cores)) for n in processes]
mpi = {n: min(timed(launch(n) + ["./only_mpi"], env=os.environ | {"OMPI_MCA_pml": "ob1"})[0]
              for _ in range(2 * rounds)) for n in processes}
for name, words in cases.items():
    best = {}
    for _ in range(rounds):
        for each in runs:
            spent = run(words, *each)
            best[each] = tuple(map(min, spent, best.get(each, spent)))
    for count, threads in runs:
        seconds, cpu, read = best[count, threads]
        line = {"case": name, "processes": count or "alone", "threads": threads,
                "seconds": round(seconds, 3), "cpu": round(cpu, 2), "read MB": round(read / 1e6, 1)}
        if count:
            line["mpi"] = round(mpi[count], 3)
            line["rate of one process"] = round(best[0, threads][0] / (seconds - mpi[count]), 3)
        print(json.dumps(line), flush=True)
END

#!/usr/bin/env bash
# A team of processes beside one process with as many threads. MPI takes its time to begin and end
# whatever there is to do (`mpi`: a program that does nothing else), which a checkpoint of gigabytes
# would count as work; so each case is run on two checkpoints, the large one of GIB and a quarter of
# it, and the rate is that of the bytes by which they differ. A JSON line each: seconds of the large
# one, the rate in GB/s, what it is of that of one process with as many threads (THREADS of one
# process: one a process, or one a core where there are more), and the bytes that all have read.
#
# Each is run ROUNDS times in turns, and the best counts. FOLDER, a memory disk by default, needs
# room for three times GIB.
#
#   team.sh [--in FOLDER] [--gib N] [--rounds N] [--processes "2 4"]
set -euo pipefail

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

make() {
  /usr/bin/python3 "$root/tests/mpi/make_large.py" plain "$2" 1024 1024
  "$program" convert plain --to dcp --out one --yes --quiet > /dev/null
  rm -rf plain
  "$program" reshard one --mesh dp=2,tp=4 --out "source.$1" --yes --quiet > /dev/null
  rm -rf one
  "$program" reshard "source.$1" --mesh tp=3 --out "kept.$1" --yes --quiet > /dev/null
}
make small $((gib * 64))
make large $((gib * 256))

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
python3 - "$program" "$rounds" "$processes" "$gib" <<'END'
import glob, json, os, shutil, subprocess, sys, time
program, rounds, processes = sys.argv[1], int(sys.argv[2]), [int(n) for n in sys.argv[3].split()]
large = int(sys.argv[4]) << 30
cores = len(os.sched_getaffinity(0))
cases = {
    "reshard 8 to 3": ["reshard", "source", "--mesh", "tp=3", "--out", "out"],
    "reshard 8 to 8": ["reshard", "source", "--mesh", "dp=4,tp=2", "--out", "out"],
    "to one file": ["convert", "source", "--to", "safetensors", "--out", "out"],
    "verify": ["verify", "kept"],
    "verify against": ["verify", "kept", "--against", "source"],
    "check --data": ["check", "source", "--data"],
    "stats": ["stats", "source"],
}
launch = lambda count: ["mpirun", "-n", str(count)] if count else []

def timed(command, **more):
    begun = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **more)
    return time.monotonic() - begun

def run(words, size, count, threads):
    shutil.rmtree("out", ignore_errors=True)
    for path in glob.glob("read.*"): os.remove(path)
    words = [f"{word}.{size}" if word in ("source", "kept") else word for word in words]
    words += ["--quiet"] + (["--yes"] if "--out" in words else [])
    words += ["--threads", str(threads)] if threads else []
    seconds = timed(launch(count) + ["bash", "counted.sh", program] + words)
    return seconds, sum(int(open(path).read()) for path in glob.glob("read.*"))

# One process with the threads of each team, and the teams.
runs = sorted({(0, max(n, cores)) for n in processes}) + [(n, None) for n in processes]
mpi = {n: min(timed(launch(n) + ["./only_mpi"], env=os.environ | {"OMPI_MCA_pml": "ob1"})
              for _ in range(rounds)) for n in processes}
for name, words in cases.items():
    best, read = {}, {}
    for _ in range(rounds):
        for count, threads in runs:
            for size in ("small", "large"):
                key = (count, threads, size)
                seconds, read[key] = run(words, size, count, threads)
                best[key] = min(best.get(key, seconds), seconds)
    rate = {(count, threads): large * 0.75 / 1e9 / (best[count, threads, "large"] - best[count, threads, "small"])
            for count, threads in runs}
    for count, threads in runs:
        line = {"case": name, "processes": count or "alone", "threads": threads or max(count, cores),
                "seconds": round(best[count, threads, "large"], 3), "GB/s": round(rate[count, threads], 3),
                "read MB": round(read[count, threads, "large"] / 1e6, 1)}
        if count:
            line["mpi"] = round(mpi[count], 3)
            line["of one process"] = round(rate[count, None] / rate[0, max(count, cores)], 3)
        print(json.dumps(line), flush=True)
END

"""How long a job takes to stop once it is told to: SIGINT at several moments of each verb, until the
process is gone, and how much CPU that costs. cancel.py SHARDWRIGHT FOLDER [GIGABYTES [MOMENTS]]: makes
its own checkpoints in FOLDER, of many bytes and of 250,000 tensors; with 0 gigabytes of those alone."""
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time

TENSORS = 24
NAMES = 250_000
KINDS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate", "up", "down", "norm1", "norm2", "bias"]


def make(folder, gigabytes, seed):
    os.makedirs(folder, exist_ok=True)
    count = int(gigabytes * 1e9) // TENSORS // 2 // 4096 * 4096
    header, at = {}, 0
    for i in range(TENSORS):
        header[f"model.layers.{i}.weight"] = {
            "dtype": "BF16", "shape": [count // 4096, 4096], "data_offsets": [at, at + 2 * count]}
        at += 2 * count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    block = random.Random(seed).randbytes(1 << 24)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        left = at
        while left > 0:
            left -= file.write(block[:left])


def make_names(folder):
    os.makedirs(folder, exist_ok=True)
    header = {}
    for i in range(NAMES):
        name = f"model.layers.{i // 250}.experts.{i % 250 // 10}.{KINDS[i % 10]}.weight"
        header[name] = {"dtype": "F32", "shape": [8, 2], "data_offsets": [64 * i, 64 * i + 64]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.write(os.urandom(64 * NAMES))


def cpu_of(process):
    """Milliseconds that its threads have run."""
    ran = 0
    for thread in os.listdir(f"/proc/{process.pid}/task"):
        try:
            with open(f"/proc/{process.pid}/task/{thread}/schedstat") as file:
                ran += int(file.read().split()[0])
        except OSError:
            pass  # it has ended
    return ran / 1e6


def stop_after(words, seconds):
    """Milliseconds until it was gone, and of CPU; None where it had ended by itself."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    if process.poll() is not None:
        return None
    before = cpu_of(process)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    return (time.monotonic() - begun) * 1e3, (used.ru_utime + used.ru_stime) * 1e3 - before


def clear(folder):
    for left in os.listdir(folder):
        if left.startswith("out") or ".out" in left:
            shutil.rmtree(os.path.join(folder, left), ignore_errors=True)


def measure(name, words, folder, moments):
    begun = time.monotonic()
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    takes = time.monotonic() - begun
    clear(folder)
    gone, cpu = [], []
    for step in range(moments):
        stopped = stop_after(words, takes * (step + 0.5) / (moments + 1))
        if stopped is not None:
            gone.append(stopped[0])
            cpu.append(stopped[1])
        clear(folder)
    if gone:
        print(f"{name:24} {takes:6.1f} s whole; gone after {statistics.median(gone):6.0f} ms (median), "
              f"{max(gone):6.0f} ms (worst of {len(gone)}); CPU {statistics.median(cpu):6.0f} ms, "
              f"{max(cpu):6.0f} ms; load {os.getloadavg()[0]:.1f}", flush=True)


def measure_bytes(program, folder, gigabytes, moments):
    a, b, out = (os.path.join(folder, name) for name in ("a", "b", "out"))
    make(a, gigabytes, 1)
    make(b, gigabytes, 1)
    dcp = os.path.join(folder, "dcp")
    shutil.rmtree(dcp, ignore_errors=True)
    begun = time.monotonic()
    subprocess.run([program, "convert", a, "--to", "dcp", "--out", dcp, "--yes"], check=True,
                   stdout=subprocess.DEVNULL)
    whole = time.monotonic() - begun
    print(f"{gigabytes:g} GB; a whole convert takes {whole:.1f} s")
    verbs = {
        "scan every byte": [program, "check", dcp, "--data"],
        "read statistics": [program, "stats", a],
        "write": [program, "convert", a, "--to", "dcp", "--out", out, "--yes"],
        "retile": [program, "reshard", a, "--mesh", "dp=8", "--out", out, "--yes"],
        "proof": [program, "verify", dcp, "--against", a],
        "compare": [program, "diff", a, b, "--data"],
    }
    for name, words in verbs.items():
        measure(name, words, folder, moments)


# Of many tensors and few bytes: what is asked for is the flag in every loop, not between readings.
def measure_names(program, folder, moments):
    names, many = os.path.join(folder, "names"), os.path.join(folder, "many")
    if not os.path.exists(many):  # beside it a certificate of 52 MB
        make_names(names)
        subprocess.run([program, "convert", names, "--to", "dcp", "--out", many, "--yes"],
                       check=True, stdout=subprocess.DEVNULL)
    verbs = {
        "check": ["check", many],
        "check headers": ["check", many, "--depth", "headers"],
        "check every byte": ["check", many, "--data"],
        "check safetensors": ["check", names],
        "check against": ["check", many, "--against", names],
        "plan": ["plan", many],
        "diff": ["diff", many, names],
    }
    print(f"{NAMES:,} tensors")
    for name, words in verbs.items():
        measure(name, [program, *words], folder, moments)


def main():
    program, folder = sys.argv[1], sys.argv[2]
    gigabytes = float(sys.argv[3]) if len(sys.argv) > 3 else 4
    moments = int(sys.argv[4]) if len(sys.argv) > 4 else 12
    if gigabytes > 0:
        measure_bytes(program, folder, gigabytes, moments)
    measure_names(program, folder, moments)


if __name__ == "__main__":
    main()

"""How long a job takes to stop once it is told to: SIGINT at several moments of each verb, until the
process is gone. cancel.py SHARDWRIGHT FOLDER [GIGABYTES]: makes its own checkpoints in FOLDER."""
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


def stop_after(words, seconds):
    """Milliseconds until it was gone; None where it had ended by itself."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    if process.poll() is not None:
        return None
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait()
    return (time.monotonic() - begun) * 1e3


def main():
    program, folder = sys.argv[1], sys.argv[2]
    gigabytes = float(sys.argv[3]) if len(sys.argv) > 3 else 4
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
        begun = time.monotonic()
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        takes = time.monotonic() - begun
        shutil.rmtree(out, ignore_errors=True)
        times = []
        for step in range(12):
            took = stop_after(words, takes * (step + 0.5) / 13)
            if took is not None:
                times.append(took)
            for left in os.listdir(folder):
                if left.startswith("out") or ".out" in left:
                    shutil.rmtree(os.path.join(folder, left), ignore_errors=True)
        if times:
            print(f"{name:16} {takes:6.1f} s whole; gone after {statistics.median(times):6.0f} ms "
                  f"(median), {max(times):6.0f} ms (worst of {len(times)})", flush=True)


if __name__ == "__main__":
    main()

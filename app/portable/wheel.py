"""Makes a wheel of the portable program, its library and the Python module. Needs nothing but
Python 3.9.

    wheel.py PROGRAM LIBRARY ARCH DIST [SHELL]

SHELL is the folder of what `shardwright completion` printed (bash, zsh, fish, man). A wheel is a zip
with a list of what is in it (PEP 427); the program lies in data/scripts, so that pip puts it on PATH.
"""

import base64
import hashlib
import pathlib
import re
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The second name is for pip before 20.3: RHEL 8 has 20.2.
GLIBC = ("manylinux_2_17", "manylinux2014")
SHELL_PLACES = {"bash": "share/bash-completion/completions/shardwright",
                "zsh": "share/zsh/site-functions/_shardwright",
                "fish": "share/fish/vendor_completions.d/shardwright.fish",
                "man": "share/man/man1/shardwright.1"}


def version():
    said = re.search(r"project\(shardwright VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    module = (ROOT / "python/shardwright/_version.py").read_text()
    if f'"{said[1]}"' not in module:
        sys.exit(f"python/shardwright/_version.py does not say {said[1]}")
    return said[1]


def metadata(number):
    return f"""Metadata-Version: 2.1
Name: shardwright
Version: {number}
Summary: Opens sharded training checkpoints, says what is wrong, and repairs them with proof
License-File: LICENSE
Requires-Python: >=3.9
Provides-Extra: arrays
Requires-Dist: numpy; extra == "arrays"
Requires-Dist: ml_dtypes; extra == "arrays"
Description-Content-Type: text/markdown

""" + (ROOT / "README.md").read_text()


def files(program, library, tags, number, shell):
    """(name in the wheel, bytes, whether it is run)"""
    info, data = f"shardwright-{number}.dist-info", f"shardwright-{number}.data"
    yield f"{data}/scripts/shardwright", program, True
    yield "shardwright/libshardwright.so.1", library, True
    yield "shardwright/shardwright.h", (ROOT / "core/capi/shardwright.h").read_bytes(), False
    for kind, place in SHELL_PLACES.items():
        if shell is not None and (shell / kind).exists():
            yield f"{data}/data/{place}", (shell / kind).read_bytes(), False
    for path in sorted((ROOT / "python/shardwright").iterdir()):
        if path.suffix == ".py" or path.name == "py.typed":
            yield f"shardwright/{path.name}", path.read_bytes(), False
    yield "shardwright/_spec.py", (ROOT / "assets/export_spec.py").read_bytes(), False
    yield f"{info}/METADATA", metadata(number).encode(), False
    yield (f"{info}/WHEEL", ("Wheel-Version: 1.0\nGenerator: shardwright\nRoot-Is-Purelib: false\n"
           + "".join(f"Tag: py3-none-{tag}\n" for tag in tags)).encode(), False)
    yield f"{info}/LICENSE", (ROOT / "LICENSE").read_bytes(), False


def entry(name, is_run):
    # The same bytes from the same commit: one time for all.
    info = zipfile.ZipInfo(name, time.gmtime(315_532_800)[:6])
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (0o100755 if is_run else 0o100644) << 16
    return info


def main(program, library, arch, dist, shell=None):
    number = version()
    program, library = pathlib.Path(program).read_bytes(), pathlib.Path(library).read_bytes()
    served = [f"{glibc}_{arch}" for glibc in GLIBC]
    out = pathlib.Path(dist) / f"shardwright-{number}-py3-none-{'.'.join(served)}.whl"
    record = []
    with zipfile.ZipFile(out, "w", compresslevel=9) as wheel:
        for name, data, is_run in files(program, library, served, number,
                                        shell and pathlib.Path(shell)):
            wheel.writestr(entry(name, is_run), data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
        name = f"shardwright-{number}.dist-info/RECORD"
        wheel.writestr(entry(name, False), "\n".join([*record, f"{name},,"]) + "\n")
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What is given away: the wheel, the archive that package.sh finds, the annotations of action.yml.

    SHARDWRIGHT=build/release/app/shardwright PYTHONPATH=python python -m pytest python/tests
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

import shardwright as sw

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRID = ROOT / "tests/data/torch-2.14/healthy_grid/ckpt"
DAMAGED = ROOT / "tests/data/torch-2.14/s2_swiglu_t2"


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"app/portable/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wheel_of(folder):
    for name in ("program", "library"):
        (folder / name).write_bytes(b"\x7fELF")
    script("wheel").main(folder / "program", folder / "library", "x86_64", folder)
    return next(folder.glob("*.whl"))


def test_wheel_is_named_for_old_pips_too(tmp_path):
    wheel = wheel_of(tmp_path)
    assert wheel.name.endswith("-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl")
    with zipfile.ZipFile(wheel) as opened:
        described = opened.read(next(name for name in opened.namelist() if name.endswith("/WHEEL")))
        assert re.findall(r"^Tag: (.*)$", described.decode(), re.MULTILINE) == [
            "py3-none-manylinux_2_17_x86_64", "py3-none-manylinux2014_x86_64"]
        assert "shardwright/shardwright.h" in opened.namelist()


def test_wheel_is_installed_by_pip(tmp_path):
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode:
        pytest.skip("this Python has no pip")
    wheel = wheel_of(tmp_path)
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
                    "--disable-pip-version-check", "--target", tmp_path / "out", wheel], check=True)
    assert os.access(tmp_path / "out/bin/shardwright", os.X_OK)
    assert (tmp_path / "out/shardwright/py.typed").exists()


DEBIAN = """# comment
Types: deb deb-src
URIs: http://deb.debian.org/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""
CLOUD = "Types: deb\nURIs: mirror+file:///etc/apt/mirrors/debian.list\nSuites: bookworm\nComponents: main\n"
PORTS = "deb http://ports.ubuntu.com/ubuntu-ports noble main restricted\ndeb-src http://x/debian noble main\n"
OWN = "deb [arch=amd64 signed-by=/k.gpg] https://art.corp/artifactory/deb-remote bookworm main contrib\n"
DOCKER = "deb [arch=amd64] https://download.docker.com/linux/debian bookworm stable\n"


@pytest.mark.parametrize("files, release, wanted", [
    ({"debian.sources": DEBIAN}, "bookworm",
     ("http://deb.debian.org/debian", "/usr/share/keyrings/debian-archive-keyring.gpg")),
    ({"debian.sources": CLOUD, "a.list": DOCKER}, "bookworm",
     ("mirror+file:///etc/apt/mirrors/debian.list", "")),
    ({"u.list": PORTS}, "noble", ("http://ports.ubuntu.com/ubuntu-ports", "")),
    ({"a.list": OWN}, "bookworm", ("https://art.corp/artifactory/deb-remote", "/k.gpg")),
    ({"a.list": OWN, "debian.sources": DEBIAN.replace("URIs", "Enabled: no\nURIs")}, "bookworm",
     ("https://art.corp/artifactory/deb-remote", "/k.gpg")),
    ({"a.list": "deb https://packages.example/php bookworm main\n", "b.list":
      "deb http://deb.debian.org/debian/ bookworm main # it\n"}, "bookworm",
     ("http://deb.debian.org/debian/", "")),
    ({"a.list": DOCKER}, "bookworm", None), ({"debian.sources": DEBIAN}, "trixie", None),
], ids=["debian", "cloud", "ports", "mirror", "disabled", "third-party", "none", "other-release"])
def test_archive_of_the_distribution_is_found(tmp_path, files, release, wanted):
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    for name, text in files.items():
        (parts / name).write_text(text)
    assert script("archive").archive_of(tmp_path, release) == wanted


def annotated(folder, path, *words):
    subprocess.run([sw.program(), "report", path, *words, "--format", "sarif", "--out",
                    folder / "out.sarif", "--quiet"], capture_output=True)
    return subprocess.run([sys.executable, ROOT / "app/portable/annotate.py", folder / "out.sarif",
                           str(path)], capture_output=True, text=True, check=True).stdout.splitlines()


def test_annotations_are_those_of_the_report(tmp_path):
    words = [DAMAGED / "ckpt", "--spec", DAMAGED / "spec.json"]
    got = annotated(tmp_path, *words)
    said = subprocess.run([sw.program(), "report", *words, "--format", "github", "--quiet"],
                          capture_output=True, text=True).stdout.splitlines()
    assert got and [line.split("::")[1] for line in got] == [line.split("::")[1] for line in said]
    assert len(annotated(tmp_path, tmp_path / "nowhere,100%")) == 1
    assert annotated(tmp_path, tmp_path / "nowhere,100%")[0].startswith("::error file=")


def steps_of_action():
    """The shell of each step, by how many spaces it is indented."""
    text = (ROOT / "action.yml").read_text()
    return [re.sub("^ {8}", "", block, flags=re.MULTILINE)
            for block in re.findall(r"^      run: \|\n((?:        .*\n)+)", text, re.MULTILINE)]


def test_steps_of_the_action_check_annotate_and_fail(tmp_path):
    _, check = steps_of_action()
    bin_ = tmp_path / "shardwright-venv/bin"
    bin_.mkdir(parents=True)
    (bin_ / "shardwright").symlink_to(sw.program())
    (bin_ / "python").symlink_to(sys.executable)

    def run(path, **options):
        inputs = {"CHECKPOINT": path, "SPEC": "", "AGAINST": "", "DATA": "false",
                  "FAIL_ON": "warning", **options}
        return subprocess.run(["bash", "-eo", "pipefail", "-c", check], capture_output=True, text=True,
                              env={**os.environ, "RUNNER_TEMP": str(tmp_path), "GITHUB_OUTPUT":
                                   str(tmp_path / "outputs"), "GITHUB_ACTION_PATH": str(ROOT),
                                   **{name: str(value) for name, value in inputs.items()}})

    assert run(GRID, DATA="true").returncode == 0
    damaged = run(DAMAGED / "ckpt", SPEC=DAMAGED / "spec.json")
    assert damaged.returncode == 1 and damaged.stdout.startswith("::")
    assert run(DAMAGED / "ckpt", SPEC=DAMAGED / "spec.json", FAIL_ON="never").returncode == 0
    assert "::error" in run(tmp_path / "nowhere").stdout
    written = re.findall("^sarif=(.*)$", (tmp_path / "outputs").read_text(), re.MULTILINE)
    assert len(set(written)) == len(written) == 4 and all(map(os.path.exists, written))

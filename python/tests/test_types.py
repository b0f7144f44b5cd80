"""The module's annotations as mypy --strict sees them from a program that uses it."""

import os
import pathlib
import subprocess
import sys

import pytest

USE = '''
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
import shardwright as sw


def norms(path: Path) -> Dict[str, float]:
    found: Dict[str, float] = {}
    with sw.open(path, spec="spec.json", mesh={"dp": 2}) as ck:
        for name, tensor in ck.items():
            values: np.ndarray[Any, Any] = tensor.numpy()
            found[name] = float(np.linalg.norm(values[:8]))
            shape: Tuple[int, ...] = tensor.shape
            print(len(shape), tensor.dtype.itemsize, tensor[0, :3])
    return found


def gate(path: str) -> str:
    try:
        report = sw.raise_unless_clean(path, data=True)
    except sw.NotClean as error:
        for finding in error.report:
            print(finding.rule, finding.severity.upper(), finding.subjects[:1], error.path)
        raise
    except sw.ShardwrightError as error:
        print(error.code, error.file, error.offset, error.exit_code + 1)
        return error.advice
    return report.verdict


def heard(progress: sw.Progress) -> None:
    print(progress.done / max(progress.total, 1))


hashes = sw.hash("a", progress=heard)
total: str = hashes.total or ""
columns: Dict[str, List[Any]] = sw.open("a").tensors()
sw.repair(sw.open("a"), against=Path("b"), out="c", progress=lambda p: print(p.phase))
sw.reshard("a", {"dp": 2}, out="x")
print(sw.hash_of({"a": 1}).total, sw.spec_of, sw.__version__)
'''
WRONG = {'sw.opne("a")': "attr-defined", "sw.check(3)": "arg-type", 'sw.open("a").shape': "attr-defined",
         'int(sw.open("a")["w"].dtype_name.real)': "attr-defined"}


def mypy(path):
    environment = {**os.environ, "MYPYPATH": str(pathlib.Path(__file__).resolve().parents[1])}
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", path],
                          env=environment, cwd=path.parent, capture_output=True, text=True)


def test_annotations_fit_a_strict_program(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "use.py").write_text(USE)
    checked = mypy(tmp_path / "use.py")
    assert checked.returncode == 0, checked.stdout
    (tmp_path / "wrong.py").write_text("import shardwright as sw\n" + "\n".join(WRONG) + "\n")
    said = mypy(tmp_path / "wrong.py").stdout
    for line, code in enumerate(WRONG.values(), 2):
        assert f"wrong.py:{line}: error:" in said and f"[{code}]" in said, said

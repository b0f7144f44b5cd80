"""The module against numpy and torch, on the fixtures of tests/data.

    SHARDWRIGHT=build/release/app/shardwright PYTHONPATH=python python -m pytest python/tests

Every fixture with a truth.safetensors says what the elements of its checkpoint are.
"""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import shardwright as sw

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"
HEALTHY = sorted(path.parent for path in DATA.glob("*/healthy*/truth.safetensors"))
GRID = DATA / "torch-2.14/healthy_grid/ckpt"


def truth_of(case):
    torch = pytest.importorskip("torch")
    from safetensors import safe_open
    with safe_open(case / "truth.safetensors", "pt") as file:
        return torch, {name: file.get_tensor(name) for name in file.keys()}


@pytest.mark.parametrize("case", HEALTHY, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_elements_are_those_that_were_saved(case):
    torch, truth = truth_of(case)
    ck = sw.open(case / "ckpt")
    shared = set(ck) & set(truth)
    assert shared
    for name in shared:
        wanted = truth[name]
        assert ck[name].shape == tuple(wanted.shape)
        got = ck[name].torch()
        assert got.dtype == wanted.dtype
        assert torch.equal(got.reshape(-1).view(torch.uint8), wanted.contiguous().reshape(-1)
                           .view(torch.uint8)), name


INDICES = [..., 0, -1, slice(None, 2), slice(1, None), slice(None, None, -1), slice(None, None, 2),
           (slice(1, 3), slice(None, None, -2)), (..., 0), (None, 1), (0, 0), slice(2, 2),
           (slice(None), -1), (1, ..., 2), [0, 2]]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indices_are_those_of_numpy(index):
    tensor = sw.open(GRID)["cube"]
    assert np.array_equal(tensor[index], tensor.numpy()[index])


def test_an_index_out_of_bounds_is_an_error():
    tensor = sw.open(GRID)["cube"]
    for index in (3, -4, (0, 0, 0, 0), (..., ...)):
        with pytest.raises(IndexError):
            tensor[index]


def test_one_run_is_mapped_and_cannot_be_written(tmp_path):
    values = np.arange(12, dtype="f4").reshape(3, 4)
    write_safetensors(tmp_path / "model.safetensors", "w", values)
    tensor = sw.open(tmp_path / "model.safetensors")["w"]
    got = tensor[1:]
    assert np.array_equal(got, values[1:]) and not got.flags.writeable and not got.flags.owndata
    changed = np.from_dlpack(tensor)
    assert np.array_equal(changed, values)


def write_safetensors(path, name, values):
    import json
    header = json.dumps({name: {"dtype": "F32", "shape": list(values.shape),
                                "data_offsets": [0, values.nbytes]}}).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(len(header).to_bytes(8, "little") + header + values.tobytes())


def test_columns_go_into_a_table():
    ck = sw.open(GRID)
    for columns in (ck.tensors(), ck.chunks(), ck.stats(), ck.findings()):
        assert len({len(column) for column in columns.values()}) == 1
    assert len(ck.tensors()["tensor"]) == len(ck)


def test_findings_are_objects_and_show_themselves():
    case = DATA / "torch-2.14/s2_swiglu_t2"
    report = sw.open(case / "ckpt").check(spec=case / "spec.json")
    assert report.verdict == "findings" and not report
    assert all(isinstance(one.cause, str) and one.subjects for one in report)
    assert report.findings[0].rule in report._repr_html_()
    assert sw.open(GRID).check().verdict != "findings"


def test_hashes_tell_the_same_from_another(tmp_path):
    made = sw.convert(GRID, "safetensors", out=tmp_path / "hf", leave_out="*object*")
    assert sw.hash(made["output"], "cube") == sw.hash(GRID, "cube")
    assert sw.diff(GRID, GRID, data=True)["verdict"] == "same"


def test_checkpoints_are_combined(tmp_path):
    first = sw.convert(GRID, "safetensors", out=tmp_path / "a", leave_out="*object*")["output"]
    rounded = sw.convert(first, "safetensors", out=tmp_path / "b", dtype="bf16")["output"]
    mean = sw.average(first, rounded, weights=[0.25, 0.75], out=tmp_path / "mean")["output"]
    assert sw.hash(mean).total != sw.hash(first).total
    made = sw.delta(first, mean, out=tmp_path / "delta")["output"]
    again = sw.apply(first, made, out=tmp_path / "again")["output"]
    assert sw.diff(again, mean, data=True)["verdict"] == "same"
    computed = sw.open(f"{first}/@applied={made}")
    assert (computed["cube"][:] == sw.open(mean)["cube"][:]).all()
    with pytest.raises(sw.ShardwrightError) as error:
        sw.delta(first, first, out=tmp_path / "none")
    assert error.value.code == "usage"


def test_an_error_has_a_code():
    with pytest.raises(sw.ShardwrightError) as error:
        sw.open("/no/such/checkpoint")
    assert error.value.code == "system_refused" and error.value.exit_code == 4
    with pytest.raises(sw.ShardwrightError) as error:
        sw.open(GRID).check(mesh="nonsense")
    assert error.value.code == "usage"


def test_a_rank_of_a_job_is_not_kept_waiting(monkeypatch):
    for name, value in {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SHARDWRIGHT_PROCESSES", "mpi")
    assert len(sw.open(GRID)) > 0


def test_import_loads_no_array_library():
    words = [sys.executable, "-c", "import shardwright, sys; print(*sys.modules)"]
    loaded = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert "shardwright" in loaded
    assert not {"numpy", "torch", "ml_dtypes", "safetensors"} & set(loaded)


def test_ctrl_c_stops_the_program(tmp_path):
    write_safetensors(tmp_path / "a.safetensors", "w", np.zeros((1 << 14, 1 << 13), "f4"))
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    began = time.monotonic()
    timer.start()
    try:
        for _ in range(200):
            sw.stats(tmp_path / "a.safetensors")
    except KeyboardInterrupt:
        assert time.monotonic() - began < 20
        return
    pytest.fail("it was not stopped")

"""Tensors of the module against numpy and torch, on the fixtures of tests/data.

    SHARDWRIGHT=build/release/app/shardwright PYTHONPATH=python python -m pytest python/tests
"""

import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from cases import DATA, GRID, HEALTHY, opened_by_http, served, truth_of, write_safetensors

import shardwright as sw


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


def test_dlpack_carries_the_dtypes_that_numpy_lacks(tmp_path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file
    values = {str(dtype): torch.arange(24).reshape(4, 6).to(dtype) for dtype in
              (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float16, torch.int64)}
    save_file(values, tmp_path / "model.safetensors")
    ck = sw.open(tmp_path / "model.safetensors")
    for name, wanted in values.items():
        got = torch.from_dlpack(ck[name])
        assert got.dtype == wanted.dtype
        assert torch.equal(got.view(torch.uint8), wanted.view(torch.uint8)), name


INDICES = [..., 0, -1, slice(None, 2), slice(1, None), slice(None, None, -1), slice(None, None, 2),
           (slice(1, 3), slice(None, None, -2)), (..., 0), (None, 1), (0, 0), slice(2, 2),
           (slice(None), -1), (1, ..., 2), [0, 2], (0, 0, 0), (0, 0, 0, ...), True, ((0, 2),),
           np.array([True, False, True]), np.int64(1)]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indices_are_those_of_numpy(index):
    tensor = sw.open(GRID)["cube"]
    wanted = tensor.numpy()[index]
    assert np.array_equal(tensor[index], wanted) and type(tensor[index]) is type(wanted)


def test_an_index_out_of_bounds_is_an_error():
    tensor = sw.open(GRID)["cube"]
    for index in (3, -4, (0, 0, 0, 0), (..., ...), "0", 1.0):
        with pytest.raises(IndexError):
            tensor[index]


def test_a_tensor_without_dimensions_is_an_array(tmp_path):
    write_safetensors(tmp_path / "model.safetensors", "step", np.array(9000, "f4"))
    step = sw.open(tmp_path / "model.safetensors")["step"]
    for array in (step[...], step.numpy(), np.asarray(step), np.array(step), np.from_dlpack(step)):
        assert isinstance(array, np.ndarray) and array.shape == () and array == 9000
    assert step[()] == 9000 and not isinstance(step[()], np.ndarray)
    torch = pytest.importorskip("torch")
    assert torch.from_dlpack(step) == step.torch() == 9000


def test_array_of_numpy_copies_where_it_was_asked_to(tmp_path):
    values = np.arange(12, dtype="f4").reshape(3, 4)
    write_safetensors(tmp_path / "model.safetensors", "w", values)
    tensor = sw.open(tmp_path / "model.safetensors")["w"]
    copied = np.array(tensor)
    copied[0] = 7  # and the file is as it was
    assert np.array_equal(np.asarray(tensor), values) and not np.asarray(tensor).flags.writeable
    assert np.asarray(tensor, "f8").dtype == "f8"
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        assert not np.array(tensor, copy=False).flags.owndata
        with pytest.raises(ValueError, match="copy"):
            np.array(tensor, "f8", copy=False)


def test_arrays_of_many_tensors_leave_files_closed(tmp_path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file
    values = {f"layer.{at}": torch.full((1 << 15,), float(at)) for at in range(100)}
    for part in range(10):
        save_file(values if part == 0 else {f"{part}.{name}": one for name, one in values.items()},
                  tmp_path / f"model-{part}.safetensors")
    code = f"""
import resource, numpy as np, shardwright as sw, torch
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
for part in range(10):
    ck = sw.open({str(tmp_path)!r} + f"/model-{{part}}.safetensors")
    for name, tensor in ck.items():
        held += [(float(name.split(".")[-1]), one) for one in (
            tensor.torch(), tensor[:], tensor[5:9], np.from_dlpack(tensor))]
    ck.close()
assert len(held) == 4000 and all((one == value).all() for value, one in held)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_that_was_replaced_is_mapped_anew(tmp_path):
    path = tmp_path / "model.safetensors"
    write_safetensors(path, "w", np.zeros(4, "f4"))
    tensor = sw.open(path)["w"]
    before = tensor[:]
    write_safetensors(tmp_path / "next", "w", np.ones(4, "f4"))
    (tmp_path / "next").rename(path)
    assert (tensor[:] == 1).all() and (before == 0).all()
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(sw.ShardwrightError):
        tensor[:]


def test_one_run_is_mapped_and_cannot_be_written(tmp_path):
    values = np.arange(12, dtype="f4").reshape(3, 4)
    write_safetensors(tmp_path / "model.safetensors", "w", values)
    tensor = sw.open(tmp_path / "model.safetensors")["w"]
    got = tensor[1:]
    assert np.array_equal(got, values[1:]) and not got.flags.writeable and not got.flags.owndata
    changed = np.from_dlpack(tensor)
    assert np.array_equal(changed, values)


DTYPES = ["float4_e2m1fn_x2", "complex32", "bits8", "bits16", "qint8", "float8_e8m0fnu", "bfloat16"]


@pytest.mark.parametrize("has_ml_dtypes", [True, False])
@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_that_numpy_lacks_keep_their_bits(name, has_ml_dtypes, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    if has_ml_dtypes:
        pytest.importorskip("ml_dtypes")
    else:
        monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    if not hasattr(torch, name):
        pytest.skip(f"this torch has no {name}")
    bits = torch.arange(32, dtype=torch.uint8)
    torch.save({"w": bits.view(getattr(torch, name))}, tmp_path / "saved.pt")
    tensor = sw.open(tmp_path / "saved.pt")["w"]
    assert tensor.dtype_name == name and tensor.nbytes == 32
    assert tensor.dtype.kind == "u" or has_ml_dtypes and tensor.dtype.name == name
    assert tensor.dtype.name == name or not has_ml_dtypes or name not in ("bfloat16", "float8_e8m0fnu")
    assert tensor[:].view(np.uint8).tolist() == tensor.torch().view(torch.uint8).tolist()
    assert tensor.torch().view(torch.uint8).tolist() == bits.tolist()
    assert tensor.torch().dtype == getattr(torch, name)


def test_a_box_of_what_must_be_decoded_is_that_of_numpy():
    torch, truth = truth_of(DATA / "torch-2.14/healthy_zstd")
    ck = sw.open(DATA / "torch-2.14/healthy_zstd/ckpt")
    for name in set(ck) & set(truth):
        if ck[name].ndim != 2:
            continue
        got = torch.from_numpy(np.ascontiguousarray(ck[name][1:, ::2]).view(np.uint8))
        assert torch.equal(got.reshape(-1), truth[name][1:, ::2].contiguous().view(torch.uint8)
                           .reshape(-1)), name


def test_a_checkpoint_over_http_is_read_by_ranges(tmp_path):
    values = np.arange(1 << 20, dtype="f4").reshape(1 << 10, 1 << 10)
    write_safetensors(tmp_path / "model.safetensors", "w", values)
    with served(tmp_path) as server:
        got = opened_by_http(f"http://{server.at}/model.safetensors")["w"][100:102]
        assert np.array_equal(got, values[100:102])
        assert server.sent < values.nbytes


def test_a_url_with_a_password_is_checked_and_pickled_too(tmp_path):
    values = np.arange(12, dtype="f4").reshape(3, 4)
    write_safetensors(tmp_path / "model.safetensors", "w", values)
    with served(tmp_path, "me:hunter2") as server:
        typed = f"http://me:hunter2@{server.at}/model.safetensors"
        ck = opened_by_http(typed)
        assert ck.path == f"http://{server.at}/model.safetensors"
        assert np.array_equal(ck["w"][:], values) and len(ck.chunks()["tensor"]) == 1
        assert ck.check(data=True).findings == [] and ck.stats()["max"] == [11]
        assert sw.hash(typed) == ck.hash() == sw.hash(ck)
        assert sw.diff(ck, tmp_path / "model.safetensors", data=True)["verdict"] == "same"
        code = "import pickle, sys; print(pickle.load(sys.stdin.buffer)['w'][:].sum())"
        said = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(ck),
                              capture_output=True, check=True).stdout
        assert float(said) == values.sum()


SFTP_SERVER = "/usr/lib/openssh/sftp-server"


@pytest.mark.parametrize("place", ["http", "ssh", "file"])
def test_forked_workers_read_apart_from_their_parent(tmp_path, place, monkeypatch):
    values = np.arange(1 << 20, dtype="f4").reshape(1 << 10, 1 << 10)
    write_safetensors(tmp_path / "model.safetensors", "w", values)
    code = """
import os, sys, numpy as np, shardwright as sw
tensor = sw.open(sys.argv[1])["w"]
def read(first):  # a block of 1 MiB is read by one request
    for row in list(range(first, 1024, 16)):
        assert (tensor[row] == np.arange(row << 10, (row + 1) << 10)).all(), row
read(1000)
workers = [os.fork() for _ in range(3)]
if 0 in workers:
    try:
        read(len(workers))
    except BaseException as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(0 if "that of the parent" in str(error) else 1)  # never wrong elements
    del tensor  # its connections are the parent's
    os._exit(0)
read(7)
assert [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in workers] == [0, 0, 0]
"""
    with served(tmp_path) as server:
        where = tmp_path / "model.safetensors"
        if place == "http":
            where = f"http://{server.at}/model.safetensors"
            opened_by_http(where)
        if place == "ssh":  # a double, which speaks SFTP as the server does
            if not os.path.exists(SFTP_SERVER):
                pytest.skip("openssh-sftp-server is not installed")
            (tmp_path / "ssh").write_text(f"#!/bin/sh\nexec {SFTP_SERVER}\n")
            (tmp_path / "ssh").chmod(0o755)
            monkeypatch.setenv("SHARDWRIGHT_SSH", str(tmp_path / "ssh"))
            where = f"ssh://host{where}"
        subprocess.run([sys.executable, "-c", code, where], check=True, timeout=120)


def test_a_lost_file_is_an_error_that_names_it(tmp_path):
    import shutil
    shutil.copytree(GRID, tmp_path / "ckpt")
    lost = sorted((tmp_path / "ckpt").glob("*.distcp"))[0]
    lost.unlink()
    ck = sw.open(tmp_path / "ckpt")
    errors = []
    for name in ck:
        try:
            ck[name].numpy()
        except sw.ShardwrightError as error:
            errors.append(error)
    assert errors and all(error.code in ("damaged", "system_refused") for error in errors)
    assert any(lost.name in str(error) for error in errors)


def test_threads_share_a_checkpoint():
    ck = sw.open(DATA / "torch-2.14/healthy_zstd/ckpt")
    wanted = {name: ck[name].numpy().tobytes() for name in ck}
    wrong = []

    def look():
        for name in ck:
            if ck[name].numpy().tobytes() != wanted[name]:
                wrong.append(name)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong

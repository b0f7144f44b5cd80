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


def test_the_table_of_a_notebook_says_how_many_subjects_it_leaves_out():
    from shardwright._report import Report
    def table(subjects):
        finding = {"rule": "coverage-gap", "severity": "error", "cause": "a hole", "subjects": subjects}
        return Report({"verdict": "findings", "depth": "metadata", "unjudged": [],
                       "findings": [finding]})._repr_html_()
    assert ">a, b, c<" in table(["a", "b", "c"])
    assert ">a, b, c and 2 more<" in table(["a", "b", "c", "d", "e"])


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
    import http.server

    values = np.arange(1 << 20, dtype="f4").reshape(1 << 10, 1 << 10)
    write_safetensors(tmp_path / "model.safetensors", "w", values)

    class Ranges(http.server.SimpleHTTPRequestHandler):
        sent = 0

        def do_GET(self):
            path = pathlib.Path(self.translate_path(self.path))
            if not path.is_file():
                return self.send_error(404)
            whole, asked = path.read_bytes(), self.headers.get("Range")
            low, high = 0, len(whole) - 1
            if asked:
                first, last = asked.removeprefix("bytes=").split("-")
                low, high = int(first), min(int(last or high), high)
            self.send_response(206 if asked else 200)
            self.send_header("ETag", '"1"')
            self.send_header("Accept-Ranges", "bytes")
            if asked:
                self.send_header("Content-Range", f"bytes {low}-{high}/{len(whole)}")
            self.send_header("Content-Length", str(high + 1 - low))
            self.end_headers()
            Ranges.sent += high + 1 - low
            self.wfile.write(whole[low:high + 1])

        def do_HEAD(self):
            path = pathlib.Path(self.translate_path(self.path))
            if not path.is_file():
                return self.send_error(404)
            self.send_response(200)
            self.send_header("ETag", '"1"')
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(path.stat().st_size))
            self.end_headers()

        def log_message(self, *words):
            pass

    handler = lambda *words, **more: Ranges(*words, directory=tmp_path, **more)  # noqa: E731
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = f"http://127.0.0.1:{server.server_port}/model.safetensors"
        try:
            got = sw.open(where)["w"][100:102]
        except sw.ShardwrightError as error:
            if "libcurl" in str(error):
                pytest.skip("libcurl is not installed")
            raise
        finally:
            server.shutdown()
    assert np.array_equal(got, values[100:102])
    assert Ranges.sent < values.nbytes


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


def test_progress_is_heard(tmp_path):
    model = tmp_path / "model.safetensors"
    write_safetensors(model, "w", np.zeros(1 << 22, np.float32))
    heard = []
    sw.convert(model, "dcp", out=tmp_path / "out", progress=heard.append)
    assert heard and all(0 <= one.done and one.unit in ("bytes", "items") for one in heard)
    verified = [one for one in heard if one.phase == "Verifying"]
    assert verified and verified[-1].done == verified[-1].total >= 1 << 24
    assert str(verified[-1]).startswith("Verifying: ")

    def fails(progress):
        raise RuntimeError("from the callback")
    with pytest.raises(RuntimeError, match="from the callback"):
        sw.check(model, data=True, progress=fails)


def test_a_bar_of_tqdm_shows_progress(tmp_path):
    tqdm = pytest.importorskip("tqdm")
    write_safetensors(tmp_path / "model.safetensors", "w", np.zeros(1 << 22, np.float32))
    with open(tmp_path / "said", "w") as said, tqdm.tqdm(file=said, mininterval=0) as bar:
        assert sw.open(tmp_path).check(data=True, progress=bar).findings == []
        assert 0 < bar.n <= bar.total
    assert "%" in (tmp_path / "said").read_text()


def test_ctrl_c_ends_a_call_of_the_library():
    import socket
    with socket.socket() as silent:  # takes connections and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        timer = threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT))
        began = time.monotonic()
        timer.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                sw.open(f"http://127.0.0.1:{silent.getsockname()[1]}/model.safetensors")
                time.sleep(5)  # without libcurl it is an error at once
        except sw.ShardwrightError as error:
            timer.cancel()
            pytest.skip(str(error))
        assert time.monotonic() - began < 10
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


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

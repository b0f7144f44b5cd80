"""The module: columns, findings, verbs, processes.

    SHARDWRIGHT=build/release/app/shardwright PYTHONPATH=python python -m pytest python/tests
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
from cases import DATA, GRID, write_safetensors

import shardwright as sw


def test_a_checkpoint_is_closed_when_it_is_dropped(tmp_path):
    import weakref
    write_safetensors(tmp_path / "model.safetensors", "w", np.arange(4, dtype="f4"))
    ck = sw.open(tmp_path / "model.safetensors")
    handle = weakref.ref(ck._handle)
    del ck
    assert handle() is None  # without the garbage collector
    with sw.open(tmp_path / "model.safetensors") as ck:
        kept = ck["w"][:]
    assert kept.sum() == 6  # its map outlives the checkpoint
    for use in (lambda: ck["w"][:], ck.info, ck.chunks, lambda: ck["w"].dtype):
        with pytest.raises(sw.ShardwrightError, match="closed"):
            use()
    ck.close()


def test_closing_waits_for_calls_of_other_threads():
    ck = sw.open(DATA / "torch-2.14/healthy_zstd/ckpt")
    wrong = []

    def look():
        try:
            while True:
                for name in ck:
                    ck[name].numpy()
        except sw.ShardwrightError as error:
            if "closed" not in str(error):
                wrong.append(error)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    ck.close()
    for thread in threads:
        thread.join()
    assert not wrong


def test_checkpoints_and_errors_travel_to_other_processes():
    import pickle
    ck = pickle.loads(pickle.dumps(sw.open(GRID, against=GRID)))
    assert ck._expected == {"against": GRID}
    tensor = pickle.loads(pickle.dumps(ck["cube"]))
    assert np.array_equal(tensor[:], ck["cube"][:])
    with pytest.raises(sw.ShardwrightError) as error:
        sw.open("/no/such/checkpoint")
    again = pickle.loads(pickle.dumps(error.value))
    assert vars(again) == vars(error.value) and str(again) == str(error.value)
    report = sw.Report({"verdict": "findings", "depth": "metadata", "unjudged": [], "findings": [
        {"rule": "coverage-gap", "severity": "error", "cause": "a hole"}]})
    stopped = pickle.loads(pickle.dumps(sw.NotClean("step_9", report)))
    assert isinstance(stopped, sw.NotClean) and stopped.report.findings == report.findings
    assert "step_9" in str(stopped) and stopped.exit_code == 1


def test_what_open_was_told_to_expect_is_expected_by_all(tmp_path):
    (tmp_path / "spec.json").write_text('{"absent": {"shape": [2], "dtype": "float32"}}')
    plain, ck = sw.open(GRID), sw.open(GRID, spec=tmp_path / "spec.json")
    wanted = ck.check().answer["findings"]
    assert any("absent" in finding["subjects"] for finding in wanted)
    assert sw.check(ck).answer["findings"] == wanted
    assert sw.check(ck, spec=None).answer["findings"] == plain.check().answer["findings"]
    with pytest.raises(sw.NotClean) as stopped:
        sw.raise_unless_clean(ck)
    assert stopped.value.report.answer["findings"] == wanted


def test_a_checkpoint_is_taken_where_a_path_is():
    ck = sw.open(GRID)
    assert os.fspath(ck) == ck.path
    assert ck.check(against=ck).verdict == sw.check(GRID, against=GRID).verdict
    assert sw.diff(GRID, ck, data=True)["verdict"] == "same"


def test_places_are_those_that_the_program_shows():
    for case in (GRID, DATA / "torch-2.14/healthy_zstd/ckpt"):
        ck = sw.open(case)
        columns = ck.chunks()
        for name in ck:
            shown = sw.run("show", case, name, "--places")["chunks"]
            assert ck[name].chunks == shown
            rows = [at for at, other in enumerate(columns["tensor"]) if other == name]
            for key in ("offsets", "sizes", "file", "offset", "length"):
                assert [columns[key][at] for at in rows] == [
                    tuple(one[key]) if isinstance(one[key], list) else one[key] for one in shown]
            assert [columns["rank"][at] for at in rows] == [one["writer"] for one in shown]


def test_columns_go_into_a_table():
    ck = sw.open(GRID)
    for columns in (ck.tensors(), ck.chunks(), ck.stats(), ck.findings()):
        assert len({len(column) for column in columns.values()}) == 1
    assert len(ck.tensors()["tensor"]) == len(ck)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_are_taken_by(library, tmp_path):
    table = pytest.importorskip(library).DataFrame
    torch = pytest.importorskip("torch")
    import torch.distributed.checkpoint as dcp
    dcp.save({"step": torch.tensor(3), "nan": torch.tensor([1., float("nan")]),
              "only_nan": torch.tensor([float("nan")]), "infinite": torch.tensor([float("inf"), -1]),
              "mask": torch.tensor([True, False]), "half": torch.randn(3, 4).bfloat16(),
              "large": torch.tensor([2**64 - 1], dtype=torch.uint64), "none": torch.empty(0, 3),
              "complex": torch.tensor([1 + 2j])}, checkpoint_id=tmp_path / "ckpt")
    damaged = DATA / "torch-2.14/s2_swiglu_t2/ckpt"
    for ck in (sw.open(tmp_path / "ckpt"), sw.open(GRID), sw.open(damaged)):
        for columns in (ck.tensors(), ck.chunks(), ck.stats(), ck.findings()):
            assert list(table(columns).columns) == list(columns)
    stats = sw.stats(tmp_path / "ckpt")
    least = dict(zip(stats["tensor"], stats["min"]))
    assert least["step"] == 3 and least["infinite"] == -1 and least["complex"] is None
    assert least["mask"] == 0 and least["large"] == float(2**64 - 1)


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


def running_programs(folder):
    """Of commands that name the folder."""
    found = []
    for place in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder) in place.read_text() and "--json" in place.read_text():
                found.append(place.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, "SystemExit"], ids=str)
def test_the_program_ends_with_the_python_that_runs_it(tmp_path, ending):
    with open(tmp_path / "model.safetensors", "wb") as file:  # sparse, and long to read
        header = b'{"w": {"dtype": "F32", "shape": [%d], "data_offsets": [0, %d]}}' % (1 << 40, 1 << 42)
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + (1 << 42))
    code = f"""
import signal, sys, shardwright as sw
if {ending == "SystemExit"}:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
sw.hash({str(tmp_path / "model.safetensors")!r})
"""
    python = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 30
    while not running_programs(tmp_path):
        assert python.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.3)
    python.send_signal(signal.SIGTERM if ending == "SystemExit" else ending)
    assert python.wait(30) == (7 if ending == "SystemExit" else -ending)
    while running_programs(tmp_path):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_program_that_cannot_start_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("SHARDWRIGHT", str(tmp_path / "absent"))
    with pytest.raises(sw.ShardwrightError, match="cannot start") as error:
        sw.check(GRID)
    assert error.value.code == "system_refused" and error.value.exit_code == 4


def test_secrets_of_urls_are_in_no_message_and_no_command(tmp_path, monkeypatch):
    secret = "http://me:hunter2@127.0.0.1:1/model.safetensors?sig=hunter3"
    for wrong in (secret, f"{GRID}/@merged={secret}"):
        with pytest.raises(sw.ShardwrightError) as error:
            sw.open(wrong)
        assert "hunter" not in str(error.value) + repr(vars(error.value))
    seen = tmp_path / "seen"
    script = tmp_path / "program"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {seen}\nprintf "%s" "$SHARDWRIGHT_URLS" '
                      f'> {seen}.urls\necho \'{{"verdict": "same"}}\'\n')
    script.chmod(0o755)
    monkeypatch.setenv("SHARDWRIGHT", str(script))
    sw.diff(secret, GRID, rename="https?://x=y")
    assert "hunter" not in seen.read_text() and "https?://x=y" in seen.read_text()
    assert (tmp_path / "seen.urls").read_text() == secret

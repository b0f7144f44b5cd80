"""The code of docs/hooks/, as it is there, on saves that are whole and on saves that are not.

    SHARDWRIGHT=build/release/app/shardwright PYTHONPATH=python python -m pytest python/tests
"""

import os
import pathlib
import re
import socket
import sys
import time
import types

import pytest

torch = pytest.importorskip("torch")

import shardwright as sw  # noqa: E402

PROGRAM = sw.program()
HOOKS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "hooks"
PATTERN = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def code_of(page):
    """The names that the page's blocks of Python define, all run in one module."""
    blocks = PATTERN.findall((HOOKS / page).read_text())
    assert blocks, page
    names = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    return names


def some_state():
    return {"model": {"a": torch.randn(64, 8), "b": torch.randn(8)}}


def drop_a_file(folder):
    next(pathlib.Path(folder).glob("*.distcp")).unlink()


def save_then_drop(save, monkeypatch):
    """From now on dcp.save loses a file of what it writes."""
    import torch.distributed.checkpoint as dcp

    def broken(state, *, checkpoint_id, **options):
        saved = save(state, checkpoint_id=checkpoint_id, **options)
        if not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0:
            drop_a_file(checkpoint_id)
        return saved

    monkeypatch.setattr(dcp, "save", broken)


def test_dcp_hook_passes_a_whole_save_and_stops_at_a_broken_one(tmp_path, monkeypatch):
    import torch.distributed.checkpoint as dcp
    hook = code_of("dcp.md")
    hook["save_checked"](some_state(), tmp_path / "whole")
    save_then_drop(dcp.save, monkeypatch)
    with pytest.raises(sw.NotClean) as stopped:
        hook["save_checked"](some_state(), tmp_path / "broken")
    assert stopped.value.report.verdict != "clean" and stopped.value.report.findings
    assert str(tmp_path / "broken") in str(stopped.value)


def rank(number, port, folder):
    import torch.distributed.checkpoint as dcp
    torch.distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=number,
                                         world_size=2)
    hook = code_of("dcp.md")
    future = hook["begin_save"](some_state(), folder / "later")
    hook["finish_save"](*future)
    hook["save_checked"](some_state(), folder / "whole")
    assert sw.raise_unless_clean(folder / "whole").verdict == "clean"
    with pytest.MonkeyPatch.context() as patch:
        save_then_drop(dcp.save, patch)
        with pytest.raises(sw.NotClean):  # on both ranks
            hook["save_checked"](some_state(), folder / "broken")
    with pytest.raises(sw.ShardwrightError) as refused:
        sw.raise_unless_clean(folder / "nowhere")
    assert not isinstance(refused.value, sw.NotClean) and refused.value.exit_code == 4
    # Of another kind, on rank 0 alone.
    with pytest.raises(sw.ShardwrightError if number else ValueError, match="not the name of an opt"):
        sw.raise_unless_clean(folder / "whole", **{"Mesh ": "dp=2"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHARDWRIGHT", str(folder / "absent"))
        with pytest.raises(sw.ShardwrightError, match="cannot start"):
            sw.raise_unless_clean(folder / "whole")
        check_slowly(folder, patch)
    torch.distributed.destroy_process_group()


def check_slowly(folder, patch):
    """A check takes longer than a collective of the group may."""
    from datetime import timedelta

    from shardwright import _gate
    script = folder / f"slow-{os.getpid()}"
    script.write_text(f'#!/bin/sh\nsleep 5\nexec "{PROGRAM}" "$@"\n')
    script.chmod(0o755)
    patch.setenv("SHARDWRIGHT", str(script))
    patch.setattr(_gate, "_HEARTBEAT", 0.5)
    group = torch.distributed.new_group(timeout=timedelta(seconds=3))
    began = time.monotonic()
    assert sw.raise_unless_clean(folder / "whole", group=group, data=True).verdict == "clean"
    assert time.monotonic() - began > 4


def test_every_rank_hears_what_rank_0_found(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(rank, (port, tmp_path), nprocs=2)


def test_launch_hook_gives_the_path_of_the_newest_step(tmp_path):
    import torch.distributed.checkpoint as dcp
    for step in (1, 2):
        dcp.save(some_state(), checkpoint_id=tmp_path / f"run/step_{step}")
    hook = code_of("launch.md")["path_to_resume"]
    assert pathlib.Path(hook(tmp_path / "run")) == tmp_path / "run/step_2"
    dcp.save({"model": {"a": torch.randn(64, 4)}}, checkpoint_id=tmp_path / "other")
    with pytest.raises(sw.NotClean):
        hook(tmp_path / "run", against=tmp_path / "other")
    drop_a_file(tmp_path / "run/step_2")
    assert pathlib.Path(hook(tmp_path / "run")) == tmp_path / "run/step_1"


def test_pytest_fixture_names_what_is_wrong(tmp_path, monkeypatch):
    import torch.distributed.checkpoint as dcp
    monkeypatch.setattr(pytest, "fixture", lambda function: function)
    check = code_of("pytest.md")["assert_clean"]()
    dcp.save(some_state(), checkpoint_id=tmp_path / "ckpt")
    assert check(tmp_path / "ckpt", data=True).verdict == "clean"
    drop_a_file(tmp_path / "ckpt")
    with pytest.raises(AssertionError, match="error"):
        check(tmp_path / "ckpt")


def test_transformers_hook_stops_a_training_whose_save_is_broken(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    CheckSaves = code_of("transformers.md")["CheckSaves"]
    saves = []

    class Break(transformers.TrainerCallback):
        def on_save(self, args, state, control, **kwargs):
            saves.append(state.global_step)
            if state.global_step == 2:
                file = pathlib.Path(args.output_dir, "checkpoint-2", "model.safetensors")
                file.write_bytes(file.read_bytes()[:-100])

    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        vocab_size=32, num_key_value_heads=2))
    row = {"input_ids": [1, 2, 3, 4], "labels": [1, 2, 3, 4]}
    trainer = transformers.Trainer(
        model, transformers.TrainingArguments(
            str(tmp_path), max_steps=3, save_steps=1, report_to=[], use_cpu=True,
            per_device_train_batch_size=1, disable_tqdm=True),
        train_dataset=[row] * 4, callbacks=[Break(), CheckSaves()])
    with pytest.raises(sw.NotClean):
        trainer.train()
    assert saves == [1, 2]


def test_lightning_hook_stops_a_training_whose_save_is_broken(tmp_path):
    lightning = pytest.importorskip("lightning.pytorch")
    CheckedSaves = code_of("lightning.md")["CheckedSaves"]

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, index):
            return self.layer(batch).mean()

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    class Cut(lightning.plugins.io.TorchCheckpointIO):
        def save_checkpoint(self, checkpoint, path, storage_options=None):
            super().save_checkpoint(checkpoint, path, storage_options)
            if checkpoint["global_step"] == 2:
                whole = pathlib.Path(path).read_bytes()
                pathlib.Path(path).write_bytes(whole[:len(whole) // 2])

    trainer = lightning.Trainer(
        max_steps=3, accelerator="cpu", devices=1, logger=False, enable_progress_bar=False,
        enable_model_summary=False, plugins=[Cut()],
        callbacks=[CheckedSaves(dirpath=tmp_path, every_n_train_steps=1, save_top_k=-1)])
    with pytest.raises(sw.ShardwrightError):
        trainer.fit(Model(), torch.utils.data.DataLoader(torch.randn(8, 4)))
    assert trainer.global_step == 2


def test_torchtitan_hook_checks_the_steps_that_were_saved(tmp_path, monkeypatch):
    import torch.distributed.checkpoint as dcp

    class CheckpointManager:
        folder = str(tmp_path)

        def save(self, curr_step, last_step=False):
            if curr_step % 2 == 0:
                dcp.save(some_state(), checkpoint_id=tmp_path / f"step-{curr_step}")
            if curr_step == 4:
                drop_a_file(tmp_path / "step-4")

    for name in ("torchtitan", "torchtitan.components", "torchtitan.components.checkpoint"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["torchtitan.components.checkpoint"].CheckpointManager = CheckpointManager
    code_of("torchtitan.md")
    manager = CheckpointManager()
    for step in (1, 2, 3):
        manager.save(step)
    with pytest.raises(sw.NotClean):
        manager.save(4)


def test_torchtitan_hook_checks_what_its_own_manager_saves(tmp_path, monkeypatch):
    checkpoint = pytest.importorskip("torchtitan.components.checkpoint")
    import torch.distributed.checkpoint as dcp
    manager_class = checkpoint.CheckpointManager
    monkeypatch.setattr(manager_class, "save", manager_class.save)  # what the hook replaces is restored
    code_of("torchtitan.md")

    class Values:
        def __init__(self):
            self.values = {"a": torch.randn(16)}

        def state_dict(self):
            return dict(self.values)

        def load_state_dict(self, values):
            self.values.update(values)

    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    torch.distributed.init_process_group("gloo", f"file://{tmp_path}/meet", rank=0, world_size=1)
    try:
        manager = manager_class(
            manager_class.Config(enable=True, folder="saves", interval=2),
            dataloader=Values(), model_parts=[torch.nn.Linear(4, 4)], optimizers=Values(),
            lr_schedulers=Values(), states={}, sd_adapter=None, base_folder=str(tmp_path))
        assert [manager.save(step) for step in (2, 3)] == [True, False]
        assert sw.open(tmp_path / "saves" / "step-2").check().verdict == "clean"
        save_then_drop(dcp.save, monkeypatch)
        with pytest.raises(sw.NotClean):
            manager.save(4)
        manager.close()
    finally:
        torch.distributed.destroy_process_group()

"""Items of a MiB and more, which are in new files where a file system may share their bytes: with
gaps before them in DCP, behind a wider header in safetensors. Both torches and safetensors read
them as if they was anywhere else."""

import json

import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file, save_file

import judge
import program
from checks import expect, expect_equal
from test_reshard import must_be_proved


def long_tensors():
    chance = torch.Generator().manual_seed(20261123)

    def drawn(*shape, dtype=torch.bfloat16):
        return torch.randn(*shape, generator=chance).to(dtype)

    return {"a": drawn(700, 1001), "b": drawn(3, 5), "c": drawn(501, 701, dtype=torch.float32),
            "d": drawn(1024, 1024), "e": drawn(17), "f": drawn(2048, 1024)}


def rewritten(source, out, scratch):
    """One tensor is dropped, one has another name."""
    plan = scratch / "plan.json"
    plan.write_text(json.dumps({"schema": "shardwright/2", "steps": [
        {"step": "drop", "tensors": ["b"]}, {"step": "rename", "from": "c", "to": "x.c"}]}))
    program.shardwright("repair", source, "--plan", plan, "--out", out, "--json",
                        "--yes").must_exit(0)
    must_be_proved(out, source)
    program.must_be_clean(out, "--depth", "data")


def long_items(checkpoint):
    """Where the item of each tensor of a MiB and more begins, and how many bytes are laid out in none."""
    places, between, files = {}, 0, set()
    for tensor in program.shardwright("ls", checkpoint, "--json").must_exit(0).json["tensors"]:
        shown = program.shardwright("show", checkpoint, tensor["fqn"], "--json").must_exit(0)
        for chunk in shown.json["chunks"]:
            between -= chunk["length"]
            files.add(chunk["file"])
            if chunk["length"] >= 1 << 20:
                places[tensor["fqn"]] = chunk["offset"]
    return places, between + sum((checkpoint / name).stat().st_size for name in files)


def judged_dcp(checks, other, checkpoint, truth, scratch, title):
    spec_path, truth_path = scratch / f"{title}.json", scratch / f"{title}.safetensors"
    spec = {fqn: {"shape": list(tensor.shape), "dtype": str(tensor.dtype)}
            for fqn, tensor in truth.items()}
    spec_path.write_text(json.dumps(spec))
    save_file(truth, truth_path)
    with checks.that(f"{title} is read by this torch"):
        expect_equal(judge.differences(judge.load_dcp(checkpoint, spec), truth), [],
                     f"torch {judge.version()}")
    with checks.that(f"{title} is read by the other torch"):
        expect_equal(other.ask("load_and_compare", checkpoint=str(checkpoint), spec=str(spec_path),
                               truth=str(truth_path)), [], f"torch {other.version}")


def run(checks, other, scratch):
    tensors = long_tensors()
    left = {("x.c" if fqn == "c" else fqn): tensor for fqn, tensor in tensors.items()
            if fqn != "b"}
    source, hf = scratch / "dcp", scratch / "hf"
    dcp.save(tensors, checkpoint_id=str(source), no_dist=True)
    hf.mkdir()
    save_file(tensors, hf / "model.safetensors", metadata={"format": "pt"})

    with checks.that("a DCP is rewritten with gaps before long items"):
        rewritten(source, scratch / "kept", scratch)
        before, _ = long_items(source)
        after, between = long_items(scratch / "kept")
        expect(between > 0, "there are no gaps")
        for fqn, offset in after.items():
            expect_equal(offset % 4096, before[fqn.removeprefix("x.")] % 4096, f"place of {fqn}")
    judged_dcp(checks, other, scratch / "kept", left, scratch, "a DCP with gaps")

    with checks.that("safetensors become a DCP with gaps"):
        program.shardwright("convert", hf, "--json", "--to", "dcp", "--out", scratch / "made",
                            "--yes").must_exit(0)
        must_be_proved(scratch / "made", hf)
        expect(long_items(scratch / "made")[1] > 0, "there are no gaps")
    judged_dcp(checks, other, scratch / "made", tensors, scratch, "a DCP of safetensors")

    with checks.that("safetensors are rewritten behind a wider header"):
        rewritten(hf, scratch / "hf-left", scratch)
        path = scratch / "hf-left" / "model.safetensors"
        expect_equal(judge.differences(load_file(path), left), [], "safetensors")
        with open(path, "rb") as stream:
            header = stream.read(int.from_bytes(stream.read(8), "little"))
        expect(header.endswith(b" " * 8), "the header is not wider than it must be")
        expect_equal(len(header) % 8, 0, "what the data begin at")
        spec = {fqn: {"shape": list(tensor.shape), "dtype": str(tensor.dtype)}
                for fqn, tensor in left.items()}
        expect_equal(judge.differences(judge.load_hf_by_torch(scratch / "hf-left", spec), left), [],
                     "torch's Hugging Face reader")

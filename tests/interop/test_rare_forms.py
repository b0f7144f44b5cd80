"""Forms that are rare and right raise nothing; forms that a loader refuses are never called clean.

Optimizers that keep Adam's names under another rule, metadata that no stock torch spells so, a name
that nobody knows, one rank's file behind the name of another's, safetensors whose files, headers or
index lack something. What is right is decided by
torch and safetensors: each form is loaded before the program is asked.
"""

import json
import os
import pickle
import shutil

import torch
import torch.distributed.checkpoint as dcp
from safetensors import safe_open
from safetensors.torch import save_file
from torch.distributed.checkpoint import FileSystemReader
from torch.distributed.checkpoint.metadata import MetadataIndex

import program
from checks import expect, expect_equal
from fake_ranks import Piece, write_checkpoint
from test_random_damage import loads_otherwise

STEPS, BETAS = 30, (0.9, 0.95)


def adopt(state, gradient):
    """The gradient is divided by the root of the squares before it, and then averaged."""
    root = state["exp_avg_sq"].sqrt().clamp(min=1e-6)
    state["exp_avg"].lerp_(gradient / root, 1 - BETAS[0])
    state["exp_avg_sq"].lerp_(gradient.square(), 1 - BETAS[1])


def laprop(state, gradient):
    state["exp_avg_sq"].lerp_(gradient.square(), 1 - BETAS[1])
    state["exp_avg"].lerp_(gradient / (state["exp_avg_sq"].sqrt() + 1e-15), 1 - BETAS[0])


def adabelief(state, gradient):
    """The squares are those of what the mean does not foresee."""
    state["exp_avg"].lerp_(gradient, 1 - BETAS[0])
    state["exp_avg_sq"].lerp_((gradient - state["exp_avg"]).square() + 1e-16, 1 - BETAS[1])


def soap(state, gradient):
    """The squares are those of the gradient in another basis, which is saved next to them."""
    state["exp_avg"].lerp_(gradient, 1 - BETAS[0])
    if gradient.dim() == 2:
        if "Q" not in state:
            state["Q"] = [torch.linalg.qr(torch.randn(n, n))[0] for n in gradient.shape]
        gradient = state["Q"][0].T @ gradient @ state["Q"][1]
    state["exp_avg_sq"].lerp_(gradient.square(), 1 - BETAS[1])


def trained(rule):
    torch.manual_seed(5)
    layers = [torch.nn.Linear(16, 16) for _ in range(5)]
    model = torch.nn.Sequential(*layers)
    states = {name: {"exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}
              for name, p in model.named_parameters()}
    for step in range(STEPS):
        model.zero_grad()
        inputs = torch.randn(8, 16)
        (model(inputs) - inputs.flip(-1)).square().mean().backward()
        for name, p in model.named_parameters():
            rule(states[name], p.grad)
            p.data.add_(states[name]["exp_avg"], alpha=-1e-4)
            states[name]["step"] = torch.tensor(float(step + 1))
    return {"model": {k: v.detach().clone() for k, v in model.state_dict().items()},
            "optimizer": {"state": states, "param_groups": [
                {"betas": BETAS, "lr": 1e-3, "params": list(states)}]}}


def optimizers(checks, scratch):
    for rule in (adopt, laprop, soap, adabelief):
        for with_groups in (True, False):
            sentence = f"{rule.__name__}'s moments raise nothing, betas saved: {with_groups}"
            with checks.that(sentence):
                states = trained(rule)
                if not with_groups:
                    del states["optimizer"]["param_groups"]
                folder = scratch / f"{rule.__name__}{with_groups}"
                dcp.save(states, checkpoint_id=str(folder), no_dist=True)
                program.must_be_clean(folder, "--data")


TRUTH = {"a.w": torch.arange(24.).reshape(6, 4), "a.v": torch.arange(24.).reshape(6, 4) + 100,
         "b": torch.arange(3.), "s": torch.tensor(2.5)}
OBJECTS = {"step": 3}


def record_of(metadata, fqn):
    return next(info for index, info in metadata.storage_data.items() if index.fqn == fqn)


def each_path(change):
    def edit(metadata):
        for info in metadata.storage_data.values():
            info.relative_path = change(info.relative_path)
    return edit


def size_as(kind):
    def edit(metadata):
        entry = metadata.state_dict_metadata["a.w"]
        entry.size = kind(entry.size)
    return edit


def listed_twice(metadata):
    entry = metadata.state_dict_metadata["a.w"]
    entry.chunks.append(entry.chunks[0])


def transformed(fqn, transforms):
    def edit(metadata):
        record_of(metadata, fqn).transform_descriptors = transforms
    return edit


def renamed(metadata):
    entries = metadata.state_dict_metadata
    entries["a.w_old"] = entries.pop("a.w")
    index = next(index for index in metadata.storage_data if index.fqn == "a.w")
    metadata.storage_data[MetadataIndex("a.w_old", index.offset)] = metadata.storage_data.pop(index)


SPELLINGS = [(f"in protocol {protocol}", lambda m: None, protocol) for protocol in range(6)] + [
    ("whose paths begin with a dot", each_path(lambda path: "./" + path), 4),
    ("whose sizes are tuples", size_as(tuple), 4),
    ("one of whose sizes is a list", size_as(list), 4),
    ("that lists a tile twice", listed_twice, 4),
    ("that names no transform for an object", transformed("step", []), 4),
    ("that names an unknown transform for an object", transformed("step", ["foo/1"]), 4),
    ("that says an object is compressed", transformed("step", ["stream.zstd/1"]), 4),
    ("that says so in no list", transformed("step", "stream.zstd/1"), 4),
    ("that says a tensor is compressed", transformed("b", ["stream.zstd/1"]), 4),
]


def load_all(folder):
    state = {**{fqn: torch.full_like(tensor, -1) for fqn, tensor in TRUTH.items()}, "step": 0}
    dcp.load(state, checkpoint_id=str(folder), no_dist=True)
    expect_equal(state["step"], OBJECTS["step"], "the object")
    return state


def metadata_spellings(checks, scratch):
    original = scratch / "original"
    dcp.save({**TRUTH, **OBJECTS}, checkpoint_id=str(original), no_dist=True)
    for number, (sentence, edit, protocol) in enumerate(SPELLINGS):
        folder = scratch / f"spelling{number}"
        shutil.copytree(original, folder)
        metadata = FileSystemReader(str(folder)).read_metadata()
        metadata.storage_meta = None
        edit(metadata)
        (folder / ".metadata").write_bytes(pickle.dumps(metadata, protocol))
        with checks.that(f"metadata {sentence} is clean where torch loads it, and only there"):
            why = loads_otherwise(lambda: load_all(folder), TRUTH)
            answer = program.check(folder, "--data")
            expect_equal(answer.code == 0, not why, f"clean, and torch: {why or 'loads it'}")
    with checks.that("a tensor under a name that nobody knows is missing next to the reference"):
        folder = scratch / "renamed"
        shutil.copytree(original, folder)
        metadata = FileSystemReader(str(folder)).read_metadata()
        metadata.storage_meta = None
        renamed(metadata)
        (folder / ".metadata").write_bytes(pickle.dumps(metadata))
        expect(loads_otherwise(lambda: load_all(folder), TRUTH), "torch loads it")
        finding = program.check(folder, "--against", original).must_exit(1).above_info()[0]
        expect_equal((finding["rule"], finding["subjects"]), ("missing-key", ["a.w"]), "finding")


def rows_of(rank):
    rows = torch.arange(12.).reshape(4, 3)[2 * rank.number:2 * rank.number + 2]
    return {"w": Piece(rows.clone(), (2 * rank.number, 0), (4, 3))}


def links(checks, scratch):
    """Both files have the same length and the same form: only who they are tells."""
    truth = {"w": torch.arange(12.).reshape(4, 3)}
    for kind, link in (("hard", os.link), ("symbolic", lambda to, at: os.symlink(to.name, at))):
        folder = scratch / f"{kind} link"
        write_checkpoint(folder, 2, rows_of)
        program.must_be_clean(folder, "--data")
        (folder / "__1_0.distcp").unlink()
        link(folder / "__0_0.distcp", folder / "__1_0.distcp")
        with checks.that(f"a {kind} link to another rank's file is not a clean checkpoint"):
            def load():
                state = {"w": torch.full((4, 3), -1.)}
                dcp.load(state, checkpoint_id=str(folder), no_dist=True)
                return state
            expect(loads_otherwise(load, truth), "torch loads the truth")
            finding = program.check(folder).must_exit(1).above_info()[0]
            expect_equal((finding["rule"], finding["subjects"]),
                         ("shared-storage", ["__0_0.distcp", "__1_0.distcp"]), "finding")


NUMBERS = [("F32", "[2,3]", "0"), ("F32", "[2,3]", "-0"), ("F32", "[-0,3]", "0"),
           ("F32", "[0,3]", "0"), ("f32", "[0,3]", "0"), ("F32", "[2,3.0]", "0"),
           ("F32", "[2,3e0]", "0"), ("F32", "[02,3]", "0")]


def header_numbers(checks, scratch):
    path = scratch / "numbers.safetensors"
    for dtype, shape, begin in NUMBERS:
        end = 0 if "0,3]" in shape else 24
        text = f'{{"w":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}}}'
        path.write_bytes(len(text).to_bytes(8, "little") + text.encode() + bytes(end))
        sentence = f"a header of {dtype} {shape} from {begin} is clean where safetensors reads it"
        with checks.that(sentence):
            try:
                with safe_open(path, "pt") as file:
                    file.get_tensor("w")
                read = True
            except Exception:
                read = False
            answer = program.check(path, "--data")
            expect(0 <= answer.code <= 2, f"it crashed: {answer}")
            expect_equal(answer.code == 0, read, "clean")


PARTS = [f"model-0000{n}-of-00003.safetensors" for n in (1, 2, 3)]
INDEX = "model.safetensors.index.json"


def in_three(folder, with_index=True):
    folder.mkdir()
    tensors = {f"w{n}": torch.arange(6.) + n for n in range(6)}
    for n, part in enumerate(PARTS):
        mine = {fqn: tensors[fqn] for fqn in (f"w{2 * n}", f"w{2 * n + 1}")}
        save_file(mine, folder / part, metadata={"format": "pt"})
    weight_map = {f"w{n}": PARTS[n // 2] for n in range(6)}
    if with_index:
        (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 144},
                                                "weight_map": weight_map}))
    return weight_map


def safetensors_lack(checks, scratch):
    for with_index in (True, False):
        with checks.that(f"three whole files, an index next to: {with_index}, raise nothing"):
            in_three(scratch / f"whole{with_index}", with_index)
            program.must_be_clean(scratch / f"whole{with_index}", "--data")
        for lost in PARTS:
            with checks.that(f"{lost} is missed, an index next to: {with_index}"):
                folder = scratch / f"{with_index}{lost}"
                in_three(folder, with_index)
                (folder / lost).unlink()
                finding = program.check(folder).must_exit(1).above_info()[0]
                expect_equal(finding["rule"], "missing-file", "rule")
                expect(lost in finding["subjects"], f"{finding}")
    with checks.that("one file of three that a person names is read alone"):
        program.must_be_clean(scratch / "wholeTrue" / PARTS[1])
    changes = {"lacks a tensor": lambda m: m.pop("w1"),
               "names no file": lambda m: m.update(w1=None),
               "names a number": lambda m: m.update(w1=3)}
    for sentence, change in changes.items():
        with checks.that(f"an index that {sentence} is told"):
            folder = scratch / sentence
            weight_map = in_three(folder)
            change(weight_map)
            (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
            findings = program.check(folder).must_exit(1).above_info()
            expect(any("w1" in finding["subjects"] for finding in findings), f"{findings}")
    with checks.that("a header behind a byte order mark is refused, as safetensors does"):
        folder = scratch / "marked"
        in_three(folder)
        data = (folder / PARTS[0]).read_bytes()
        length = int.from_bytes(data[:8], "little")
        (folder / PARTS[0]).write_bytes((length + 3).to_bytes(8, "little") + b"\xef\xbb\xbf" +
                                        data[8:])
        try:
            safe_open(folder / PARTS[0], "pt")
            expect(False, "safetensors opens it")
        except Exception as problem:
            expect("header" in str(problem), f"{problem}")
        program.check(folder).must_exit(1)


def sharding_info_lacks(checks, scratch):
    for number, named in enumerate((("a", "b"), ("a",), ())):
        folder = scratch / f"info{number}"
        folder.mkdir()
        info = {fqn: {"saved_offsets": [0]} for fqn in named}
        tensors = {"a": torch.arange(3.), "b": torch.arange(4.)}
        save_file(tensors, folder / "shard-00001-model-00001-of-00001.safetensors", metadata={
            "format": "pt", "DCP_VERSION": "1.0", "DCP_SHARDING_INFO": json.dumps(info)})
        with checks.that(f"sharding info of {named or 'nothing'} is clean where torch loads it"):
            def load():
                state = {fqn: torch.zeros_like(tensor) for fqn, tensor in tensors.items()}
                reader = dcp.HuggingFaceStorageReader(str(folder))
                dcp.load(state, storage_reader=reader, no_dist=True)
                return state
            why = loads_otherwise(load, tensors)
            expect_equal(program.check(folder).code == 0, not why, f"clean, and torch: {why}")


def run(checks, other, scratch):
    sharding_info_lacks(checks, scratch)
    optimizers(checks, scratch)
    metadata_spellings(checks, scratch)
    safetensors_lack(checks, scratch)
    links(checks, scratch)
    header_numbers(checks, scratch)

"""Plans of steps as a person writes them, in chains, on what torch and safetensors saved.

Each result is read by torch or safetensors alone and compared with loops over numpy arrays; what the
certificate calls kept, lost, cut off and lossless is compared with the same, element by element.
"""

import collections
import json
import os

import numpy as np
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file, save_file

import judge
import program
from checks import expect, expect_equal
from fake_ranks import Piece, cut, write_checkpoint
from plan_reference import Reference, elements, of_torch, to_torch


# Numbers at the ends of what dtypes can say, and beyond them.
FAR = [n * sign for sign in (1., -1.) for n in (
    0., 2.5, 447., 448., 464., 464.1, 465., 1e3, 57344., 61439., 61440., 65504., 65519., 65520.,
    1e6, float.fromhex("0x1.fep127"), float.fromhex("0x1.fefp127"), float.fromhex("0x1.ffp127"),
    float.fromhex("0x1.fffffep127"), float("inf"), float("nan"))]


def truth():
    numbers = torch.arange(1., 25.)
    return {"a": numbers.reshape(4, 6), "b": numbers.reshape(4, 6).flip(0).contiguous(),
            "h": (numbers / 7).reshape(2, 3, 4).to(torch.bfloat16), "n": torch.arange(7),
            "s": torch.tensor(2.5), "t": torch.tensor([True, False, True]),
            "w[01]": torch.ones(3), "w0": torch.zeros(2), "none": torch.empty(0, 3),
            "q": torch.arange(-7., 8.).reshape(5, 3).to(torch.float8_e4m3fn),
            "q_scale_inv": torch.tensor([[1., 2.], [.5, 4.], [3., 8.]]),
            "far": torch.tensor(FAR).reshape(2, -1)}


def halves(tensor):
    """(offsets, sizes) of its first rows and of the others."""
    if not tensor.dim() or tensor.shape[0] < 2:
        return [((0,) * tensor.dim(), tuple(tensor.shape))]
    length, rest = tensor.shape[0], tuple(tensor.shape[1:])
    none = (0,) * len(rest)
    return [((0, *none), (length // 2, *rest)), ((length // 2, *none), (length - length // 2, *rest))]


def save_by_ranks(folder):
    def state_dict_of(rank):
        held = {name: halves(tensor)[rank.number:rank.number + 1] for name, tensor in
                truth().items()}
        return {name: [Piece(cut(truth()[name], *box), box[0], tuple(truth()[name].shape))
                       for box in boxes] for name, boxes in held.items() if boxes}
    write_checkpoint(folder, 2, state_dict_of)


def save_as(format_name, folder):
    if format_name == "dcp":
        save_by_ranks(folder)
        return
    folder.mkdir()
    if format_name == "torch":
        torch.save(truth(), folder / "model.pt")
    else:
        save_file(truth(), folder / "model.safetensors", metadata={"format": "pt"})


def read_all(folder, wanted):
    if judge.is_dcp(folder):
        spec = {name: {"shape": list(t.shape), "dtype": str(t.dtype)} for name, t in wanted.items()}
        return judge.load_dcp(folder, spec)
    if (folder / "model.pt").exists():
        return torch.load(folder / "model.pt", weights_only=True)
    return {name: tensor for path in folder.glob("*.safetensors")
            for name, tensor in load_file(path).items()}


def box(offsets, sizes):
    return {"offsets": offsets, "sizes": sizes}


def chains(other):
    """(what it shows, steps)"""
    rename = [{"step": "rename", "from": f, "to": t} for f, t in (("a", "x"), ("b", "a"),
                                                                   ("x", "b"))]
    pad = {"step": "pad", "tensors": ["a"], "before": [1, 0], "after": [0, 2], "value": -1.5}
    split = {"step": "split", "tensor": "h", "dim": 1, "sizes": [1, 1, 1],
             "into": ["h0", "h1", "h2"], "drop_dim": True}
    join = {"step": "concat", "tensors": ["h0", "h1", "h2"], "dim": 1, "into": "h",
            "new_dim": True}
    dequantise = {"step": "dequantise", "tensors": ["q"], "block": [2, 2], "dtype": "bfloat16"}
    mask = {"step": "mask", "tensors": ["a"], "boxes": [box([0, 0], [2, 2]), box([1, 1], [2, 3])],
            "value": 0.1}
    fill = {"step": "fill", "tensors": ["a"], "boxes": [box([2, 0], [1, 6])],
            "from_checkpoint": str(other), "from_tensor": "b"}
    casts = [{"step": "cast", "tensors": ["a"], "dtype": d}
             for d in ("float16", "float8_e5m2", "float32")]
    blocks = {"step": "permute-blocks", "tensors": ["n"], "dim": 0, "sizes": [2, 4, 1],
              "order": [2, 0, 1]}
    turn = {"step": "permute-dims", "tensors": ["h"], "order": [2, 0, 1]}
    return [
        ("names that are exchanged", rename),
        ("padding that is cut off again", [pad, {"step": "trim", "tensors": ["a"],
                                                **box([1, 0], [4, 6])}]),
        ("padding that is cut off with a row", [pad, {"step": "trim", "tensors": ["a"],
                                                     **box([2, 0], [3, 8])}]),
        ("padding that is given up, and cut off",
         [pad, {"step": "mask", "tensors": ["a"], "boxes": [box([0, 0], [1, 3])], "value": 0},
          {"step": "trim", "tensors": ["a"], **box([1, 0], [4, 6])}]),
        ("a split that is put together again", [split, join, turn]),
        ("boxes that meet, given up", [mask, *rename, {"step": "permute-dims", "tensors": ["b"],
                                                       "order": [1, 0]}]),
        ("rows of another checkpoint", [fill, *casts]),
        ("casts one after the other, and blocks", [*casts, blocks]),
        *(("numbers beyond " + " and ".join(dtypes),
           [{"step": "cast", "tensors": ["far"], "dtype": dtype} for dtype in dtypes] +
           [{"step": "split", "tensor": "far", "dim": 1, "sizes": [8, 13], "into": ["f0", "f1"]},
            {"step": "pad", "tensors": ["f1"], "before": [0, 1], "after": [1, 0], "value": 2},
            {"step": "trim", "tensors": ["f1"], **box([0, 0], [2, 12])},
            {"step": "mask", "tensors": ["f0"], "boxes": [box([0, 0], [1, 4])], "value": 1}])
          for dtypes in (["float8_e4m3fn"], ["float8_e5m2"], ["float16"], ["bfloat16"],
                         ["float16", "float8_e4m3fn", "float32"], ["float8_e5m2", "float64"])),
        ("blocks and their factors", [dequantise]),
        ("blocks with a factor that is given up",
         [{"step": "mask", "tensors": ["q_scale_inv"], "boxes": [box([2, 0], [1, 1])],
           "value": 1}, dequantise]),
        ("a name that is a pattern too", [{"step": "drop", "tensors": ["w[01]"]}]),
        ("a scalar that is given up, a flag that is filled",
         [{"step": "mask", "tensors": ["s"], "boxes": [box([], [])], "value": 3},
          {"step": "fill", "tensors": ["t"], "boxes": [box([1], [1])], "value": 1}]),
    ]


def must_be_certified(folder, wanted):
    certificate = json.loads((folder / "certificate.json").read_text())
    expect_equal(set(certificate["tensors"]), set(wanted.tensors), "names in the certificate")
    for name, tensor in wanted.tensors.items():
        entry = certificate["tensors"][name]
        lost = judge.inside(entry["lost_boxes"], tensor.shape).numpy()
        expect(np.array_equal(lost, tensor.lost), f"lost elements of {name}: {entry}")
        expect_equal(entry["lost"], int(tensor.lost.sum()), f"lost of {name}")
        beyond = int((tensor.out_of_range & ~tensor.lost).sum())
        expect_equal(entry.get("out_of_range", 0), beyond, f"out of range of {name}")
        expect_equal(entry["kept"], elements(tensor) - entry["lost"] - beyond, f"kept of {name}")
    expect_equal(certificate.get("dropped", []), wanted.dropped, "dropped")
    expect_equal(certificate.get("trimmed", 0), wanted.trimmed, "trimmed")
    expect_equal(certificate["lossless"], wanted.is_lossless, "lossless")


def must_prove(folder, *arguments):
    answer = program.shardwright("verify", folder, "--json", *arguments).must_exit(0).json
    expect_equal(answer["verdict"], "proved", "verdict of verify")


def optimizer_finds_its_states(checks, scratch):
    """By whole numbers: states under their text are passed over without an error."""
    torch.manual_seed(3)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    (scratch / "training").mkdir()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()},
               scratch / "training" / "model.pt")
    out, plan = scratch / "trained", scratch / "plan-training.json"
    plan.write_text(json.dumps({"schema": "shardwright/2", "steps": [
        {"step": "mask", "tensors": ["model.bias"], "boxes": [box([0], [1])], "value": 1}]}))
    with checks.that("an optimizer finds its states in a file that was made of its file"):
        program.repair(scratch / "training", "--plan", plan, "--out", out, codes=(0, 1))
        again = torch.optim.Adam(model.parameters())
        again.load_state_dict(torch.load(out / "model.pt", weights_only=True)["optimizer"])
        for parameter, state in optimizer.state.items():
            for name, value in state.items():
                expect(torch.equal(again.state[parameter][name], value), f"{name}: {again.state}")


def types_stay(checks, scratch):
    """Of a file of torch.save: ordered dicts, and parameters in them."""
    ordered = collections.OrderedDict(
        w=torch.nn.Parameter(torch.ones(3, 2)), b=torch.zeros(3), step=4,
        f=torch.nn.Parameter(torch.ones(2), requires_grad=False))
    for number, state in enumerate((ordered, {"model": ordered, "plain": {"x": torch.ones(1)}})):
        source, out = scratch / f"types-{number}", scratch / f"types-out-{number}"
        plan = scratch / f"plan-types-{number}.json"
        source.mkdir()
        torch.save(state, source / "model.pt")
        plan.write_text(json.dumps({"schema": "shardwright/2", "steps": [
            {"step": "drop", "tensors": ["*b"]}]}))
        with checks.that(f"types stay what they were in a file made of one ({number})"):
            program.repair(source, "--plan", plan, "--out", out, codes=(0, 1))
            got = torch.load(out / "model.pt", weights_only=True)
            model = got if number == 0 else got["model"]
            expect(type(model) is collections.OrderedDict, f"a {type(model)}")
            expect_equal([type(model[name]) for name in ("w", "f", "step")],
                         [torch.nn.Parameter, torch.nn.Parameter, int], "types")
            expect(model["w"].requires_grad and not model["f"].requires_grad, f"{model}")
            expect(number == 0 or type(got["plain"]) is dict, f"{got}")
            must_prove(out, "--against", source)


def odd_names_are_proved(checks, scratch):
    state = {"a\udc80.weight": torch.arange(6.).reshape(2, 3), "": torch.ones(2), "//x": torch.ones(1),
             "step\udcff": 7}
    source = scratch / "odd"
    dcp.save(state, checkpoint_id=str(source), no_dist=True)
    for verb, more in (("reshard", ["--mesh", "dp=2"]), ("convert", ["--to", "torch"])):
        with checks.that(f"what {verb} makes of names that are not UTF-8 is proved"):
            out = scratch / f"odd-{verb}"
            program.shardwright(verb, source, *more, "--out", out, "--yes", "--json").must_exit(0, 1)
            must_prove(out, "--against", source)


def nothing_is_something(checks, scratch):
    """An optimizer without states saves a dict without an entry."""
    (scratch / "bare").mkdir()
    state = {"w": torch.ones(2), "optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]}}
    torch.save(state, scratch / "bare" / "model.pt")
    with checks.that("a dict without an entry is copied from a file of torch.save to DCP"):
        program.shardwright("convert", scratch / "bare", "--to", "dcp", "--out",
                            scratch / "bare-dcp", "--yes", "--json").must_exit(0)
        must_prove(scratch / "bare-dcp", "--against", scratch / "bare")


def what_is_gone_is_given_up(checks, other, scratch, flipped):
    """A rank's file is lost or cut off: torch reads the rest, and what replaces its tiles."""
    for number, (what, lose) in enumerate((
            ("not there", lambda file: file.unlink()),
            ("cut off before its first byte", lambda file: os.truncate(file, 0)))):
        for more in ({"value": 0}, {"from_checkpoint": str(other)}):
            source = scratch / f"gone-{number}-{len(more)}-{next(iter(more))}"
            save_by_ranks(source)
            lose(source / "__1_0.distcp")
            steps = [{"step": "fill", "tensors": [name], "boxes": [box(*map(list, halves(t)[1]))],
                      **more} for name, t in truth().items() if len(halves(t)) > 1]
            wanted = Reference(truth(), flipped).take(steps)
            plan, out = source.with_suffix(".json"), source.with_suffix(".out")
            with checks.that(f"a rank's file that is {what} is given up, filled by {next(iter(more))}"):
                plan.write_text(json.dumps({
                    "schema": "shardwright/2",
                    "steps": [{"step": "fill", "tensors": ["*"], "gone": True, **more}],
                    "inputs": [{"checkpoint": str(other), "fingerprint": ""}]}))
                program.repair(source, "--plan", plan, "--out", out, codes=(0, 1))
                got = read_all(out, {name: to_torch(t) for name, t in wanted.tensors.items()})
                for name, tensor in wanted.tensors.items():
                    expect(np.array_equal(of_torch(got[name]).bytes, tensor.bytes),
                           f"{name} is {got[name]} instead of {to_torch(tensor)}")
                must_be_certified(out, wanted)
                must_prove(out, "--against", source)


def run(checks, other, scratch):
    nothing_is_something(checks, scratch)
    types_stay(checks, scratch)
    odd_names_are_proved(checks, scratch)
    optimizer_finds_its_states(checks, scratch)
    flipped = {name: tensor.flip(0).contiguous() if tensor.dim() else tensor
               for name, tensor in truth().items() if name != "none"}
    (scratch / "other").mkdir()
    save_file(flipped, scratch / "other" / "model.safetensors", metadata={"format": "pt"})
    what_is_gone_is_given_up(checks, scratch / "other", scratch, flipped)
    sources = {name: scratch / name for name in ("dcp", "safetensors", "torch")}
    for name, folder in sources.items():
        save_as(name, folder)
    for number, (what, steps) in enumerate(chains(scratch / "other")):
        wanted = Reference(truth(), flipped).take(steps)
        source = sources[list(sources)[number % 3]]
        target = list(sources)[(number + number // 3) % 3]
        with checks.that(f"{what}: {source.name} to {target} is what loops make of it"):
            plan, out = scratch / f"plan-{number}.json", scratch / f"out-{number}"
            plan.write_text(json.dumps({
                "schema": "shardwright/2", "steps": steps, "target": {"format": target},
                "inputs": [{"checkpoint": str(scratch / "other"), "fingerprint": ""}]}))
            program.repair(source, "--plan", plan, "--out", out, codes=(0, 1))
            got = read_all(out, {name: to_torch(t) for name, t in wanted.tensors.items()})
            expect_equal(set(got), set(wanted.tensors), "names")
            for name, tensor in wanted.tensors.items():
                expect(got[name].dtype == tensor.dtype and
                       np.array_equal(of_torch(got[name]).bytes, tensor.bytes),
                       f"{name} is {got[name]} instead of {to_torch(tensor)}")
            must_be_certified(out, wanted)
            must_prove(out)
            must_prove(out, "--against", source)

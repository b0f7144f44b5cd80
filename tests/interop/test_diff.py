"""What `diff --data` says of two checkpoints is what torch says of their tensors.

A is written by torch's DCP, B by torch.save, safetensors or DCP with some elements changed, and both
are cut again as well. torch.equal of the bits, the largest |a - b| in float64, the cosine and the first
that differs are computed here; ULP from the codes.
"""

import math
import random

import h5py
import numpy
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file

import program
from checks import expect, expect_equal
from test_fixtures import cases
from test_generated import SEED, generated

BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
          torch.int64, torch.int8, torch.uint8, torch.bool]


def states(generator):
    out = {}
    for dtype in DTYPES:
        for shape in ((7, 9), (300,), (2, 3, 5), ()):
            name = f"{str(dtype)[6:]}.{'x'.join(map(str, shape)) or 'scalar'}"
            values = torch.randn(shape, generator=generator) * 10
            out[name] = values > 0 if dtype == torch.bool else values.to(dtype)
    return out


def changed(tensors, generator):
    """About half of them in some elements, among them NaN, infinity and -0.0."""
    out = {name: tensor.clone() for name, tensor in tensors.items()}
    for tensor in out.values():
        if torch.rand((), generator=generator) < 0.5:
            continue
        flat = tensor.view(-1)
        for _ in range(int(torch.randint(1, 4, (), generator=generator))):
            at = int(torch.randint(0, flat.numel(), (), generator=generator))
            if tensor.dtype == torch.bool:
                flat[at] = ~flat[at]
            elif not tensor.dtype.is_floating_point:
                flat[at] = flat[at] + 1 if flat[at] < 100 else flat[at] - 1
            else:
                new = [flat[at].item() * 1.5 + 0.25, math.nan, -0.0, 2.0]
                if tensor.dtype != torch.float8_e4m3fn:
                    new.append(math.inf)
                flat[at] = new[int(torch.randint(0, len(new), (), generator=generator))]
    return out


def bits(tensor):
    return tensor.contiguous().view(-1).view(BITS[tensor.element_size()])


def number(told):
    return float(told) if isinstance(told, str) else told


def compare(told, a, b, name):
    differs = bits(a) != bits(b)
    count = int(differs.sum())
    expect_equal(name in told, count != 0, f"{name} is told")
    if count == 0:
        return
    tensor = told[name]
    expect_equal(tensor["kind"], "values", name)
    expect_equal(tensor["differing"], count, f"{name} differing")
    expect_equal(tensor["compared"], a.numel(), f"{name} compared")
    first = int(differs.nonzero()[0])
    index = [int(i) for i in torch.unravel_index(torch.tensor(first), a.shape)] if a.dim() else []
    expect_equal(tensor["first"]["index"], index, f"{name} first")
    whole = not a.dtype.is_floating_point
    x, y = (t.view(-1).to(torch.int64 if whole else torch.float64) for t in (a, b))
    apart = (x - y).abs()[differs]
    apart = apart[~apart.isnan()] if not whole else apart
    expect_equal(number(tensor["max_abs"]), apart.max().item() if len(apart) else 0,
                 f"{name} max_abs")
    nan = (x.isnan() != y.isnan()).sum().item() if not whole else 0
    expect_equal(tensor["nan"], nan, f"{name} nan")
    if not whole:
        ulp(tensor, a.view(-1)[differs], b.view(-1)[differs], name)
    finite = x.isfinite() & y.isfinite()
    x, y = x[finite].double(), y[finite].double()
    if x.norm() > 0 and y.norm() > 0:
        cosine = (torch.dot(x, y) / x.norm() / y.norm()).item()
        expect(abs(tensor["cosine"] - cosine) < 1e-12, f"{name} cosine {tensor['cosine']} {cosine}")
    else:
        expect_equal(tensor["cosine"], None, f"{name} cosine")


def ulp(tensor, a, b, name):
    """Codes of one sign are in the order of their numbers; zero is one number."""
    width = 8 * a.element_size()
    most = 0
    for x, y in zip(a, b):
        if x.double().isnan() or y.double().isnan():
            continue
        codes = [int(bits(v.reshape(1))[0]) & ((1 << width) - 1) for v in (x, y)]
        signs = [code >> (width - 1) for code in codes]
        steps = [code & ((1 << (width - 1)) - 1) for code in codes]
        most = max(most, abs(steps[0] - steps[1]) if signs[0] == signs[1] else sum(steps))
    expect_equal(tensor["max_ulp"], most, f"{name} ULP")


def diff(*words):
    return program.shardwright("diff", *words, "--json")


def write(kind, tensors, folder):
    if kind == "dcp":
        dcp.save(tensors, checkpoint_id=str(folder))
        return folder
    folder.mkdir()
    if kind == "safetensors":
        save_file(tensors, folder / "model.safetensors")
        return folder
    torch.save(tensors, folder / "model.pt")
    return folder / "model.pt"


def in_shards(tensors, folder, parts=3):
    """What HDF5 has a type of, a file a rank."""
    folder.mkdir()
    for rank in range(parts):
        with h5py.File(folder / f"shard_rank{rank}.h5", "w") as file:
            for name, tensor in tensors.items():
                rows = tensor.shape[0] if tensor.dim() else 1
                step = -(-rows // parts)
                first, last = min(rank * step, rows), min((rank + 1) * step, rows)
                if first == last and rank > 0:
                    continue
                part = tensor[first:last] if tensor.dim() else tensor
                dataset = file.create_dataset(name, data=part.numpy())
                dataset.attrs["offsets"] = numpy.array([first] + [0] * (tensor.dim() - 1),
                                                       "i8")[:tensor.dim()]
                dataset.attrs["global_shape"] = numpy.array(tensor.shape, "i8")
    return folder


def with_one_change(truth, chance):
    """What was changed, in which tensor, and all tensors afterwards."""
    tensors = {name: tensor.clone() for name, tensor in truth.items()}
    usual = (torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.int32, torch.bool)
    name = chance.choice([name for name in sorted(tensors) if tensors[name].dtype in usual])
    tensor = tensors[name]
    alike = [one for one in truth.values() if one.dtype == tensor.dtype and torch.equal(one, tensor)]
    kinds = ["missing", "added", "dtype", "reshaped"]
    kinds += ["values"] * 4 if tensor.numel() else []
    kinds += ["renamed"] if tensor.numel() > 1 and len(alike) == 1 else []
    kind = chance.choice(kinds)
    if kind == "values":
        flat, at = tensor.view(-1), chance.randrange(tensor.numel())
        flat[at] = ~flat[at] if tensor.dtype == torch.bool else flat[at] + 1 + abs(flat[at])
    elif kind == "added":
        name += ".more"
        tensors[name] = torch.ones(3)
    elif kind == "dtype":
        tensors[name] = tensor.to(torch.float32 if tensor.dtype == torch.float64 else torch.float64)
    elif kind == "reshaped":
        tensors[name] = tensor.reshape(1, *tensor.shape)
    else:
        del tensors[name]
        if kind == "renamed":
            tensors["other." + name] = tensor
    return kind, name, tensors


def across(checks, scratch):
    """Meshes of every kind against other formats: the same is the same, one change is that change."""
    chance = random.Random(f"{SEED}/diff")
    numpy_has = {torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.int16,
                 torch.int8, torch.uint8, torch.bool}
    for number, case in enumerate([*cases("healthy_"), *generated(scratch / "layouts", 12)]):
        truth = dict(case.truth())
        listed = program.shardwright("ls", case.checkpoint, "--json").must_exit(0).json["tensors"]
        for kind in ("safetensors", "torch", "dcp", "h5"):
            held = {name: tensor.clone().contiguous() for name, tensor in truth.items()
                    if kind != "h5" or tensor.dtype in numpy_has}
            lacking = {one["fqn"]: "missing" for one in listed if one["fqn"] not in held}
            put = in_shards if kind == "h5" else lambda held, folder, kind=kind: write(kind, held, folder)
            with checks.that(f"diff of {case.name} and the same as {kind}"):
                answer = diff(case.checkpoint, put(held, scratch / f"{number}-{kind}"), "--data").json
                told = {name: one["kind"] for name, one in answer["tensors"].items()
                        if one["kind"] != "retiled"}
                expect_equal(told, lacking, "told")
                same = not lacking and not answer["entries"]
                expect_equal(answer["verdict"], "same" if same else "different", "verdict")
            with checks.that(f"diff of {case.name} and {kind} with one change"):
                what, name, after = with_one_change(held, chance)
                if kind == "h5":
                    after = {n: t for n, t in after.items() if t.dtype in numpy_has}
                answer = diff(case.checkpoint, put(after, scratch / f"{number}-{kind}-changed"),
                              "--data").must_exit(1).json
                told = {one: words for one, words in answer["tensors"].items()
                        if words["kind"] != "retiled" and one not in lacking}
                wanted = {name, "other." + name} if what == "renamed" else {name}
                expect_equal(set(told), wanted, f"who is reported of {what}")
                expect_equal(told[name]["kind"], what, name)
                if what == "values":
                    compare(told, truth[name], after[name], name)


def run(checks, other, scratch):
    across(checks, scratch)
    generator = torch.Generator().manual_seed(4)
    before = states(generator)
    first = write("dcp", before, scratch / "a")
    cut = scratch / "cut"
    program.shardwright("reshard", first, "--mesh", "dp=3,tp=2", "--out", cut, "--yes",
                        "--json").must_exit(0)
    for number_of_round in range(4):
        for kind in ("dcp", "safetensors", "torch"):
            after = changed(before, generator)
            second = write(kind, after, scratch / f"{kind}{number_of_round}")
            for left in (first, cut):
                with checks.that(f"diff of DCP and {kind}, {left.name}, round {number_of_round}"):
                    answer = diff(left, second, "--data").must_exit(1).json
                    expect_equal(answer["verdict"], "different", "verdict")
                    for name in before:
                        if name in answer["tensors"] and \
                                answer["tensors"][name]["kind"] == "retiled":
                            del answer["tensors"][name]
                        compare(answer["tensors"], before[name], after[name], name)
    with checks.that("the same tensors in other formats and tiles are the same"):
        for kind in ("safetensors", "torch"):
            second = write(kind, before, scratch / f"same-{kind}")
            for left in (first, cut):
                answer = diff(left, second, "--data").must_exit(0).json
                expect_equal(answer["verdict"], "same", kind)
                expect_equal(answer["same"], len(before), kind)
                by_metadata = diff(left, second).must_exit(2).json
                expect_equal(by_metadata["verdict"], "undecided", kind)
    with checks.that("names that DCP has again are found by their bytes"):
        renamed = {f"module.{name}": tensor for name, tensor in before.items()}
        second = write("safetensors", renamed, scratch / "renamed")
        told = diff(first, second, "--data").must_exit(1).json["tensors"]
        for name in before:
            expect_equal(told[name]["kind"], "renamed", name)
            same = renamed[told[name]["to"]]
            expect(torch.equal(bits(same), bits(before[name])), name)

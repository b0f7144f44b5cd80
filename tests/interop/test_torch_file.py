"""One file of torch.save: read as torch reads it, named as torch's flatten_state_dict names it.

Written back by `convert`, both ways, and compared with torch's own dcp_to_torch_save.
"""

import collections
import json
import random

import torch
from torch.distributed.checkpoint._nested_dict import flatten_state_dict
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp

import judge
import program
from checks import LeftOut, expect, expect_equal
from test_fixtures import DATA, must_show
from test_generated import SEED

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.bool,
          torch.float64, torch.float8_e4m3fn, torch.uint16)
SAVED = DATA / "torch-2.15" / "torch_save"


def some_tensor(chance, known):
    """A whole tensor, a transposed one, a slice of one, or one that is there already."""
    if known and chance.random() < 0.15:
        return chance.choice(known)
    shape = [chance.randint(0 if chance.random() < 0.1 else 1, 5)
             for _ in range(chance.randint(0, 3))]
    dtype = chance.choice(DTYPES)
    count = torch.Size(shape).numel() * dtype.itemsize
    raw = torch.tensor([chance.randint(0, 1 if dtype is torch.bool else 90)
                        for _ in range(count)], dtype=torch.uint8)
    tensor = raw.view(dtype).reshape(shape) if count else torch.empty(shape, dtype=dtype)
    if tensor.dim() > 1 and chance.random() < 0.3:
        tensor = tensor.transpose(0, 1)
    if tensor.dim() and tensor.shape[0] > 1 and chance.random() < 0.3:
        tensor = tensor[1:]
    if dtype.is_floating_point and dtype.itemsize > 1 and chance.random() < 0.3:
        tensor = torch.nn.Parameter(tensor)
    known.append(tensor)
    return tensor


def some_value(chance):
    return chance.choice((3, 0.25, None, True, "wörd", (1, 2.5), [1, 2, 3], 1 << 40, -7, b"\x00\xff",
                          [], {"a": (1, [None])}["a"], torch.Size([2, 3]), torch.bfloat16))


def some_state_dict(chance, depth=0, known=None):
    known = [] if known is None else known
    out = chance.choice((dict, collections.OrderedDict))()
    for i in range(chance.randint(1, 6)):
        key = i if chance.random() < 0.2 else f"k{i}" + chance.choice(("", ".x"))
        kind = chance.random()
        if depth < 3 and kind < 0.3:
            out[key] = some_state_dict(chance, depth + 1, known)
        elif depth < 3 and kind < 0.4:
            out[key] = [chance.choice((some_value, lambda c: some_tensor(c, known),
                                       lambda c: some_state_dict(c, depth + 2, known)))(chance)
                        for _ in range(chance.randint(1, 3))]
        elif kind < 0.55:
            out[key] = some_value(chance)
        else:
            out[key] = some_tensor(chance, known)
    return out


def must_read(path):
    flat, paths = flatten_state_dict(torch.load(path, weights_only=False))
    tensors = {name: value for name, value in flat.items() if isinstance(value, torch.Tensor)}
    listed = program.shardwright("ls", path, "--json").must_exit(0).json
    expect_equal({one["fqn"] for one in listed["tensors"]}, set(tensors), "tensors")
    missing = set(flat) - set(tensors) - set(listed["objects"])
    expect_equal(missing, set(), "entries that are not tensors and are not listed")
    must_show(path, {name: value.detach() for name, value in tensors.items()})


def equal(got, wanted, where="state dict"):
    """Values, types and keys; a tensor by its bits."""
    if isinstance(wanted, torch.Tensor):
        expect(isinstance(got, torch.Tensor) and judge.same_bits(got.detach(), wanted.detach()),
               f"{where}: {got} instead of {wanted}")
    elif isinstance(wanted, dict):
        expect_equal(set(got), set(wanted), f"keys of {where}")
        for key in wanted:
            equal(got[key], wanted[key], f"{where}.{key}")
    elif isinstance(wanted, (list, tuple)):
        expect_equal((type(got), len(got)), (type(wanted), len(wanted)), f"list {where}")
        for i, value in enumerate(wanted):
            equal(got[i], value, f"{where}.{i}")
    else:
        expect_equal((type(got), got), (type(wanted), wanted), where)


def convert(checkpoint, form, out, *more, codes=(0,)):
    answer = program.shardwright("convert", checkpoint, "--to", form, "--out", out, "--json",
                                 "--yes", *more)
    if answer.code == 3:
        raise LeftOut  # the verb is not there
    return answer.must_exit(*codes)


def converted(checks, other, scratch, number):
    chance = random.Random(f"{SEED}/convert/{number}")
    state = some_state_dict(chance)
    folder = scratch / f"convert_{number}"
    folder.mkdir()
    torch.save(state, folder / "first.pt")
    torch_save_to_dcp(folder / "first.pt", folder / "dcp")
    dcp_to_torch_save(folder / "dcp", folder / "wanted.pt")
    wanted = torch.load(folder / "wanted.pt", weights_only=False)
    with checks.that(f"state dict {number} becomes what dcp_to_torch_save makes of it"):
        convert(folder / "dcp", "torch", folder / "torch")
        got = torch.load(folder / "torch" / "model.pt", weights_only=True, mmap=True)
        equal(got, wanted)
    with checks.that(f"state dict {number} becomes DCP as torch_save_to_dcp makes it"):
        convert(folder / "first.pt", "dcp", folder / "back")
        dcp_to_torch_save(folder / "back", folder / "back.pt")
        back = torch.load(folder / "back.pt", weights_only=False)
        equal({key: back[key] for key in wanted}, wanted)


def as_safetensors(checks, scratch, number):
    """Split and ordered as Hugging Face's and the safetensors library do it: the same bytes."""
    from huggingface_hub import save_torch_state_dict
    chance = random.Random(f"{SEED}/split/{number}")
    state = {f"layer.{i}.w": torch.randn(chance.randint(1, 40)).to(
        chance.choice((torch.float32, torch.bfloat16, torch.int64, torch.uint8)))
             for i in range(12)}
    folder = scratch / f"split_{number}"
    folder.mkdir()
    torch.save(state, folder / "model.pt")
    most = chance.choice((100, 300, 10_000))
    (folder / "wanted").mkdir()
    save_torch_state_dict(state, folder / "wanted", max_shard_size=most)
    with checks.that(f"model {number} becomes the safetensors that Hugging Face's library writes"):
        convert(folder / "model.pt", "safetensors", folder / "got", "--shard-size", str(most))
        for path in sorted((folder / "wanted").iterdir()):
            if path.suffix == ".json":
                got = json.loads((folder / "got" / path.name).read_text())
                # save_pretrained counts them, huggingface_hub alone does not.
                got["metadata"].pop("total_parameters")
                expect_equal(got, json.loads(path.read_text()), path.name)
            else:
                expect_equal((folder / "got" / path.name).read_bytes(), path.read_bytes(), path.name)


def run(checks, other, scratch):
    for name in ("model.pt", "training.pt", "legacy.pt", "legacy_protocol4.pt"):
        with checks.that(f"{name} of torch 2.15 is read as torch reads it"):
            must_read(SAVED / name)
    for number in range(12):
        with checks.that(f"a state dict that torch saved is read as torch reads it ({number})"):
            path = scratch / f"read_{number}.pt"
            torch.save(some_state_dict(random.Random(f"{SEED}/torch file/{number}")), path)
            must_read(path)
            program.must_be_clean(path, "--data")
    for number in range(12):
        converted(checks, other, scratch, number)
    for number in range(4):
        as_safetensors(checks, scratch, number)

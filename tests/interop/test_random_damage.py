"""What torch loads otherwise, or not at all, is never called clean, proved or the same.

Random checkpoints (free_layouts.py) with one byte wrong anywhere, with metadata edited by torch's
own classes into something else that still tiles, files of torch.save with tensors in odd places,
results of a reshard or a conversion bent after they were made, and specs of another model.
Whatever the program says is compared with what torch loads: a byte whose change changes nothing may
be called clean, and a healthy checkpoint must be. SHARDWRIGHT_SEED gives others.
"""

import json
import logging
import math
import os
import pickle
import random
import shutil

import torch
from torch.distributed.checkpoint import FileSystemReader
from torch.distributed.checkpoint.metadata import MetadataIndex

import judge
import make_cases
import program
from checks import expect, expect_equal
from fake_ranks import write_checkpoint
from free_layouts import any_tensor, free_layout, spec_of
from layouts import healthy

SEED = os.environ.get("SHARDWRIGHT_SEED", "1")


def limited(*arguments):
    answer = program.shardwright(*arguments, "--json", timeout=30, memory=4 << 30)
    expect(0 <= answer.code <= 4, f"it crashed: {answer}")
    return answer


def exact(a, b):
    a, b = (t.detach().resolve_conj().resolve_neg().contiguous() for t in (a, b))
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(judge.bytes_of(a),
                                                                     judge.bytes_of(b))


def unlike(got, truth):
    return [fqn for fqn in truth if fqn not in got or not exact(got[fqn], truth[fqn])]


def loads_otherwise(load, truth):
    """Why this is not the truth any more; nothing where it is."""
    logging.disable(logging.CRITICAL)
    try:
        return unlike(load(), truth)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    except BaseException as problem:  # torch's CheckpointException is no Exception
        expect(type(problem).__name__ == "CheckpointException", f"{type(problem).__name__}")
        return str(problem)[-300:]
    finally:
        logging.disable(logging.NOTSET)


def load_folder(folder, truth):
    """Twice into different bytes: what a gap leaves alone shows."""
    spec = spec_of(truth)
    first = judge.load_dcp(folder, spec)
    second = {fqn: torch.zeros_like(tensor) for fqn, tensor in first.items()}
    judge.dcp.load(second, checkpoint_id=str(folder))
    return {fqn: first[fqn] for fqn in first if exact(first[fqn], second[fqn])}


def bent(chance, data):
    """One damage somewhere; other bytes than before."""
    new, at, kind = bytearray(data), chance.randrange(len(data)), chance.random()
    if kind < 0.6:
        new[at] ^= 1 << chance.randrange(8)
    elif kind < 0.75:
        new[at] = chance.randrange(256)
    elif kind < 0.85:
        new[at:at + 64] = bytes(len(new[at:at + 64]))
    elif kind < 0.92:
        del new[at]
    else:
        source = chance.randrange(len(data))
        piece = data[source:source + chance.randint(1, 200)]
        new[at:at + len(piece)] = piece
    return (bytes(new), at) if bytes(new) != data else bent(chance, data)


def folder_of(chance, directory):
    truth, world, state_dict_of = free_layout(chance)
    write_checkpoint(directory, world, state_dict_of,
                     single_file_per_rank=chance.random() < 0.8)
    (directory.parent / (directory.name + ".json")).write_text(json.dumps(spec_of(truth)))
    return truth, ("--spec", directory.parent / (directory.name + ".json"))


def any_byte(checks, chance, scratch, number):
    folder = scratch / f"bytes{number}"
    truth, spec = folder_of(chance, folder)
    with checks.that(f"random layout {number} of seed {SEED} is clean"):
        program.must_be_clean(folder, "--data", *spec)
    files = [path for path in folder.iterdir() if path.stat().st_size]
    for _ in range(14):
        path = chance.choice(files) if chance.random() < 0.6 else folder / ".metadata"
        before = path.read_bytes()
        after, at = bent(chance, before)
        path.write_bytes(after)
        with checks.that(f"random layout {number} of seed {SEED}, {path.name} wrong at {at}"):
            told = limited("check", folder, "--data", *spec)
            why = loads_otherwise(lambda: load_folder(folder, truth), truth)
            expect(told.code != 0 or not why, f"clean, but torch: {why}")
        path.write_bytes(before)


def edits(chance, metadata):
    """(name, function) of what can be done to one chunk; all of it is seen without a reference."""
    fqns = [fqn for fqn, entry in metadata.state_dict_metadata.items()
            if hasattr(entry, "chunks") and len(entry.size) > 0 and math.prod(entry.size) > 0]
    if not fqns:
        return []
    fqn = chance.choice(fqns)
    entry = metadata.state_dict_metadata[fqn]
    chunk = chance.choice([chunk for chunk in entry.chunks if 0 not in chunk.sizes])
    key = MetadataIndex(fqn, torch.Size(chunk.offsets))
    place, dim = metadata.storage_data[key], chance.randrange(len(entry.size))

    def resized(by):
        entry.size = torch.Size([n + (by if d == dim else 0) for d, n in enumerate(entry.size)])

    def overlapping():
        moved = torch.Size([max(0, n - 1) if d == dim else n for d, n in enumerate(chunk.offsets)])
        metadata.storage_data[MetadataIndex(fqn, moved)] = metadata.storage_data.pop(key)
        chunk.offsets = moved

    def gone():
        entry.chunks.remove(chunk)
        del metadata.storage_data[key]

    return [("a longer tensor", lambda: resized(1)), ("a shorter tensor", lambda: resized(-1)),
            ("a chunk too far ahead", overlapping), ("a chunk too few", gone),
            ("no record", lambda: metadata.storage_data.pop(key)),
            ("a shifted item", lambda: setattr(place, "offset",
                                               place.offset + chance.choice((-64, -1, 1, 64)))),
            ("another length", lambda: setattr(place, "length",
                                               place.length + chance.choice((-64, -1, 1, 64)))),
            ("another file", lambda: setattr(place, "relative_path", "__77_0.distcp")),
            ("nothing else", lambda: None)]


def edited(checks, chance, scratch, number):
    folder = scratch / f"edited{number}"
    truth, spec = folder_of(chance, folder)
    for _ in range(4):
        other = scratch / "other"
        shutil.copytree(folder, other)
        metadata = FileSystemReader(str(other)).read_metadata()
        choices = edits(chance, metadata)
        if choices:
            name, edit = chance.choice(choices)
            edit()
            metadata.storage_meta = None  # a path of this machine
            (other / ".metadata").write_bytes(pickle.dumps(metadata))
            with checks.that(f"random layout {number} of seed {SEED}, edited to {name}"):
                why = loads_otherwise(lambda: load_folder(other, truth), truth)
                told = limited("check", other, "--data", *spec)
                expect(told.code != 0 or not why, f"clean, but torch: {why}")
                verdict = limited("diff", folder, other, "--data").json.get("verdict")
                expect(verdict != "same" or not why, f"the same, but torch: {why}")
                expect(name != "nothing else" or (told.code, verdict) == (0, "same"),
                       f"{told.code} {verdict} of what is as it was")
        shutil.rmtree(other)


def leaves(value, name=""):
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (dict, list, tuple)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from leaves(inner, f"{name}.{key}")


def torch_files(checks, chance, scratch, number):
    """Tensors in tuples and lists, views, conjugates: bytes that are not a tensor of the checkpoint."""
    tensors = [any_tensor(chance) for _ in range(4)]
    state = {"w": tensors[0], "tuple": (tensors[1], 1), "list": [{"deep": tensors[2]}, 2],
             "twice": ((tensors[0],), [tensors[3]]), "parameter": torch.nn.Parameter(torch.ones(3))}
    if tensors[3].dtype == torch.complex64:
        state["conjugate"] = tensors[3].conj()
    path = scratch / f"state{number}.pt"
    torch.save(state, path)
    truth, before = dict(leaves(state)), path.read_bytes()
    with checks.that(f"torch file {number} of seed {SEED} raises nothing"):
        expect_equal([f["rule"] for f in limited("check", path, "--data").above_info()], [], "rules")
    for _ in range(8):
        after, at = bent(chance, before)
        path.write_bytes(after)
        with checks.that(f"torch file {number} of seed {SEED} wrong at {at}"):
            told = limited("check", path, "--data")
            why = loads_otherwise(lambda: dict(leaves(torch.load(path, weights_only=False))), truth)
            expect(told.code != 0 or not why, f"clean, but torch: {why}")
    path.unlink()


def made_anew(checks, chance, scratch, number):
    folder, out = scratch / f"source{number}", scratch / f"made{number}"
    truth, _ = folder_of(chance, folder)
    words = chance.choice((["reshard", folder, "--mesh", "dp=3,tp=2"],
                           ["convert", folder, "--to", "torch"],
                           ["convert", folder, "--to", "dcp", "--shard-size", "300"]))
    sentence = f"{' '.join(map(str, words[:1] + words[2:]))} of random layout {number}, seed {SEED}"

    def load():
        if (out / "model.pt").exists():
            return torch.load(out / "model.pt", weights_only=True)
        return load_folder(out, truth)
    with checks.that(f"{sentence}: torch loads the truth, and it is proved"):
        limited(*words, "--out", out, "--yes").must_exit(0)
        expect_equal(unlike(load(), truth), [], "unlike the truth")
        program.must_be_proved(out, "--against", folder)
        expect_equal(limited("diff", folder, out, "--data").json["verdict"], "same", "diff")
    files = [path for path in out.rglob("*") if path.is_file() and path.stat().st_size]
    for _ in range(6):
        path = chance.choice(files)
        before = path.read_bytes()
        after, at = bent(chance, before)
        path.write_bytes(after)
        with checks.that(f"{sentence}: {path.name} wrong at {at} is not proved"):
            why = loads_otherwise(load, truth)
            same = path.name == "certificate.json" and same_json(before, after)
            for against in ((), ("--against", folder)):
                verdict = limited("verify", out, *against).json.get("verdict")
                expect(verdict != "proved" or same or (not why and path.name != "certificate.json"),
                       f"proved, but torch: {why}")
        path.write_bytes(before)


def same_json(before, after):
    try:
        return json.loads(before) == json.loads(after)
    except ValueError:
        return False


def other_models(checks, chance, scratch, number):
    """A healthy checkpoint and a spec that is not its own: told, and no tensor is changed for it."""
    case = scratch / f"model{number}"
    layout = healthy(chance)
    make_cases.write_case(case, layout, SEED, {})
    truth = {entry.fqn: entry.truth for entry in layout.entries}
    spec = json.loads((case / "spec.json").read_text())
    for entry in spec.values():
        entry["shape"] = [2 * extent for extent in entry["shape"]]
    told_by, out = case / "larger.json", case / "out"
    told_by.write_text(json.dumps(spec))
    with checks.that(f"{layout.kind} {number} of seed {SEED} and a spec of twice the size"):
        told = limited("check", case / "ckpt", "--spec", told_by).must_exit(1)
        rules = {finding["rule"] for finding in told.above_info()}
        expect(rules & {"other-model", "shape-mismatch"}, f"{rules}")
        limited("repair", case / "ckpt", "--spec", told_by, "--out", out, "--yes")
        if not out.exists():
            return
        sizes = {fqn: tuple(entry.size) for fqn, entry in
                 FileSystemReader(str(out)).read_metadata().state_dict_metadata.items()
                 if hasattr(entry, "size")}
        grown = [fqn for fqn, tensor in truth.items() if sizes[fqn] != tuple(tensor.shape)
                 and tensor.dim() > 1]
        expect_equal(grown, [], "matrices that were made to fit another model")


def run(checks, other, scratch):
    kinds = ((any_byte, 14), (edited, 14), (torch_files, 10), (made_anew, 10), (other_models, 12))
    for kind, count in kinds:
        for number in range(count):
            kind(checks, random.Random(f"{SEED}/{kind.__name__}/{number}"), scratch, number)

"""reshard and convert: whatever mesh or format is asked for, torch and safetensors read the truth.

Random layouts of torch's planner, resharded to random meshes and placements, twice one after the
other, and converted to safetensors, back to DCP and to one torch.save file: more than 200 in all.
The boxes are those that torch's own DTensor would save. Every result is compared with its source
element by element, by the program, and against the truth, by torch.
"""

import hashlib
import itertools
import json
import random

import safetensors
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file
from torch.distributed.checkpoint._nested_dict import flatten_state_dict

import judge
import program
from checks import expect, expect_equal
from fake_ranks import torch_chunk
from test_fixtures import cases
from test_generated import SEED, generated


def random_mesh(chance):
    names = chance.sample(["dp", "tp", "ep", "fsdp"], chance.randint(1, 3))
    return {name: chance.choice([1, 2, 3, 4]) for name in names}


def random_rules(chance, spec, mesh):
    """Patterns and placements; the last pattern takes what is left."""
    rules = {}
    for fqn in chance.sample(sorted(spec), min(3, len(spec))):
        ndim = len(spec[fqn]["shape"])
        rules[fqn] = [f"Shard({chance.randrange(ndim)})" if ndim and chance.random() < 0.7
                      else "Replicate" for _ in mesh]
    if chance.random() < 0.5:
        rules["*.bias"] = ["Replicate"] * len(mesh)
    return rules


def placements_of(rules, fqn, ndim, mesh):
    import fnmatch
    for pattern, placements in rules.items():
        if fnmatch.fnmatchcase(fqn, pattern):
            return placements
    return [("Shard(0)" if i == 0 and ndim else "Replicate") for i in range(len(mesh))]


def boxes_of(shape, mesh, placements):
    """The boxes of all ranks, each once, as torch.chunk cuts them."""
    boxes = set()
    for coordinate in itertools.product(*(range(size) for size in mesh.values())):
        offsets, sizes = [0] * len(shape), list(shape)
        for size, index, placement in zip(mesh.values(), coordinate, placements):
            if placement == "Replicate":
                continue
            dim = int(placement[6:-1])
            start, length = torch_chunk(sizes[dim], size, index)
            offsets[dim] += start
            sizes[dim] = length
        if all(sizes):
            boxes.add((tuple(offsets), tuple(sizes)))
    return boxes or {((0,) * len(shape), tuple(shape))}


def must_be_cut(checkpoint, spec, truth, rules, mesh):
    saved = judge.saved_chunks(checkpoint)
    for fqn in truth:
        shape = spec[fqn]["shape"]
        if not all(shape):
            continue
        wanted = boxes_of(shape, mesh, placements_of(rules, fqn, len(shape), mesh))
        got = {(tuple(offsets), tuple(sizes)) for offsets, sizes, *_ in saved[fqn]}
        expect_equal(got, wanted, f"tiles of {fqn} on {mesh} as {rules}")


def must_be_proved(checkpoint, source):
    answer = program.shardwright("verify", checkpoint, "--against", source,
                                 "--json").must_exit(0).json
    expect_equal(answer["verdict"], "proved", "verdict of verify")
    expect_equal(answer["against"]["compared"], answer["kept"] + answer["lost"], "compared")


def must_list_its_files(checkpoint):
    """As Megatron-LM's verify_integrity_manifest does, which names every file but its own."""
    listed = json.loads((checkpoint / "integrity.json").read_text())
    expect_equal(listed["algorithm"], "sha256", "algorithm")
    there = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
             for path in checkpoint.iterdir()
             if path.name not in ("integrity.json", "certificate.json")}
    expect_equal(listed["files"], there, "integrity.json")


def resharded(checks, case, other, number, source=None):
    """Of the case's checkpoint, or of `source`, which holds the same tensors."""
    source = source or case.checkpoint
    chance = random.Random(f"{SEED}/reshard/{number}/{case.name}")
    mesh, out = random_mesh(chance), case.directory / f"resharded-{number}"
    rules = random_rules(chance, case.spec, mesh)
    text = ",".join(f"{name}={size}" for name, size in mesh.items())
    arguments = ["reshard", source, "--json", "--mesh", text, "--out", out, "--yes"]
    if number % 4 == 0:
        arguments.append("--integrity")
    if chance.random() < 0.7:
        path = case.directory / f"placements-{number}.json"
        path.write_text(json.dumps(rules))
        arguments += ["--placements", path]
    else:
        rules = {}
    before = judge.tree_hash(source)
    with checks.that(f"{case.name} is resharded to {text}, and torch reads the truth"):
        answer = program.shardwright(*arguments).must_exit(0).json
        expect_equal(answer["output"], str(out), "output")
        truth = case.truth()
        if judge.is_dcp(out):
            got = judge.load_dcp(out, case.spec, set(truth))
            expect_equal(judge.differences(got, truth), [], f"torch {judge.version()}")
            must_be_cut(out, case.spec, truth, rules, mesh)
        must_be_proved(out, source)
        expect_equal(judge.tree_hash(source), before, "the source afterwards")
        program.must_be_clean(out, "--depth", "data")
        if number % 4 == 0:
            must_list_its_files(out)
    if judge.is_dcp(out) and number % 3 == 0:
        with checks.that(f"{case.name} resharded is read by the other torch"):
            expect_equal(other.ask("load_and_compare", checkpoint=str(out),
                                   spec=str(case.spec_path), truth=str(case.truth_path)), [],
                         f"torch {other.version}")
    return out


def plain(tensor):
    return {torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
            torch.int16, torch.int8, torch.uint8, torch.bool, torch.float8_e4m3fn,
            torch.float8_e5m2}.__contains__(tensor.dtype)


def converted(checks, case, number):
    """To safetensors in small files, and back; a refusal names what safetensors cannot say."""
    truth = case.truth()
    out, back = case.directory / f"hf-{number}", case.directory / f"back-{number}"
    with checks.that(f"{case.name} is converted to safetensors and back"):
        answer = program.shardwright("convert", case.checkpoint, "--json", "--to", "safetensors",
                                     "--shard-size", "20K", "--out", out, "--yes")
        if answer.code == 2:
            expect(not out.exists(), "a refused conversion left something")
            named = answer.json["error"]["message"]
            sayable = all(plain(tensor) for tensor in truth.values())
            expect(not sayable or "tensor" in named, f"refused without a reason: {answer}")
            return 0
        answer.must_exit(0)
        read = {}
        for path in sorted(out.glob("*.safetensors")):
            with safetensors.safe_open(path, "pt") as stream:
                expect_equal((stream.metadata() or {}).get("format"), "pt", "format")
            read |= load_file(path)
        expect_equal(judge.differences(read, truth), [], "safetensors")
        expect_equal(set(read), set(truth), "names")
        if (out / "model.safetensors.index.json").exists():
            index = json.loads((out / "model.safetensors.index.json").read_text())
            expect_equal(set(index["weight_map"]), set(truth), "weight_map")
            expect_equal(index["metadata"]["total_size"],
                         sum(t.numel() * t.element_size() for t in truth.values()), "total_size")
        must_be_proved(out, case.checkpoint)
        program.shardwright("convert", out, "--json", "--to", "dcp", "--out", back,
                            "--yes").must_exit(0)
        got = judge.load_dcp(back, case.spec, set(truth))
        expect_equal(judge.differences(got, truth), [], "DCP again")
        must_be_proved(back, out)
    return 2


def converted_to_torch(checks, case, number):
    """To one file, which torch.load reads without running anything."""
    truth, out = case.truth(), case.directory / f"whole-{number}"
    with checks.that(f"{case.name} is converted to one torch.save file"):
        answer = program.shardwright("convert", case.checkpoint, "--json", "--to", "torch",
                                     "--out", out, "--yes")
        if answer.code == 2:
            expect(not out.exists(), "a refused conversion left something")
            expect(any(name in answer.json["error"]["message"] + str(answer.json["error"])
                       for name in case.spec) or "entr" in answer.json["error"]["message"],
                   f"refused without a reason: {answer}")
            return 0
        answer.must_exit(0)
        flat, _ = flatten_state_dict(torch.load(out / "model.pt", weights_only=True))
        expect_equal(judge.differences({name: flat[name] for name in truth}, truth), [], "torch")
        must_be_proved(out, case.checkpoint)
    return 1


def beyond_memory(checks, scratch):
    """Items that torch compressed, each larger than what may be taken: decoded next to the result."""
    from torch.distributed.checkpoint._extension import ZStandard

    generator = torch.Generator().manual_seed(4)
    truth = {f"layers.{i}.weight": torch.randint(0, 256, (1500, 700), generator=generator,
                                                 dtype=torch.int32).to(torch.float32)
             for i in range(3)}
    truth["turned"] = truth["layers.0.weight"][:1024, :600].clone().t()
    source = scratch / "compressed"
    dcp.save(truth, storage_writer=dcp.FileSystemWriter(source, _extensions=[ZStandard()]),
             no_dist=True)
    spec = {name: {"shape": list(t.shape), "dtype": str(t.dtype)} for name, t in truth.items()}
    placements = scratch / "columns.json"
    placements.write_text(json.dumps({"*": ["Shard(1)"]}))
    ways = (("reshard", "--mesh", "dp=3"),
            ("reshard", "--mesh", "dp=3", "--placements", placements),
            ("convert", "--to", "safetensors"), ("convert", "--to", "torch"))
    for number, (verb, *how) in enumerate(ways):
        out = scratch / f"beyond-{number}"
        words = " ".join(str(word) for word in how)
        with checks.that(f"what has no room in 1 MiB is decoded by {verb} {words}, and torch reads it"):
            program.shardwright(verb, source, "--json", *how, "--memory", "1M", "--out", out,
                                "--yes").must_exit(0)
            if judge.is_dcp(out):
                read = judge.load_dcp(out, spec, set(truth))
            elif (out / "model.pt").exists():
                read = torch.load(out / "model.pt", weights_only=True)
            else:
                read = {}
                for path in out.glob("*.safetensors"):
                    read |= load_file(path)
            expect_equal(judge.differences(read, truth), [], f"torch {judge.version()}")
            must_be_proved(out, source)


def broken_is_refused(checks, scratch):
    for number, case in enumerate(cases("s1_")):
        out = scratch / f"broken-{number}"
        with checks.that(f"{case.name} is broken, and nothing reshards it"):
            answer = program.shardwright("reshard", case.checkpoint, "--json", "--mesh", "dp=2",
                                         "--spec", case.spec_path, "--out", out, "--yes")
            answer.must_exit(2)
            expect("broken" in answer.json["error"]["message"], f"{answer}")
            expect(not out.exists(), "something was written")


def run(checks, other, scratch):
    made = 0
    for number, case in enumerate(generated(scratch, 60)):
        once = resharded(checks, case, other, number)
        made += once.exists()
        if once.exists():
            made += resharded(checks, case, other, 1000 + number, once).exists()
        made += (converted if number % 2 == 0 else converted_to_torch)(checks, case, number) or 0
    with checks.that("200 random reshards and conversions were checked"):
        expect(made >= 200, f"only {made}")
    broken_is_refused(checks, scratch)
    beyond_memory(checks, scratch)

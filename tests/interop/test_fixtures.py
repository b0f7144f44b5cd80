"""The fixtures: healthy ones stay silent and read back, S1 ones are found, repaired and checked."""

import json
import pathlib
import shutil

import judge
import program
from checks import expect, expect_equal

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"


class Case:
    def __init__(self, directory):
        self.directory = directory
        self.name = f"{directory.parent.name}/{directory.name}"
        self.checkpoint = directory / "ckpt"
        self.spec_path = directory / "spec.json"
        self.truth_path = directory / "truth.safetensors"
        self.spec = json.loads(self.spec_path.read_text())
        self.about = json.loads((directory / "case.json").read_text())

    def truth(self):
        return judge.load_file(self.truth_path)


def cases(prefix):
    return [Case(path) for path in sorted(DATA.glob(f"*/{prefix}*"))
            if (path / "spec.json").exists()]


def shown(checkpoint, fqn):
    answer = program.shardwright("show", checkpoint, fqn, "--json", "--values", "--limit", "0")
    told = answer.must_exit(0).json
    expect_equal(told["fqn"], fqn, "fqn")
    dtype = judge.dtype_of(told["dtype"])
    return judge.tensor_of_text(told["values"], dtype, told["shape"])


def must_show(checkpoint, wanted):
    for fqn, tensor in wanted.items():
        got = shown(checkpoint, fqn)
        expect(judge.same_bits(got, tensor), f"{fqn}: {judge.first_difference(got, tensor)}"
               if not judge.same_bits(got, tensor) else "")


def must_place_chunks(case):
    told = program.shardwright("info", case.checkpoint, "--json").must_exit(0).json
    saved = judge.saved_chunks(case.checkpoint)
    expect_equal((told["tensors"], told["chunks"]),
                 (len(saved), sum(len(chunks) for chunks in saved.values())), "tensors and chunks")
    for fqn, wanted in saved.items():
        shown_chunks = program.shardwright("show", case.checkpoint, fqn,
                                           "--json").must_exit(0).json["chunks"]
        got = [tuple(chunk[key] for key in ("offsets", "sizes", "file", "offset", "length"))
               for chunk in shown_chunks]
        expect_equal(sorted(got), sorted(wanted), f"chunks of {fqn}")
        for chunk in shown_chunks:
            expect_equal(chunk["writer"], int(chunk["file"].split("_")[2]), f"writer of {fqn}")


# What has been there since torch 2.6 and is the same under every Python.
PORTABLE = {"torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem",
            "torch", "torch.serialization"}


def must_be_portable(checkpoint):
    named = judge.pickle_globals(checkpoint / ".metadata")
    expect(("torch.distributed.checkpoint.metadata", "Metadata") in named, f"names {named}")
    foreign = {one for one in named if one[0] not in PORTABLE}
    expect_equal(foreign, set(), "names that not every torch and Python has")


def healthy(checks, case):
    with checks.that(f"{case.name} raises nothing above info"):
        program.must_be_clean(case.checkpoint)
    with checks.that(f"{case.name} raises nothing above info when every byte is read"):
        program.must_be_clean(case.checkpoint, "--data")
    with checks.that(f"{case.name} raises nothing above info against its spec"):
        program.must_be_clean(case.checkpoint, "--spec", case.spec_path)
    with checks.that(f"every tensor of {case.name} reads back as training held it"):
        must_show(case.checkpoint, case.truth())
    with checks.that(f"every tensor of {case.name} reads back as torch reads it"):
        left_out = {fqn for fqn in case.spec if fqn not in case.truth()}
        if left_out:
            must_show(case.checkpoint, judge.load_dcp(case.checkpoint, case.spec, left_out))
    if judge.is_dcp(case.checkpoint):
        with checks.that(f"every chunk of {case.name} is where torch's metadata says"):
            must_place_chunks(case)
    with checks.that(f"{case.name} needs no repair"):
        # New metadata for what another torch or Python cannot open is an offer, not a repair.
        operations = program.plan_operations(case.checkpoint, "--spec", case.spec_path)
        expect_equal([one for one in operations if one["kind"] != "rewrite-metadata"], [],
                     "operations")


def must_name_the_moved_axis(answer, factor):
    answer.must_exit(1)
    above = answer.above_info()
    expect_equal([finding["rule"] for finding in above], ["placement-axis-moved"],
                 "rules above info")
    evidence = above[0]["evidence"]
    expect_equal(sorted(evidence["axes"]), [1, 2], "axes")
    expect_equal(evidence["factor"], factor, "factor")
    expect(above[0]["remedy"] and above[0]["remedy"]["lossless"], f"remedy {above[0]['remedy']}")
    expect(above[0]["cause"].strip(), "the cause is one sentence")


def must_equal_truth(case, checkpoint, other):
    """Both torches for DCP; for sharded safetensors torch's reader and our own hands."""
    truth = case.truth()
    if judge.is_dcp(checkpoint):
        got = judge.load_dcp(checkpoint, case.spec, set(truth))
        expect_equal(judge.differences(got, truth), [], f"torch {judge.version()}")
        arguments = dict(checkpoint=str(checkpoint), spec=str(case.spec_path),
                         truth=str(case.truth_path))
        expect_equal(other.ask("load_and_compare", **arguments), [], f"torch {other.version}")
    else:
        by_hand = judge.load_hf_sharded(checkpoint)
        expect_equal(judge.differences(by_hand, truth), [], "assembled from the shards")
        by_torch = judge.load_hf_by_torch(checkpoint, case.spec)
        expect_equal(judge.differences(by_torch, truth), [], f"torch {judge.version()}")


def broken_subjects(case):
    """The tensors that torch itself finds to be of another shape than the spec."""
    if not judge.is_dcp(case.checkpoint):
        shapes = {fqn: list(t.shape)
                  for fqn, t in judge.load_hf_sharded(case.checkpoint).items()}
    else:
        from torch.distributed.checkpoint import FileSystemReader
        entries = FileSystemReader(str(case.checkpoint)).read_metadata().state_dict_metadata
        shapes = {fqn: list(e.size) for fqn, e in entries.items() if hasattr(e, "size")}
    return sorted(fqn for fqn, e in case.spec.items() if fqn in shapes and
                  shapes[fqn] != e["shape"])


def moved_axis(checks, case, other, scratch):
    out = scratch / case.name
    out.parent.mkdir(parents=True, exist_ok=True)
    before = judge.tree_hash(case.checkpoint)
    factor = case.about["mesh"]["ep_shard"]
    spec = ("--spec", case.spec_path)

    with checks.that(f"{case.name}: against its spec exactly the moved axis is named"):
        must_name_the_moved_axis(program.check(case.checkpoint, *spec), factor)
    with checks.that(f"{case.name}: the moved axis is named for every tensor that has it"):
        above = program.check(case.checkpoint, *spec).above_info()
        expect_equal(sorted(above[0]["subjects"]), broken_subjects(case), "subjects")
    with checks.that(f"{case.name}: without a spec its siblings tell the same"):
        must_name_the_moved_axis(program.check(case.checkpoint), factor)
    with checks.that(f"{case.name}: the plan has something to do"):
        expect(program.plan_operations(case.checkpoint, *spec), "the plan is empty")
    with checks.that(f"{case.name}: the repair writes where it was told to"):
        answer = program.repair(case.checkpoint, *spec, "--out", out)
        expect_equal(pathlib.Path(answer["output"]).resolve(), out.resolve(), "output")
        certificate = json.loads(pathlib.Path(answer["certificate"]).read_text())
        expect_equal(certificate["lossless"], True, "lossless")
        for fqn, entry in certificate["tensors"].items():
            expect_equal((entry["lost"], entry["lost_boxes"]), (0, []), f"lost of {fqn}")
    with checks.that(f"{case.name}: no byte of the source has changed"):
        expect_equal(judge.tree_hash(case.checkpoint), before, "hashes")
    with checks.that(f"{case.name}: the repaired loads in every torch and equals the truth"):
        must_equal_truth(case, out, other)
    if judge.is_dcp(case.checkpoint):
        with checks.that(f"{case.name}: every Python can open the repaired metadata"):
            must_be_portable(out)
    with checks.that(f"{case.name}: the repaired is proved by verify"):
        program.must_be_proved(out, "--against", case.checkpoint)
    with checks.that(f"{case.name}: the repaired is clean against the spec"):
        program.must_be_clean(out, *spec)
        program.must_be_clean(out, *spec, "--data")
    with checks.that(f"{case.name}: the repair of the repaired plans nothing"):
        expect_equal(program.plan_operations(out, *spec), [], "operations")
    in_place_and_back(checks, case, other, scratch / (case.name + "_in_place"))


def in_place_and_back(checks, case, other, copy):
    shutil.copytree(case.checkpoint, copy)
    before = judge.tree_hash(copy)
    if not judge.is_dcp(copy):
        with checks.that(f"{case.name}: in place is refused where there is no .metadata to swap"):
            program.shardwright("repair", copy, "--json", "--yes", "--spec", case.spec_path,
                                "--in-place").must_exit(2, 3)
            expect_equal(judge.tree_hash(copy), before, "hashes")
        return

    with checks.that(f"{case.name}: repaired in place it equals the truth"):
        program.repair(copy, "--spec", case.spec_path, "--in-place")
        must_equal_truth(case, copy, other)
    with checks.that(f"{case.name}: in place only the metadata has changed"):
        after = judge.tree_hash(copy)
        changed = {name for name in before if after.get(name) != before[name]}
        expect_equal(changed, {".metadata"}, "changed")
    with checks.that(f"{case.name}: undo brings every file back"):
        program.shardwright("undo", copy, "--json").must_exit(0)
        after = judge.tree_hash(copy)
        expect_equal({name: after.get(name) for name in before}, before, "hashes")
    with checks.that(f"{case.name}: after undo the moved axis is found again"):
        factor = case.about["mesh"]["ep_shard"]
        must_name_the_moved_axis(program.check(copy, "--spec", case.spec_path), factor)


def run(checks, other, scratch):
    for case in cases("healthy_"):
        healthy(checks, case)
    for case in cases("s1_"):
        moved_axis(checks, case, other, scratch)

"""Bytes that are whole and are in the wrong place, and bytes after what a loader reads.

A rank's file with the bytes of another rank's or of another step, a rank's own copy of what all
ranks have, what is after an archive, Megatron's folder without the file that it begins with.
torch is asked first: what it loads right is clean, what it loads otherwise is told.
"""

import os
import pickle
import shutil

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import DefaultLoadPlanner, DefaultSavePlanner

import program
from checks import expect, expect_equal
from fake_ranks import dtensor, process_group, torch_chunk, write_checkpoint
from test_random_damage import loads_otherwise

def behind_archives(checks, scratch):
    truth = {"w": torch.arange(12.).reshape(4, 3), "b": torch.arange(5)}
    path = scratch / "behind.pt"
    torch.save(truth, path)
    whole = path.read_bytes()
    # It looks for the end in windows, the last of which may not begin in front of the file.
    for more in (0, 1, 22, 4000, 5000, 20000, 65536, 69562, 69563):
        path.write_bytes(whole + bytes(more))
        with checks.that(f"{more} bytes after a file of torch.save: clean where torch loads it"):
            why = loads_otherwise(lambda: torch.load(path, weights_only=True), truth)
            expect_equal(program.check(path, "--data").code == 0, not why, f"clean ({why})")


WEIGHT = torch.randn(24, 8, generator=torch.Generator().manual_seed(3))


def model_of(step, experts=False, counted=True):
    """A state dict by rank: rows of each tensor with their moments, and whole steps."""
    names = [f"layers.{n}.{'experts.w1' if experts else 'weight'}" for n in range(6)]

    def state_dict_of(rank):
        mesh, state = rank.device_mesh({"dp": rank.world}), {}
        for number, name in enumerate(names):
            begin, length = torch_chunk(24, rank.world, rank.number)
            tensor = WEIGHT[:24 // rank.world].repeat(rank.world, 1) if experts else WEIGHT
            local = (tensor + number)[begin:begin + length].clone()
            state["model." + name] = dtensor(local, mesh, ["Shard(0)"], tensor.shape)
            if experts:
                continue
            for power, kind in ((1, "exp_avg"), (2, "exp_avg_sq")):
                moment = (local * step / 100) ** power
                state[f"optimizer.state.{name}.{kind}"] = dtensor(moment, mesh, ["Shard(0)"],
                                                                 tensor.shape)
            if counted:
                state[f"optimizer.state.{name}.step"] = torch.tensor(float(step))
        return state
    return state_dict_of


def exchanged(folder, name, source):
    """As a copy that keeps times leaves it."""
    times = os.stat(folder / name)
    shutil.copyfile(source, folder / name)
    os.utime(folder / name, ns=(times.st_atime_ns, times.st_mtime_ns))


def exchanged_files(checks, scratch):
    healthy, before, uncounted = (scratch / name for name in ("healthy", "before", "uncounted"))
    # Of three: torch gives what all ranks have to those behind the first.
    write_checkpoint(healthy, 3, model_of(500))
    write_checkpoint(before, 3, model_of(400))
    write_checkpoint(uncounted, 3, model_of(500, counted=False))
    for name, folder in (("this step", healthy), ("the one before", before),
                         ("one without steps", uncounted)):
        with checks.that(f"what three ranks saved at {name} is clean"):
            program.must_be_clean(folder, "--data")
    for sentence, into, source in (("of the other rank", uncounted, uncounted / "__2_0.distcp"),
                                   ("of another step", healthy, before / "__1_0.distcp")):
        with checks.that(f"a file with the bytes {sentence} is told"):
            folder = scratch / sentence
            shutil.copytree(into, folder)
            exchanged(folder, "__1_0.distcp", source)
            files = {subject for finding in program.check(folder).must_exit(1).above_info()
                     for subject in finding["subjects"]}
            expect(files & {"__1_0.distcp", "__2_0.distcp"}, f"no file is named: {files}")
    beside_a_copy(checks, scratch, uncounted)
    with checks.that("experts that are copies of one dense layer raise nothing"):
        write_checkpoint(scratch / "upcycled", 3, model_of(1, experts=True))
        expect_equal((scratch / "upcycled" / "__0_0.distcp").stat().st_size,
                     (scratch / "upcycled" / "__1_0.distcp").stat().st_size, "sizes")
        program.must_be_clean(scratch / "upcycled", "--data")


def subjects_of(answer, rule):
    return [subject for finding in answer.json["findings"] if finding["rule"] == rule
            for subject in finding["subjects"]]


def beside_a_copy(checks, scratch, copy):
    """What nothing in the checkpoint says, a copy of the same step does."""
    earlier, folder = scratch / "earlier", scratch / "foreign"
    write_checkpoint(earlier, 3, model_of(400, counted=False))
    with checks.that("an earlier step is not a file of another save"):
        program.must_be_clean(copy, "--data", "--against", earlier)
    shutil.copytree(copy, folder)
    exchanged(folder, "__1_0.distcp", earlier / "__1_0.distcp")
    for depth in ("headers", "data"):
        with checks.that(f"a file of another step is named next to a copy of this one, by {depth}"):
            answer = program.check(folder, "--against", copy, "--depth", depth).must_exit(1)
            expect_equal(subjects_of(answer, "foreign-file"), ["__1_0.distcp"], "files")
    with checks.that("records of two tensors under each other's names are named next to a copy"):
        metadata = dcp.FileSystemReader(str(copy)).read_metadata()
        first, second = (next(index for index in metadata.storage_data if index.fqn == name)
                         for name in ("model.layers.0.weight", "model.layers.4.weight"))
        places = metadata.storage_data
        places[first], places[second] = places[second], places[first]
        confused = scratch / "confused"
        shutil.copytree(copy, confused)
        (confused / ".metadata").write_bytes(pickle.dumps(metadata))
        answer = program.check(confused, "--against", copy, "--data").must_exit(1)
        expect_equal(sorted(subjects_of(answer, "tiles-exchanged")), sorted([first.fqn, second.fqn]),
                     "tensors")


def own_copies(checks, scratch):
    """Without collectives every rank writes what all have, and reads its own again."""
    whole = torch.arange(40.) * 1.5

    def saved(folder):
        for number in range(2):
            with process_group(number, 2):
                dcp.save({"b": whole.clone()}, checkpoint_id=str(folder), use_collectives=False)
        return folder
    folder = saved(scratch / "own")
    with checks.that("what each rank saved for itself is clean"):
        program.must_be_clean(folder, "--data")
    for number in range(2):
        with checks.that(f"a byte of rank {number}'s own copy that changed is told"):
            path = folder / f"__{number}_0.distcp"
            good = path.read_bytes()
            at = good.index(whole.numpy().tobytes())
            path.write_bytes(good[:at + 9] + bytes([good[at + 9] ^ 4]) + good[at + 10:])
            answer = program.check(folder, "--data").must_exit(1)
            expect(path.name in answer.stdout, f"{path.name} is not named: {answer}")
            path.write_bytes(good)


def own_states(checks, scratch):
    """The state of its generator is a rank's own, a norm that differs is not."""
    def saved(name, more):
        folder = scratch / name
        for number in range(2):
            with process_group(number, 2):
                state = {"b": torch.arange(40.), "lr": {"lr": .5, "rank": number}, **more(number)}
                dcp.save(state, checkpoint_id=str(folder), use_collectives=False)
        return folder
    with checks.that("states of generators differ from rank to rank and are clean"):
        program.must_be_clean(saved("generators", lambda number: {
            "rng_state": torch.Generator().manual_seed(number).get_state(),
            "rng.cuda": torch.full((16,), number, dtype=torch.uint8)}), "--data")
    with checks.that("a norm that differs from rank to rank is told"):
        folder = saved("parted", lambda number: {"norm": torch.full((8,), number + 1.)})
        subjects = [subject for finding in program.check(folder, "--data").must_exit(1).above_info()
                    for subject in finding["subjects"]]
        expect_equal(subjects, ["norm"], "subjects")


def own_entries(checks, scratch):
    """What each rank has for itself is left out in what is made: told before and after."""
    for own in (False, True):
        folder, out = scratch / f"entries{own}", scratch / f"entries{own}_dcp"
        for number in range(2):
            with process_group(number, 2):
                state = {"b": torch.arange(40.), "seed": 7 + own * number, "lr": .5}
                dcp.save(state, checkpoint_id=str(folder), use_collectives=False)
        left = ["seed"] * own
        with checks.that(f"entries that {'differ' if own else 'are alike'} are recognised by check, plan "
                         "and convert, and no damage"):
            program.must_be_clean(folder, "--data")
            expect_equal(subjects_of(program.check(folder), "own-entries"), left, "by check")
            plan = program.shardwright("plan", folder, "--json").must_exit(0).json
            expect_equal(plan.get("of_other_ranks", []), left, "by plan")
            expect_equal(plan["lossless"], not own, "lossless by plan")
            made = program.shardwright("convert", folder, "--to", "dcp", "--out", out, "--yes",
                                       "--json").must_exit(0).json
            expect_equal(made["of_other_ranks"], left, "by convert")
            expect_equal(made["lossless"], not own, "lossless by convert")


def bent_before(checks, scratch):
    """Bytes that are not those that were saved do not get a new and good checksum."""
    folder = scratch / "bent_before"
    write_checkpoint(folder, 3, model_of(500))
    path = folder / "__1_0.distcp"
    good = path.read_bytes()
    at = good.index((WEIGHT + 2)[8:9].numpy().tobytes())
    path.write_bytes(good[:at + 5] + bytes([good[at + 5] ^ 8]) + good[at + 6:])
    for words in (("reshard", "--mesh", "dp=2"), ("convert", "--to", "torch")):
        out = scratch / f"bent_{words[0]}"
        with checks.that(f"a byte that changed is not carried over by {words[0]}"):
            answer = program.shardwright(words[0], folder, *words[1:], "--out", out, "--yes",
                                         "--json").must_exit(2)
            expect_equal(answer.json["error"]["tensor"], "model.layers.2.weight", "tensor")
            expect(not out.exists(), "something was written")


def without_checksums(checks, scratch):
    """What torch.load stops at is reported, with no checksum to say so."""
    path, truth = scratch / "without.pt", {"w": torch.arange(12.).reshape(4, 3)}
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(truth, path)
    finally:
        torch.serialization.set_crc32_options(True)
    whole = path.read_bytes()
    with checks.that("an archive without checksums is clean"):
        program.must_be_clean(path, "--data")
    record = whole.index(b"serialization_id")
    places = {"a class that is called": whole.index(b"OrderedDict") + 3,
              "the class of a storage": whole.index(b"FloatStorage") + 2,
              "the id of the archive": whole.index(b"0", whole.index(b"FB", record)),
              "the version": whole.index(b"3\n")}
    for what, at in places.items():
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x80]) + whole[at + 1:])
        with checks.that(f"without checksums a bent byte in {what} is told where torch stops"):
            expect(loads_otherwise(lambda: torch.load(path, weights_only=True), truth), "torch loads")
            expect(program.check(path, "--data").code != 0, "clean")


def megatron_marker(checks, scratch):
    folder, truth = scratch / "megatron", {"w": torch.arange(6.)}
    dcp.save(dict(truth), checkpoint_id=str(folder), no_dist=True,
             planner=DefaultSavePlanner(flatten_state_dict=False))
    # As Megatron's saver has it, which keeps no paths.
    metadata = dcp.FileSystemReader(str(folder)).read_metadata()
    metadata.planner_data, metadata.storage_meta = None, None
    (folder / ".metadata").write_bytes(pickle.dumps(metadata))

    def load():
        state = {"w": torch.zeros(6)}
        dcp.load(state, checkpoint_id=str(folder), no_dist=True,
                 planner=DefaultLoadPlanner(flatten_state_dict=False))
        return state
    with checks.that("metadata without paths is nobody's but torch's"):
        expect_equal(loads_otherwise(load, truth), [], "torch")
        program.must_be_clean(folder)
    torch.save({"iteration": 7}, folder / "common.pt")
    with checks.that("next to common.pt the file is missed that Megatron writes last"):
        finding = program.check(folder).must_exit(1).above_info()[0]
        expect_equal(finding["subjects"], ["metadata.json"], "subjects")
    (folder / "metadata.json").write_text('{"sharded_backend": "torch_dist"}')
    with checks.that("with it nothing is"):
        program.must_be_clean(folder)


def run(checks, other, scratch):
    behind_archives(checks, scratch)
    exchanged_files(checks, scratch)
    own_copies(checks, scratch)
    own_states(checks, scratch)
    own_entries(checks, scratch)
    bent_before(checks, scratch)
    without_checksums(checks, scratch)
    megatron_marker(checks, scratch)

"""What is where elements are lost: every --fill, read back by torch, and told everywhere.

A repair may put zeros there, the model's own weights for a master, or another checkpoint's
elements. Outside the boxes that the certificate names the truth must be whatever was chosen.
"""

import json
import pathlib

import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file

import judge
import program
from checks import expect, expect_equal
from test_fixtures import cases

CASES = ("s2_swiglu_t1", "s3_fusedadam_plain_state", "s4_expert_axis_dropped")


def other_checkpoint(case, scratch, as_safetensors):
    """The same names and shapes with other values; the two forms hold the same."""
    state = {fqn: torch.full_like(tensor, 3) + torch.arange(tensor.numel()).reshape(
        tensor.shape).to(tensor.dtype) for fqn, tensor in case.truth().items()}
    path = scratch / f"{case.directory.name}_{'st' if as_safetensors else 'dcp'}"
    if as_safetensors:
        path.mkdir(parents=True)
        save_file(state, path / "model.safetensors")
    else:
        dcp.save(state, checkpoint_id=str(path), no_dist=True)
    return path, state


def wanted_inside(entry, truth, other):
    """What must be in the lost boxes, as the certificate says it was filled."""
    if entry["fill"] == "zero":
        return None
    return (other if entry["fill"] == "from" else truth)[entry["fill_from"]]


def must_hold(case, out, certificate, other_state):
    loaded = judge.load_dcp(out, case.spec, set(case.truth()))
    truth = case.truth()
    for fqn, entry in certificate["tensors"].items():
        if fqn not in truth:
            continue
        inside = judge.inside(entry["lost_boxes"], truth[fqn].shape)
        got = loaded[fqn]
        expect(judge.same_bits(got[~inside], truth[fqn][~inside]), f"{fqn} outside the boxes")
        if not entry["lost"]:
            expect("fill" not in entry, f"{fqn} is filled and lost nothing")
            continue
        wanted = wanted_inside(entry, truth, other_state)
        wanted = torch.zeros_like(got) if wanted is None else wanted.to(got.dtype)
        expect(judge.same_bits(got[inside], wanted[inside]), f"{fqn} inside, {entry['fill']}: "
               f"{got[inside].flatten()[:4]} instead of {wanted[inside].flatten()[:4]}")


def must_tell(case, fill, out, certificate, arguments):
    """lost.json, the certificate and both reports name the same fill."""
    lost = json.loads((out / "lost.json").read_text())
    kinds = set()
    for fqn, entry in lost["tensors"].items():
        for key in ("fill", "fill_from", "fill_checkpoint"):
            expect_equal(entry.get(key), certificate["tensors"][fqn].get(key), f"{key} of {fqn}")
        kinds.add(entry["fill"])
    expect(kinds <= {"zero", fill.split(":")[0]}, f"fills {kinds} for --fill {fill}")
    for ending in ("md", "html"):
        page = out.with_suffix("." + ending)
        program.shardwright("report", case.checkpoint, *arguments, "--out", page).must_exit(1)
        text = page.read_text()
        words = {"zero": "zeros", "cast": "the cast of", "from": str(fill[5:])}
        for kind in kinds:
            expect(words[kind] in text, f"{page.name} does not say \"{words[kind]}\"")


def filled(checks, case, fill, other_state, expected, scratch):
    label = fill if not fill.startswith("from:") else "from:" + pathlib.Path(fill[5:]).name
    arguments = ("--spec", case.spec_path, "--fill", fill)
    out = scratch / f"{case.directory.name}_{label.replace(':', '_')}"
    with checks.that(f"{case.name} --fill {label}: torch reads what was chosen, and the truth"):
        answer = program.repair(case.checkpoint, *arguments, "--accept-loss", "--out", out)
        certificate = json.loads(pathlib.Path(answer["certificate"]).read_text())
        must_hold(case, out, certificate, other_state)
        told = {entry["fill"] for entry in certificate["tensors"].values() if entry["lost"]}
        expect_equal(told, expected, "fills")
        program.must_be_proved(out, "--against", case.checkpoint)
    with checks.that(f"{case.name} --fill {label}: lost.json, certificate and reports name it"):
        must_tell(case, fill, out, certificate, arguments)
    with checks.that(f"{case.name} --fill {label}: a lossy repair in place is refused"):
        before = judge.tree_hash(case.checkpoint)
        refused = program.shardwright("repair", case.checkpoint, *arguments, "--in-place", "--yes")
        refused.must_exit(2, 3)
        expect("lost" in refused.stderr and "new directory" in refused.stderr, refused.stderr)
        expect_equal(judge.tree_hash(case.checkpoint), before, "hashes")


def run(checks, other, scratch):
    for case in cases("s"):
        if case.directory.name not in CASES or case.directory.parent.name != "torch-2.14":
            continue
        casts = {"cast", "zero"} if case.directory.name.startswith("s3") else {"zero"}
        filled(checks, case, "zero", None, {"zero"}, scratch)
        filled(checks, case, "cast", None, casts, scratch)
        for as_safetensors in (False, True):
            path, state = other_checkpoint(case, scratch, as_safetensors)
            filled(checks, case, f"from:{path}", state, {"from"}, scratch)
        with checks.that(f"{case.name}: a fill that is none, or is not there, is said to be"):
            spec = ("--spec", case.spec_path)
            for wrong, code in (("bogus", 3), ("from:", 3), ("", 0), (f"from:{scratch}/no", 4)):
                answer = program.shardwright("plan", case.checkpoint, *spec, "--fill", wrong)
                answer.must_exit(code)
                expect(code == 0 or answer.stderr.strip(), "says nothing")
                expect("ckpt/" + wrong[5:] not in answer.stderr, answer.stderr)

"""Random layouts with one of the reported failures, made the way the reports say it happens.

A layout's `expected` goes into case.json: the rule that must come first, and where elements are
lost, how many of each tensor. What survives is decided by torch's deduplication, so counts that
depend on it are left to the judge (losses.py reads the writers from the metadata).
"""

import math

import torch

from fake_ranks import Piece, box_of, cut, dtensor, torch_chunk
from layouts import Entry, Layout, Values, with_states


def moved_axis(random):
    """S1: the local shard was transposed, its placements were not."""
    values = Values(random)
    k, experts_axis = random.choice((2, 3, 4)), random.choice((1, 2, 2, 4))
    extra = random.choice(({}, {}, {"pp": 2}, {"dp_replicate": 2}))
    mesh = {**extra, "ep_shard": k, "ep": experts_axis}
    world = math.prod(mesh.values())
    count = experts_axis * random.randint(1, 3)
    hidden, ffn = random.sample([k * n for n in range(2, 7)], 2)
    dense = {"dp_shard_cp": world}
    entries = [Entry("model.embed_tokens.weight", values.weight((19, hidden)), dense, ["Shard(0)"]),
               Entry("model.norm.weight", values.weight((hidden,)), dense, ["Shard(0)"])]
    infix = random.choice(("moe.", "moe.experts.", "mlp.experts."))
    moved = []
    for layer in range(random.randint(1, 3)):
        prefix = f"model.layers.{layer}."
        entries.append(Entry(prefix + "moe.gate.weight", values.weight((count, hidden)), dense,
                             ["Shard(0)"]))
        for name, shape in (("gate_proj", (count, ffn, hidden)), ("up_proj", (count, ffn, hidden)),
                            ("down_proj", (count, hidden, ffn))):
            entry = Entry(f"{prefix}{infix}{name}.weight", values.weight(shape), mesh,
                          ["Replicate"] * len(extra) + ["Shard(2)", "Shard(0)"], "expert")
            entry.saved = placed_wrongly(
                entry, ["Replicate"] * len(extra) + ["Shard(1)", "Shard(0)"],
                (shape[0], shape[1] * k, shape[2] // k))
            entries.append(entry)
            moved.append(entry.fqn)
    return Layout("s1", world, mesh, entries, expected={
        "rules": ["placement-axis-moved"], "factor": k, "axes": [1, 2], "subjects": moved})


def placed_wrongly(entry, placements, shape):
    """The right local bytes under other placements and another global shape."""
    def saved(rank):
        offsets, sizes = box_of(entry.truth.shape, entry.mesh, entry.placements,
                                rank.coordinate(entry.mesh))
        return dtensor(cut(entry.truth, offsets, sizes), rank.device_mesh(entry.mesh), placements,
                       shape)
    return saved


def local_as_global(random):
    """S3: optimizer states that are each rank's plain local tensor."""
    values = Values(random)
    mesh = {"dp": random.choice((2, 3, 4, 6, 8))}
    style = random.choice(("master", "moments"))
    entries = []
    for layer in range(random.randint(2, 4)):
        rows = mesh["dp"] * random.randint(1, 5) + random.choice((0, 0, 1))
        for name, shape in (("weight", (rows, random.randint(1, 6))), ("bias", (rows,))):
            parameter, *states = with_states(values, Entry(
                f"model.layers.{layer}.{name}", values.weight(shape), mesh, ["Shard(0)"]), style)
            for state in states:
                state.saved = plain_local(state)
            entries += [parameter] + states
    return Layout("s3", mesh["dp"], mesh, entries, {"optimizer.param_groups": [{"step": 17}]},
                  expected={"rules": ["local-saved-as-global"]})


def plain_local(entry):
    def saved(rank):
        return cut(entry.truth, *box_of(entry.truth.shape, entry.mesh, entry.placements,
                                        rank.coordinate(entry.mesh)))
    return saved


def without_axis(entry, gone):
    """The local bytes as a DTensor on a mesh that lacks one axis: its ranks all claim one box."""
    left = [(name, p) for name, p in zip(entry.mesh, entry.placements) if name != gone]
    placements = [p.replace("StridedShard", "Shard").split(",")[0].rstrip(")") + ")"
                  if p.startswith("StridedShard") else p for _, p in left]

    def saved(rank):
        offsets, sizes = box_of(entry.truth.shape, entry.mesh, entry.placements,
                                rank.coordinate(entry.mesh))
        shape = list(entry.truth.shape)
        for name, placement in zip(entry.mesh, entry.placements):
            if name == gone and placement.startswith("Shard"):
                shape[int(placement[6:-1])] //= entry.mesh[gone]
        return dtensor(cut(entry.truth, offsets, sizes),
                       rank.submesh(entry.mesh, [name for name, _ in left]), placements, shape)
    return saved


def axis_dropped_experts(random):
    """S4: the expert axis is missing, so the ranks of one expert group publish one box."""
    values = Values(random)
    mesh = {"edp": random.choice((1, 2, 4)), "ep": random.choice((2, 2, 4))}
    world = math.prod(mesh.values())
    rows = world * random.randint(1, 3)
    hidden = random.randint(2, 6)
    entries = [Entry("model.norm.weight", values.weight((hidden * 2,)), {"dp": world},
                     ["Shard(0)"]),
               Entry("model.layers.3.mlp.gate.weight", values.weight((mesh["ep"] * 3, hidden)),
                     {"dp": world}, ["Shard(0)"])]
    for expert in range(random.randint(2, 4)):
        entry = Entry(f"model.layers.3.mlp.experts.fc1.weight{expert}",
                      values.weight((rows, hidden)), mesh, ["Shard(0)", "Shard(0)"], "expert")
        entry.saved = rows_without_expert_axis(entry)
        entries.append(entry)
    return Layout("s4", world, mesh, entries, expected={
        "rules": ["axis-dropped"], "lost_fraction": 1 - 1 / mesh["ep"]})


def rows_without_expert_axis(entry):
    """Local rows of (edp, ep) are published as block edp of a tensor of only edp blocks."""
    def saved(rank):
        offsets, sizes = box_of(entry.truth.shape, entry.mesh, entry.placements,
                                rank.coordinate(entry.mesh))
        shape = (entry.truth.shape[0] // entry.mesh["ep"], entry.truth.shape[1])
        return dtensor(cut(entry.truth, offsets, sizes), rank.submesh(entry.mesh, ["edp"]),
                       ["Shard(0)"], shape)
    return saved


def axis_dropped_tensor_parallel(random):
    """S5-E1: tensor parallelism by hand, so that FSDP's mesh is all that the metadata knows."""
    values = Values(random)
    mesh = {"dp": random.choice((2, 2, 3, 4)), "tp": random.choice((2, 2, 4))}
    world, tp = math.prod(mesh.values()), mesh["tp"]
    hidden = mesh["dp"] * random.randint(1, 3)
    entries = []
    for layer in range(random.randint(2, 4)):
        prefix = f"model.layers.{layer}."
        ffn = world * random.randint(1, 2)
        for name, shape, placements, role in (
                ("fc1.weight", (ffn, hidden), [f"StridedShard(0,sf={tp})", "Shard(0)"], "column"),
                ("fc2.weight", (hidden, ffn), ["Shard(0)", "Shard(1)"], "row"),
                ("norm.weight", (hidden,), ["Shard(0)", "Replicate"], "norm")):
            entry = Entry(prefix + name, values.weight(shape), mesh, placements, role)
            if role != "norm":
                entry.saved = without_axis(entry, "tp")
            entries.append(entry)
    return Layout("s5_e1", world, mesh, entries, expected={
        "rules": ["axis-dropped"], "lost_fraction": 1 - 1 / tp})


def strided_as_plain(random):
    """S5-E2: strided shards under plain placements: nothing lost, rows in the wrong order."""
    values = Values(random)
    mesh = {"dp": random.choice((2, 3, 4)), "tp": random.choice((2, 3, 4))}
    world = math.prod(mesh.values())
    entries = []
    for layer in range(random.randint(1, 3)):
        entry = Entry(f"model.layers.{layer}.fc1.weight",
                      values.weight((world * random.randint(1, 3), random.randint(1, 5))), mesh,
                      [f"StridedShard(0,sf={mesh['tp']})", "Shard(0)"], "column")
        entry.saved = placed_wrongly(entry, ["Shard(0)", "Shard(0)"], entry.truth.shape)
        entries += [entry, Entry(f"model.layers.{layer}.fc2.weight",
                                 values.weight((mesh["dp"] * 2, mesh["tp"] * 3)), mesh,
                                 ["Shard(0)", "Shard(1)"], "row")]
    return Layout("s5_e2", world, mesh, entries, expected={"rules": ["strided-recorded-plain"]})


def fused_per_rank(random):
    """S5-E5: every tensor-parallel rank keeps [gate; up] of its own, so the rows interleave."""
    values = Values(random)
    mesh = {"dp": random.choice((1, 2, 2, 4)), "tp": random.choice((2, 2, 4))}
    world, tp = math.prod(mesh.values()), mesh["tp"]
    entries = []
    for layer in range(random.randint(1, 3)):
        block = mesh["dp"] * random.randint(1, 3)
        entry = Entry(f"model.layers.{layer}.mlp.fc1.weight",
                      values.weight((2 * tp * block, random.randint(2, 5))), mesh,
                      [f"StridedShard(0,sf={tp})", "Shard(0)"], "glu")
        stored = Entry(entry.fqn, per_rank_order(entry.truth, tp), mesh, entry.placements)
        entry.saved = stored.value_at
        entries.append(entry)
    return Layout("s5_e5", world, mesh, entries, expected={"rules": ["fused-per-rank"]})


def per_rank_order(canonical, tp):
    """[g0 g1 .. u0 u1 ..] as [g0 u0 g1 u1 ..]."""
    block = canonical.shape[0] // (2 * tp)
    halves = canonical.reshape(2, tp, block, -1)
    return halves.transpose(0, 1).reshape(canonical.shape).contiguous()


def glu_split_local(random):
    """S2: the SwiGLU halves of a local state were cut as if it were the whole item.

    Every FSDP rank owns rows/ranks of each TP item; the first one's claim is what survives: its
    first quarter-of-its-rows as W and the next as V, and all of it belongs to W.
    """
    values = Values(random)
    fsdp, tp = random.choice(((2, 1), (4, 1), (1, 2), (2, 2), (3, 1), (3, 2)))
    mesh = {"fsdp": fsdp, "tp": tp}
    ratio = fsdp * tp
    part, hidden = random.randint(1, 3), random.randint(1, 4)
    half = part * tp * ratio  # rows of W: every TP item has half / tp of them
    strided = [f"StridedShard(0,sf={tp})", "Shard(0)"] if tp > 1 else ["Shard(0)", "Replicate"]
    entries, lost = [], {}
    for layer in range(random.randint(1, 2)):
        base = f"decoder.layers.{layer}.mlp.linear_fc1.weight_"
        halves = {letter: values.moments((half, hidden)) for letter in "wv"}
        for letter in "wv":
            entries.append(Entry("model.module." + base + letter,
                                 values.weight((half, hidden)), mesh, strided, "swiglu"))
        for number, state in enumerate(("exp_avg", "exp_avg_sq")):
            source = halves["w"][number]
            for second, letter in enumerate("wv"):
                entry = Entry(f"optimizer.state.module.module.module.{base}{letter}.{state}",
                              halves[letter][number], mesh, strided, "swiglu")
                entry.saved = first_owner_rows(source, tp, part, second, mesh)
                entries.append(entry)
                kept = 2 * part * tp * hidden if letter == "w" else 0
                lost[entry.fqn] = half * hidden - kept
    return Layout("s2", fsdp * tp, mesh, entries, expected={
        "rules": ["glu-split-local"], "rho": ratio, "lost": lost})


def first_owner_rows(source, tp, part, second, mesh):
    """Rows [second*part, +part) of W's share of each TP item, published at row t*part."""
    def saved(rank):
        at = rank.coordinate(mesh)
        if at["fsdp"] != 0:
            return None
        start = at["tp"] * (source.shape[0] // tp) + second * part
        return Piece(source[start:start + part].clone(), (at["tp"] * part, 0),
                     (tp * part, source.shape[1]))
    return saved


KINDS = {"s1": moved_axis, "s2": glu_split_local, "s3": local_as_global,
         "s4": axis_dropped_experts, "s5_e1": axis_dropped_tensor_parallel,
         "s5_e2": strided_as_plain, "s5_e5": fused_per_rank}

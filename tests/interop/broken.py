"""Random layouts with one of the reported failures, made the way the reports say it happens.

A layout's `expected` goes into case.json: the rule that must come first, and where elements are
lost, how many of each tensor. What survives is decided by torch's deduplication, so counts that
depend on it are left to the judge (losses.py reads the writers from the metadata).
"""

import math

import torch

from fake_ranks import Piece, Rank, box_of, cut, dtensor, torch_chunk
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
    copies = random.choice(({}, {}, {"dp_replicate": 2}))
    tp, parts, mesh = mesh["tp"], math.prod(mesh.values()), {**copies, **mesh}
    world, before = math.prod(mesh.values()), ["Replicate"] * len(copies)
    hidden = mesh["dp"] * random.randint(1, 3)
    entries = []
    for layer in range(random.randint(2, 4)):
        prefix = f"model.layers.{layer}."
        ffn = parts * random.randint(1, 2)
        for name, shape, placements, role in (
                ("fc1.weight", (ffn, hidden), [f"StridedShard(0,sf={tp})", "Shard(0)"], "column"),
                ("fc2.weight", (hidden, ffn), ["Shard(0)", "Shard(1)"], "row"),
                ("norm.weight", (hidden,), ["Shard(0)", "Replicate"], "norm")):
            entry = Entry(prefix + name, values.weight(shape), mesh, before + placements, role)
            if role != "norm":
                entry.saved = without_axis(entry, "tp")
            entries.append(entry)
    return Layout("s5_e1", world, mesh, entries, expected={
        "rules": ["axis-dropped"], "lost_fraction": 1 - 1 / tp})


def axis_and_strides_dropped(random):
    """S5 E1 on three axes: training cuts tp, cp, then dp, and the saver knew dp and cp only,
    and them as plain shards from left to right. Both mistakes at once, and the writers tell."""
    values = Values(random)
    mesh = {"dp": random.choice((2, 3)), "cp": 2, "tp": random.choice((2, 3))}
    world = math.prod(mesh.values())
    strided = [f"StridedShard(0,sf={mesh['cp'] * mesh['tp']})", f"StridedShard(0,sf={mesh['tp']})",
               "Shard(0)"]
    entries = []
    for layer in range(random.randint(2, 3)):
        prefix = f"model.layers.{layer}."
        rows, columns = world * random.randint(1, 2), random.randint(2, 5)
        entry = Entry(prefix + "fc1.weight", values.weight((rows, columns)), mesh, strided,
                      "column")
        entry.saved = without_axis(entry, "tp")
        entries += [entry, Entry(prefix + "norm.weight", values.weight((world,)), mesh,
                                 ["Shard(0)", "Shard(0)", "Replicate"], "norm")]
    return Layout("s5_e1_plain", world, mesh, entries, expected={
        "rules": ["axis-dropped"], "lost_fraction": 1 - 1 / mesh["tp"]})


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


def experts_with_masters(random):
    """S4 where the order of rows is in no doubt: every rank one expert, or FSDP on another dim.

    The router and the second matrices are there, and every rank's own masters next to it, so the
    checkpoint says all of it by itself.
    """
    values = Values(random)
    ep, edp = random.choice((2, 3, 4)), random.choice((1, 1, 2))
    mesh = {"edp": edp, "ep": ep}
    keys, hidden, inner = random.randint(1, 3), 2 * random.randint(2, 3), 2 * random.randint(1, 3)
    twice = random.choice((1, 2))
    data = "Shard(1)" if edp > 1 else "Replicate"
    entries = [Entry("model.layers.3.mlp.gate.weight", values.weight((keys * ep, hidden)),
                     {"dp": ep * edp}, ["Shard(0)"])]
    if random.random() < 0.5:
        entries.insert(0, Entry("model.tiny", torch.tensor(2.5), mesh, ["Replicate"] * 2))
    stacked = []
    for key in range(keys):
        for name, rows, columns in (("fc1", twice * inner, hidden), ("fc2", hidden, inner)):
            # What bfloat16 holds of a master in more bits.
            master = values.weight((ep * rows, columns))
            entry = Entry(f"model.layers.3.mlp.experts.{name}.weight{key}",
                          master.to(torch.bfloat16), mesh, [data, "Shard(0)"], "expert")
            entry.saved = without_axis(entry, "ep")
            entries.append(entry)
            stacked.append((entry, master))
    pickled = random.random() < 0.5
    return Layout("s4_masters", ep * edp, mesh, entries,
                  beside=lambda rank: {f"optimizer_rank_{rank.number}.pt":
                                       masters_of(rank, stacked, pickled)},
                  expected={"rules": ["axis-dropped"], "edp": edp})


def masters_of(rank, stacked, pickled):
    """As FP32AdamW keeps them: lists in the order of the parameters.

    pickled: as DTensors on the mesh of FSDP's own group, which name the ranks of it.
    """
    parts = [cut(master, *box_of(entry.truth.shape, entry.mesh, entry.placements,
                                 rank.coordinate(entry.mesh))) for entry, master in stacked]
    if pickled and stacked[0][0].mesh["edp"] > 1:
        group = rank.submesh(stacked[0][0].mesh, ["edp"])
        parts = [dtensor(part, group, ["Shard(1)"], (part.shape[0], entry.truth.shape[1]))
                 for part, (entry, _) in zip(parts, stacked)]
    return {"master_params": parts, "exp_avgs": [torch.zeros_like(part) for part in parts],
            "steps": [17] * len(parts)}


def first_commit(random):
    """S4 b: chunks of the checkpoint's mesh inside FSDP's shape, so EDP ranks pass for replicas."""
    values = Values(random)
    ep = random.choice((2, 4))
    edp = ep * random.choice((1, 2)) if ep == 2 else ep
    mesh = {"edp": edp, "ep": ep}
    rows, hidden = edp * ep * random.randint(1, 2), random.randint(2, 5)
    entries = [Entry("model.norm.weight", values.weight((2 * hidden,)), {"dp": edp * ep},
                     ["Shard(0)"])]
    for expert in range(random.randint(1, 3)):
        entry = Entry(f"model.layers.3.mlp.experts.fc1.weight{expert}",
                      values.weight((rows, hidden)), mesh, ["Shard(0)", "Shard(0)"], "expert")
        entry.saved = chunk_of_other_size(entry, rows // ep)
        entries.append(entry)
    return Layout("s4_b", edp * ep, mesh, entries,
                  expected={"rules": ["axis-dropped|payload-shape"]})


def chunk_of_other_size(entry, size):
    def saved(rank):
        at = rank.coordinate(entry.mesh)
        local = cut(entry.truth, *box_of(entry.truth.shape, entry.mesh, entry.placements, at))
        step = size // entry.mesh["ep"]
        return Piece(local, (at["ep"] * step, 0), (size, entry.truth.shape[1]),
                     (step, entry.truth.shape[1]))
    return saved


def torn_by_torch(random):
    """The same by a torch of that generation, 2.5 to 2.7, which refuses its own plan when asked."""
    return torn_offsets(random, by_torch=True)


def whatever_torch_says(entry):
    def saved(rank):
        at = rank.coordinate(entry.mesh)
        local = cut(entry.truth, *box_of(entry.truth.shape, entry.mesh, entry.placements, at))
        return dtensor(local, rank.device_mesh(entry.mesh), entry.placements, entry.truth.shape)
    return saved


def torn_offsets(random, by_torch=False):
    """S5-E3, torch 2.5's offsets: the local length times the index, where lengths differ."""
    values = Values(random)
    while True:
        mesh = {"dp": random.choice((2, 3, 4)), "tp": random.choice((2, 3))}
        rows = random.randint(math.prod(mesh.values()) + 1, 30)
        entry = Entry("model.layers.0.fc1.weight", values.weight((rows, random.randint(1, 4))),
                      mesh, [f"StridedShard(0,sf={mesh['tp']})", "Shard(0)"], "column")
        ranks = [Rank(number, math.prod(mesh.values())) for number in
                 range(math.prod(mesh.values()))]
        held = [box_of(entry.truth.shape, mesh, entry.placements, rank.coordinate(mesh))
                for rank in ranks]
        told = [offset_by_index(rows, mesh, rank.coordinate(mesh)) for rank in ranks]
        # A rank with nothing, or one that claims nothing, makes another picture.
        if any(0 in sizes for _, sizes in held) or any(length == 0 for _, length in told):
            continue
        if any(offset != box[0][0] for (offset, _), box in zip(told, held)):
            break
    entry.saved = whatever_torch_says(entry) if by_torch else torn_piece(entry)
    kept = Entry("model.layers.0.fc2.weight", values.weight((mesh["dp"] * 2, mesh["tp"] * 3)),
                 mesh, ["Shard(0)", "Shard(1)"], "row")
    return Layout("s5_e3", math.prod(mesh.values()), mesh, [entry, kept], unchecked=True,
                  expected={"rules": ["uneven-strided"], "mislabelled": [entry.fqn]})


def offset_by_index(rows, mesh, at):
    """The sizes of plain shards from left to right, and the last of them times the true index."""
    _, length = torch_chunk(rows, mesh["dp"], at["dp"])
    _, length = torch_chunk(length, mesh["tp"], at["tp"])
    return length * (at["dp"] + at["tp"] * mesh["dp"]), length


def torn_piece(entry):
    def saved(rank):
        at = rank.coordinate(entry.mesh)
        local = cut(entry.truth, *box_of(entry.truth.shape, entry.mesh, entry.placements, at))
        offset, length = offset_by_index(entry.truth.shape[0], entry.mesh, at)
        return Piece(local, (offset, 0), tuple(entry.truth.shape),
                     (length, entry.truth.shape[1]))
    return saved


def order_of_another_mesh(random):
    """F4.3: whole, stacked by the mesh that saved it, which is not the one that loads."""
    values = Values(random)
    saved_on, asked = random.choice((({"edp": 4, "ep": 2}, {"edp": 2, "ep": 2}),
                                     ({"edp": 4, "ep": 2}, {"edp": 2, "ep": 4}),
                                     ({"edp": 2, "ep": 4}, {"edp": 4, "ep": 2}),
                                     ({"edp": 6, "ep": 2}, {"edp": 3, "ep": 2})))
    in_one_key = saved_on["ep"] != asked["ep"]
    world, rows = math.prod(saved_on.values()), 24 * random.randint(1, 2)
    rows = rows // world * world
    entries = [Entry("model.norm.weight", values.weight((2 * world,)), {"dp": world},
                     ["Shard(0)"])]
    for expert in range(1 if in_one_key else random.randint(1, 3)):
        name = "model.layers.3.mlp.experts.fc1.weight" + ("" if in_one_key else str(expert))
        canonical = values.weight((rows, random.randint(1, 4)))
        entry = Entry(name, stacked_on(canonical, asked), asked, ["Shard(0)", "Shard(0)"],
                      "expert")
        entry.saved = Entry(name, stacked_on(canonical, saved_on), saved_on,
                            ["Shard(0)", "Shard(0)"]).value_at
        entries.append(entry)
    return Layout("s4_order", world, saved_on, entries, expected={
        "rules": ["topology-locked"],
        "given": ",".join(f"{name}={size}" for name, size in saved_on.items())})


def stacked_on(canonical, mesh):
    """Rows of expert ranks side by side, as EDP-major blocks: block edp * EP + ep."""
    parts = canonical.reshape(mesh["ep"], mesh["edp"], -1, canonical.shape[1])
    return parts.transpose(0, 1).reshape(canonical.shape).contiguous()


def replicas_beside_siblings(random):
    """0.7.12: gate halves and output layer as tensor-parallel replicas, their siblings intact."""
    values = Values(random)
    mesh = {"fsdp": random.choice((1, 1, 2)), "tp": random.choice((2, 2, 4))}
    world, tp = math.prod(mesh.values()), mesh["tp"]
    hidden, ffn, words = world * random.randint(1, 2), world * random.randint(2, 4), 4 * world
    column = [f"StridedShard(0,sf={tp})" if mesh["fsdp"] > 1 else "Replicate", "Shard(0)"]
    row = ["Shard(0)" if mesh["fsdp"] > 1 else "Replicate", "Shard(1)"]
    entries = [Entry("model.module.embedding.word_embeddings.weight",
                     values.weight((words, hidden)), mesh, column, "column")]
    for layer in range(random.randint(1, 2)):
        prefix = f"model.module.decoder.layers.{layer}.mlp."
        for letter in "wv":
            entry = Entry(f"{prefix}linear_fc1.weight_{letter}", values.weight((ffn, hidden)),
                          mesh, column, "swiglu")
            entry.saved = without_axis(entry, "tp")
            entries.append(entry)
        entries.append(Entry(prefix + "linear_fc2.weight", values.weight((hidden, ffn)), mesh,
                             row, "row"))
    head = Entry("model.module.output_layer.weight", values.weight((words, hidden)), mesh, column,
                 "column")
    head.saved = without_axis(head, "tp")
    return Layout("s2_replicas", world, mesh, entries + [head], expected={
        "rules": ["axis-dropped"], "lost_fraction": 1 - 1 / tp,
        "given": ",".join(f"{name}={size}" for name, size in mesh.items())})


KINDS = {"s4_masters": experts_with_masters, "s4_b": first_commit, "s4_order": order_of_another_mesh,
         "s5_e3": torn_offsets,
         "s5_e3_by_torch": torn_by_torch, "s2_replicas": replicas_beside_siblings,
         "s1": moved_axis, "s2": glu_split_local, "s3": local_as_global,
         "s4": axis_dropped_experts, "s5_e1": axis_dropped_tensor_parallel,
         "s5_e1_plain": axis_and_strides_dropped,
         "s5_e2": strided_as_plain, "s5_e5": fused_per_rank}

"""Random healthy layouts, each the habit of some framework, as entries that know their truth."""

import dataclasses
import math
from typing import Any, Callable, Optional

import torch

from fake_ranks import Piece, box_of, cut, dtensor, torch_box


EXACT_OFFSETS = tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 15)


@dataclasses.dataclass
class Entry:
    """One tensor: what training holds, where the spec says it is, and how a rank hands it over.

    saved(rank) gives what is in that rank's state dict, None for nothing; without it the
    tensor is saved as the spec says.
    """
    fqn: str
    truth: torch.Tensor
    mesh: dict
    placements: list
    role: Optional[str] = None
    saved: Optional[Callable[[Any], Any]] = None

    def spec(self):
        entry = {"shape": list(self.truth.shape), "dtype": str(self.truth.dtype)[6:],
                 "mesh": self.mesh, "placements": self.placements}
        return {**entry, "role": self.role} if self.role else entry

    def value_at(self, rank):
        if self.saved:
            return self.saved(rank)
        if not self.mesh:
            return self.truth.clone()
        mesh = rank.device_mesh(self.mesh)
        offsets, sizes = box_of(self.truth.shape, self.mesh, self.placements,
                                rank.coordinate(self.mesh))
        by_torch = torch_box(self.truth.shape, mesh, self.placements)
        # Where a shard with nothing in it lies is torch's to say.
        if by_torch[1] != sizes or (0 not in sizes and by_torch[0] != offsets):
            raise AssertionError(f"{self.fqn} {tuple(self.truth.shape)} {self.mesh} "
                                 f"{self.placements}: torch cuts {by_torch}, not {offsets, sizes}")
        return dtensor(cut(self.truth, offsets, sizes), mesh, self.placements, self.truth.shape)


@dataclasses.dataclass
class Layout:
    kind: str
    world: int
    mesh: dict
    entries: list
    plain: dict = dataclasses.field(default_factory=dict)  # what is no tensor: BYTES
    expected: dict = dataclasses.field(default_factory=dict)
    beside: Optional[Callable[[Any], dict]] = None  # files of a rank by torch.save: {name: content}
    unchecked: bool = False  # as where a framework replaces torch's own look at the plan

    def state_dict_at(self, rank):
        values = {entry.fqn: entry.value_at(rank) for entry in self.entries}
        return {**{k: v for k, v in values.items() if v is not None}, **self.plain}


class Values:
    """Distinct values, and optimizer states that an optimizer could really have."""

    def __init__(self, random):
        self.random = random
        self.generator = torch.Generator().manual_seed(random.getrandbits(31))

    def weight(self, shape, dtype=torch.float32):
        if not dtype.is_floating_point:
            return torch.randint(0, 100, tuple(shape), generator=self.generator).to(dtype)
        return torch.randn(tuple(shape), generator=self.generator).to(dtype)

    def moments(self, shape):
        first = torch.randn(tuple(shape), generator=self.generator) * 1e-2
        slack = torch.rand(tuple(shape), generator=self.generator)
        return first, first.square() * (1 + slack)


def pick_world(random, low=2, high=64):
    sizes = [n for n in (2, 3, 4, 6, 8, 8, 12, 16, 24, 32, 48, 64) if low <= n <= high]
    return random.choices(sizes, weights=[1 / n for n in sizes])[0]


def pick_mesh(random, names, high=64):
    """Small axes whose product stays within the rank limit."""
    while True:
        mesh = {name: random.choice((1, 2, 2, 2, 3, 4, 4, 8)) for name in names}
        if 2 <= math.prod(mesh.values()) <= high and random.random() < 6 / math.prod(
                mesh.values()) + 0.1:
            return mesh


def with_states(values, entry, style):
    """The optimizer's states of a parameter, placed like it."""
    first, second = values.moments(entry.truth.shape)
    fqn = entry.fqn.removeprefix("model.")
    like = dict(mesh=entry.mesh, placements=entry.placements, role=entry.role)
    states = [Entry(f"optimizer.state.{fqn}.exp_avg", first, **like),
              Entry(f"optimizer.state.{fqn}.exp_avg_sq", second, **like)]
    if style == "tensor step":
        states.append(Entry(f"optimizer.state.{fqn}.step", torch.tensor(17.0), {}, []))
    if style == "master":
        states.append(Entry(f"optimizer.state.{fqn}.master_param",
                            entry.truth.to(torch.float32), **like))
    return [entry] + states


def odd_tensors(mesh, random):
    """What every planner has to survive: 0-d, one element, no element, fewer rows than ranks."""
    axes = len(mesh)
    shard = ["Replicate"] * (axes - 1) + ["Shard(0)"]
    return [Entry("model.scale", torch.tensor(random.random()), mesh, ["Replicate"] * axes),
            Entry("model.one", torch.tensor([random.random()]), mesh, shard),
            Entry("model.nothing", torch.empty(0, 4), mesh, ["Replicate"] * axes),
            Entry("model.counter", torch.tensor(random.randrange(1 << 40)), {}, []),
            Entry("model.flags", torch.tensor([True, False, True]), mesh, shard)]


def fsdp(random):
    values = Values(random)
    mesh = {"dp": pick_world(random)}
    style = random.choice(("tensor step", "master", "bytes step"))
    dtype = random.choice((torch.float32, torch.bfloat16))
    entries = odd_tensors(mesh, random)
    for layer in range(random.randint(1, 3)):
        rows, columns = random.randint(1, 40), random.randint(1, 12)
        for name, shape in (("weight", (rows, columns)), ("bias", (rows,))):
            entries += with_states(values, Entry(f"model.layers.{layer}.{name}",
                                                 values.weight(shape, dtype), mesh,
                                                 ["Shard(0)"]), style)
    return Layout("fsdp", mesh["dp"], mesh, entries, bytes_state(style))


def bytes_state(style):
    groups = [{"lr": 1e-3, "betas": (0.9, 0.95), "step": 17}]
    plain = {"lr_scheduler": {"last_epoch": 17}, "train_state.step": 17}
    return {**plain, "optimizer.param_groups": groups} if style != "tensor step" else plain


def hsdp(random):
    values = Values(random)
    mesh = pick_mesh(random, ("dp_replicate", "dp_shard"))
    entries = odd_tensors(mesh, random)
    for layer in range(random.randint(1, 3)):
        shape = (random.randint(1, 30), random.randint(1, 8))
        entries += with_states(values, Entry(f"model.blocks.{layer}.linear.weight",
                                             values.weight(shape), mesh,
                                             ["Replicate", "Shard(0)"]), "tensor step")
    return Layout("hsdp", math.prod(mesh.values()), mesh, entries)


def fsdp_tp(random):
    values = Values(random)
    names = random.choice((("dp", "tp"), ("dp_replicate", "dp_shard", "tp")))
    mesh = pick_mesh(random, names)
    before, data, tensor = ["Replicate"] * (len(names) - 2), mesh[names[-2]], mesh["tp"]
    column = before + ([f"StridedShard(0,sf={tensor})", "Shard(0)"] if tensor > 1
                       else ["Shard(0)", "Shard(0)"])
    row, norm = before + ["Shard(0)", "Shard(1)"], before + ["Shard(0)", "Replicate"]
    hidden = random.randint(2, 12)
    entries = []
    for layer in range(random.randint(1, 3)):
        # Torch's offsets of uneven strided shards were wrong twice (P21's subject); the newest
        # are right at least for two data-parallel ranks.
        uneven = data == 2 and EXACT_OFFSETS and random.random() < 0.5
        ffn = random.randint(1, 24) if uneven else data * tensor * random.randint(1, 3)
        prefix = f"model.layers.{layer}."
        entries += with_states(values, Entry(prefix + "feed_forward.w1.weight",
                                             values.weight((ffn, hidden)), mesh, column,
                                             "column"), "bytes step")
        entries.append(Entry(prefix + "feed_forward.w2.weight", values.weight(
            (hidden, random.randint(tensor, 4 * tensor)), torch.bfloat16), mesh, row, "row"))
        entries.append(Entry(prefix + "norm.weight", values.weight((hidden,)), mesh, norm, "norm"))
    return Layout("fsdp_tp", math.prod(mesh.values()), mesh, entries)


def anything(random):
    """1 to 4 axes, any placement on each, any rank of tensor: the same dim cut twice included."""
    values = Values(random)
    mesh = pick_mesh(random, ("a", "b", "c", "d")[:random.randint(1, 4)])
    dtypes = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64,
              torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
    entries = []
    for number in range(random.randint(3, 8)):
        shape = [random.randint(1, 9) for _ in range(random.randint(1, 4))]
        placements = [random.choice(["Replicate"] + [f"Shard({d})" for d in range(len(shape))])
                      for _ in mesh]
        entries.append(Entry(f"tensor.{number}", values.weight(shape, random.choice(dtypes)), mesh,
                             placements))
    return Layout("anything", math.prod(mesh.values()), mesh, entries)


def experts(random):
    """Grouped experts as [E, rows, columns], sharded over experts and over their last dim."""
    values = Values(random)
    mesh = pick_mesh(random, ("ep_shard", "ep"))
    world = math.prod(mesh.values())
    count = mesh["ep"] * random.randint(1, 3)
    hidden, ffn = random.randint(3, 10), random.randint(2, 9)
    dense = {"dp_shard_cp": world}
    entries = [Entry("model.embed_tokens.weight", values.weight((19, hidden)), dense, ["Shard(0)"]),
               Entry("model.norm.weight", values.weight((hidden,)), dense, ["Shard(0)"])]
    for layer in range(random.randint(1, 2)):
        prefix = f"model.layers.{layer}.moe."
        entries.append(Entry(prefix + "gate.weight", values.weight((count, hidden)), dense,
                             ["Shard(0)"]))
        for name, shape in (("gate_proj", (count, ffn, hidden)), ("up_proj", (count, ffn, hidden)),
                            ("down_proj", (count, hidden, ffn))):
            entries.append(Entry(f"{prefix}{name}.weight", values.weight(shape), mesh,
                                 ["Shard(2)", "Shard(0)"], "expert"))
    return Layout("experts", world, mesh, entries)


def expert_rows(random):
    """One key a local expert, the ranks' experts stacked along dim 0, on a four-axis mesh."""
    values = Values(random)
    mesh = {"pp": 1, **pick_mesh(random, ("edp", "ep")), "etp": random.choice((1, 1, 2))}
    world = math.prod(mesh.values())
    rows = mesh["edp"] * mesh["ep"] * mesh["etp"] * random.randint(1, 3)
    hidden = mesh["etp"] * random.randint(1, 6)
    entries = [Entry("model.norm.weight", values.weight((hidden,)), {"dp_cp": world}, ["Shard(0)"])]
    for expert in range(random.randint(1, 3)):
        prefix = "model.layers.3.mlp.experts."
        entries.append(Entry(f"{prefix}fc1.weight{expert}", values.weight((rows, hidden)), mesh,
                             ["Replicate", "Shard(0)", "Shard(0)", "Shard(0)"], "expert"))
        entries.append(Entry(f"{prefix}fc2.weight{expert}", values.weight((rows, hidden)), mesh,
                             ["Replicate", "Shard(0)", "Shard(0)", "Shard(1)"], "expert"))
    return Layout("expert_rows", world, mesh, entries)


def flat_buckets(random):
    """Megatron-FSDP: tensors laid end to end, the bucket cut into equal parts at whole rows.

    So a tensor may be in uneven rows over a few ranks (2, 6, 6, 2 on ranks 2 to 5), on one rank
    alone, and the others have no chunk of it at all, not even an empty one.
    """
    values = Values(random)
    world = pick_world(random, 2, 16)
    mesh = {"dp_cp": world}
    hidden = random.randint(1, 5)
    shapes = [(random.randint(1, 16), hidden) for _ in range(random.randint(2, 6))]
    total = sum(rows for rows, _ in shapes)
    part = -(-total // world)
    entries, start = [], 0
    for number, shape in enumerate(shapes):
        base = f"decoder.layers.{number}.mlp.linear_fc2.weight"
        weight = Entry("model.module." + base, values.weight(shape), mesh, ["Shard(0)"])
        group = with_states(values, weight, "bytes step")
        for entry in group:
            entry.fqn = entry.fqn.replace("optimizer.state.module.",
                                          "optimizer.state.module.module.module.")
            entry.saved = bucket_piece(entry.truth, start, part)
        entries += group
        start += shape[0]
    return Layout("flat_buckets", world, mesh, entries)


def bucket_piece(truth, start, part):
    def saved(rank):
        first = max(0, rank.number * part - start)
        last = min(truth.shape[0], (rank.number + 1) * part - start)
        if last <= first:
            return None
        return Piece(truth[first:last].clone(), (first, 0), tuple(truth.shape))
    return saved


def uneven_tp(random):
    """Tensor parallelism of rows that it does not divide, last ranks with fewer or none."""
    values = Values(random)
    mesh = pick_mesh(random, ("dp_replicate", "tp"))
    entries = []
    for layer in range(random.randint(1, 3)):
        rows, hidden = random.randint(1, 4 * mesh["tp"]), random.randint(1, 6)
        for name, shape, placement in (("fc1.weight", (rows, hidden), "Shard(0)"),
                                       ("fc1.bias", (rows,), "Shard(0)"),
                                       ("fc2.weight", (hidden, rows), "Shard(1)"),
                                       ("norm.weight", (hidden,), "Replicate")):
            entries.append(Entry(f"model.layers.{layer}.mlp.{name}", values.weight(shape), mesh,
                                 ["Replicate", placement]))
    return Layout("uneven_tp", math.prod(mesh.values()), mesh, entries)


def dense_names(random):
    """Layers as Megatron, TE and Llama name them, on every mesh that people train them on."""
    values = Values(random)
    names = random.choice((("dp",), ("dp_replicate", "dp_shard"), ("dp", "tp"),
                           ("dp_replicate", "dp_shard", "tp")))
    mesh = pick_mesh(random, names, 16)
    world, tp = math.prod(mesh.values()), mesh.get("tp", 1)
    data = ["Shard(0)" if name in ("dp", "dp_shard") else "Replicate"
            for name in names if name != "tp"]
    strided = [p if p == "Replicate" or tp == 1 else f"StridedShard(0,sf={tp})" for p in data]
    tail = (lambda placement: [placement] if "tp" in mesh else [])
    column, row, norm = (strided + tail("Shard(0)"), data + tail("Shard(1)"),
                         data + tail("Replicate"))
    hidden, ffn = world * random.randint(1, 2), world * random.randint(1, 3)
    first, second = random.choice((("mlp.linear_fc1", "mlp.linear_fc2"), ("mlp.fc1", "mlp.fc2"),
                                   ("mlp.gate_proj", "mlp.down_proj")))
    twice = 1 if first.endswith("gate_proj") else random.choice((1, 2))
    entries = [Entry("model.tiny", torch.tensor(1.5), mesh, ["Replicate"] * len(mesh)),
               Entry("model.embed_tokens.weight", values.weight((2 * world, hidden)), mesh, column)]
    for layer in range(random.randint(1, 3)):
        prefix = f"model.layers.{layer}."
        for name, shape, placements in (
                (first + ".weight", (twice * ffn, hidden), column),
                (second + ".weight", (hidden, ffn), row),
                ("self_attn.q_proj.weight", (hidden, hidden), column),
                ("self_attn.o_proj.weight", (hidden, hidden), row),
                ("norm.weight", (hidden,), norm)):
            entries.append(Entry(prefix + name, values.weight(shape), mesh, placements))
    entries.append(Entry("lm_head.weight", values.weight((2 * world, hidden)), mesh, column))
    return Layout("dense_names", world, mesh, entries)


def nested_strided(random):
    """Three axes on one dim, cut from the last to the first: strided twice."""
    values = Values(random)
    mesh = {"dp": random.choice((2, 3)), "cp": 2, "tp": random.choice((2, 3))}
    world = math.prod(mesh.values())
    placements = [f"StridedShard(0,sf={mesh['cp'] * mesh['tp']})",
                  f"StridedShard(0,sf={mesh['tp']})", "Shard(0)"]
    entries = [Entry(f"model.layers.{layer}.weight", values.weight((world * random.randint(1, 3),
                                                                    random.randint(1, 4))),
                     mesh, placements) for layer in range(random.randint(1, 3))]
    return Layout("nested_strided", world, mesh, entries)


FAMILIES = (fsdp, hsdp, fsdp_tp, anything, experts, expert_rows, flat_buckets, uneven_tp,
            dense_names) + ((nested_strided,) if EXACT_OFFSETS else ())


def healthy(random):
    return random.choice(FAMILIES)(random)

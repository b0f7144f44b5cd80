"""Random worlds: a mesh, a model, optimizer states, and failures in some of their tensors.

What a rank offers is a function of the rank and of a table of whole tensors. Given the truth it
makes the checkpoint; given the number of every element it says, by the writers that .metadata
names, which elements are still on disk. So what is lost is known without any rule about it.
"""

import collections
import dataclasses
import math
import pickle

import torch

from fake_ranks import Piece, Rank, box_of, cut, torch_chunk, write_checkpoint

FSDP = ("dp", "fsdp", "dp_shard", "data", "x")
TENSOR = ("tp", "tensor", "mp", "y")
EXPERT = ("ep", "expert", "e")


@dataclasses.dataclass
class Entry:
    fqn: str
    shape: tuple
    placements: list
    family: str
    layer: int = 0
    role: str = None
    parameter: object = None  # of a state
    moment: bool = False
    offer: object = None      # None: as the placements say


@dataclasses.dataclass
class World:
    kind: str
    mesh: dict
    entries: list = dataclasses.field(default_factory=list)
    axes: dict = dataclasses.field(default_factory=dict)  # fsdp, tensor, expert: their names

    @property
    def ranks(self):
        return math.prod(self.mesh.values())

    def add(self, fqn, shape, placements, family, **more):
        self.entries.append(Entry(fqn, tuple(shape), list(placements), family, **more))
        return self.entries[-1]

    def placements(self, **by_axis):
        names = {self.axes[role]: placement for role, placement in by_axis.items()}
        return [names.get(name, "Replicate") for name in self.mesh]

    def spec(self):
        return {e.fqn: {"shape": list(e.shape), "dtype": "float32", "mesh": self.mesh,
                        "placements": e.placements, **({"role": e.role} if e.role else {})}
                for e in self.entries}

    def broken(self):
        """An offer may be right by luck: one rank's shard of what is replicated is the whole."""
        ranks = [Rank(number, self.ranks).coordinate(self.mesh) for number in range(self.ranks)]
        whole = {e.fqn: torch.empty(e.shape, device="meta") for e in self.entries if e.offer}

        def label(piece):
            return tuple(piece.offsets), tuple(piece.size)
        return [e for e in self.entries if e.offer and any(
            label(e.offer(self, e, at, whole[e.fqn])) != label(as_placed(self, e, at, whole[e.fqn]))
            for at in ranks)]


def as_placed(world, entry, at, whole):
    offsets, sizes = box_of(entry.shape, world.mesh, entry.placements, at)
    if 0 in sizes:  # as torch does today: behind the end
        offsets = tuple(length if size == 0 else o
                        for o, size, length in zip(offsets, sizes, entry.shape))
    return Piece(cut(whole, offsets, sizes), offsets, entry.shape)


# Each failure as failures.md tells it: what the rank at a place offers of a whole tensor.

def axis_moved(world, entry, at, whole):
    """S1: the law of inference (0.3) with the placements from before the transpose."""
    piece, axis = as_placed(world, entry, at, whole), world.axes["fsdp"]
    parts, (count, rows, columns) = world.mesh[axis], entry.shape
    return Piece(piece.local, (piece.offsets[0], at[axis] * rows, 0),
                 (count, rows * parts, columns // parts))


def local_as_global(world, entry, at, whole):
    """S3: a plain tensor."""
    local = as_placed(world, entry, at, whole).local
    return Piece(local, (0,) * local.dim(), tuple(local.shape))


def experts_forgotten(world, entry, at, whole):
    """S4: FSDP2's own mesh, which knows neither expert nor expert-tensor ranks."""
    local, axis = as_placed(world, entry, at, whole).local, world.axes["fsdp"]
    rest = (0,) * (local.dim() - 1)
    rows = local.shape[0]
    return Piece(local, (at[axis] * rows, *rest), (rows * world.mesh[axis], *local.shape[1:]))


def tensor_forgotten(world, entry, at, whole):
    """S5 E1: what fully_shard says of the part that tensor parallelism left to the rank."""
    axis, fsdp = world.axes["tensor"], world.axes["fsdp"]
    dim = int(entry.placements[list(world.mesh).index(axis)][6:-1])
    part = whole.narrow(dim, *torch_chunk(entry.shape[dim], world.mesh[axis], at[axis]))
    start, rows = torch_chunk(part.shape[0], world.mesh[fsdp], at[fsdp])
    return Piece(part.narrow(0, start, rows).contiguous(), (start, *(0,) * (part.dim() - 1)),
                 tuple(part.shape))


def strides_forgotten(world, entry, at, whole):
    """S5 E2: the label of a plain shard on the bytes of a strided one."""
    plain = [f"Shard({p[13:p.index(',')]})" if p.startswith("Strided") else p
             for p in entry.placements]
    piece = as_placed(world, entry, at, whole)
    return Piece(piece.local, box_of(entry.shape, world.mesh, plain, at)[0], entry.shape)


def some_of(random, entries):
    """One tensor, a family, a half of the layers, or all."""
    how = random.choice(("one", "family", "half", "all"))
    if how == "one":
        return [random.choice(entries)]
    if how == "family":
        family = random.choice(sorted({e.family for e in entries}))
        return [e for e in entries if e.family == family]
    if how == "half":
        layers = sorted({e.layer for e in entries})
        kept = random.sample(layers, max(1, len(layers) // 2))
        return [e for e in entries if e.layer in kept]
    return entries


def break_some(random, entries, offer):
    for entry in some_of(random, entries):
        entry.offer = offer


def with_replicas(random, mesh):
    """Another axis in front that shards nothing."""
    small = math.prod(mesh.values()) <= 4
    return {"replica": 2, **mesh} if small and random.random() < .3 else mesh


def dense(random, kind):
    """A decoder under FSDP and tensor parallelism that cut the same rows: strided shards."""
    fsdp, tensor = random.choice(FSDP), random.choice(TENSOR)
    d, t = random.choice((2, 3, 4)), random.choice((2, 2, 3))
    world = World(kind, with_replicas(random, {fsdp: d, tensor: t}),
                  axes={"fsdp": fsdp, "tensor": tensor})
    even = kind == "strides forgotten"
    hidden = d * t * random.randint(1, 2)
    inner = d * t * random.randint(1, 3) if even else t * random.randint(1, 9)
    column = world.placements(fsdp=f"StridedShard(0,sf={t})", tensor="Shard(0)")
    row = world.placements(fsdp="Shard(0)", tensor="Shard(1)")
    first, second = random.choice((("fc1", "fc2"), ("w1", "w2"), ("up_proj", "down_proj")))
    for i in range(random.randint(1, 3)):
        stem = f"model.layers.{i}."
        world.add(f"{stem}mlp.{first}.weight", (inner, hidden), column, "column", layer=i,
                  role="column")
        world.add(f"{stem}mlp.{second}.weight", (hidden, inner), row, "row", layer=i)
        world.add(f"{stem}norm.weight", (hidden,), world.placements(fsdp="Shard(0)"), "norm",
                  layer=i)
    return world


def experts(random, kind):
    """Experts of three dimensions, transposed on their way to disk."""
    fsdp, expert = random.choice(("ep_shard", "shard")), random.choice(EXPERT)
    s, p = random.choice((2, 2, 3)), random.choice((1, 2, 3))
    world = World(kind, with_replicas(random, {fsdp: s, expert: p}),
                  axes={"fsdp": fsdp, "expert": expert})
    count, hidden = p * random.randint(1, 2), s * random.randint(1, 5)
    inner = s * random.randint(1, 5)
    placed = world.placements(fsdp="Shard(2)", expert="Shard(0)")
    world.add("model.embed_tokens.weight", (7, hidden), world.placements(fsdp="Shard(0)"), "embed")
    for i in range(random.randint(1, 3)):
        for name, shape in (("gate", (inner, hidden)), ("up", (inner, hidden)),
                            ("down", (hidden, inner))):
            world.add(f"model.layers.{i}.moe.{name}_proj.weight", (count, *shape), placed, name,
                      layer=i, role="expert")
    return world


def stacked_experts(random, kind):
    """One key stacks the same expert of every expert rank."""
    fsdp, expert, inside = random.choice(("edp", "dp")), random.choice(EXPERT), "etp"
    e, p, t = random.choice((1, 2, 3)), random.choice((2, 3)), random.choice((1, 1, 2))
    world = World(kind, {fsdp: e, expert: p, inside: t},
                  axes={"fsdp": fsdp, "expert": expert, "inside": inside})
    rows, hidden = e * p * random.randint(1, 2), random.choice((2, 3))
    for i in range(random.randint(1, 2)):
        for key in range(random.randint(1, 3)):
            stem = f"model.layers.{i}.mlp.experts."
            for name, shape, dim in (("fc1", (rows * t, hidden), 0),
                                     ("fc2", (rows, hidden * t), 1)):
                world.add(f"{stem}{name}.weight{key}", shape,
                          world.placements(fsdp="Shard(0)", expert="Shard(0)",
                                           inside=f"Shard({dim})"), name, layer=i, role="expert")
    world.add("model.norm.weight", (world.ranks,), ["Replicate"] * 3, "norm")
    return world


def add_states(random, world, offer=None):
    style = random.choice(("optimizer.state.{}.{}", "optim.state.{}.{}", "optimizer.{}.{}"))
    kinds = random.choice((("exp_avg", "exp_avg_sq"), ("momentum_buffer",)))
    sound = [e for e in world.entries if not e.offer]
    hurt = some_of(random, sound) if offer and sound else []
    for e in sound:
        for kind in kinds:
            world.add(style.format(e.fqn, kind), e.shape, e.placements, e.family, layer=e.layer,
                      parameter=e, moment=len(kinds) == 2, offer=offer if e in hurt else None)


MAKERS = {
    "healthy": (dense, None), "healthy experts": (experts, None),
    "axis moved": (experts, axis_moved), "local as global": (dense, None),
    "experts forgotten": (stacked_experts, experts_forgotten),
    "tensor forgotten": (dense, tensor_forgotten), "strides forgotten": (dense, strides_forgotten),
}


def random_world(random, kind):
    make, offer = MAKERS[kind]
    world = make(random, kind)
    families = {"axis moved": ("gate", "up", "down"), "experts forgotten": ("fc1", "fc2"),
                "tensor forgotten": ("column", "row"), "strides forgotten": ("column",)}
    if offer:
        break_some(random, [e for e in world.entries if e.family in families[kind]], offer)
    if kind == "local as global" or random.random() < .4:
        # Beside another failure, the states of what is sound: two failures in one checkpoint.
        add_states(random, world, None if kind.startswith("healthy") else local_as_global)
    return world


def truth_of(world):
    """Small numbers, all different in a tensor; second moments that their first ones allow."""
    truth = {}
    for entry in world.entries:
        values = torch.arange(math.prod(entry.shape), dtype=torch.float32).reshape(entry.shape)
        truth[entry.fqn] = values * 2.0 ** -12 + (1 if entry.fqn.endswith("_sq") else 2.0 ** -13)
    return truth


def offers(world, number, wholes):
    at = Rank(number, world.ranks).coordinate(world.mesh)
    return {e.fqn: (e.offer or as_placed)(world, e, at, wholes[e.fqn]) for e in world.entries}


def write(world, truth, directory):
    def state_of(rank):
        pieces = offers(world, rank.number, truth)
        return {fqn: p.local if tuple(p.local.shape) == p.size else p for fqn, p in pieces.items()}
    write_checkpoint(directory, world.ranks, state_of)


def elements_on_disk(world, directory):
    """Of every tensor, which of its elements some file still holds."""
    numbers = {e.fqn: torch.arange(math.prod(e.shape)).reshape(e.shape) for e in world.entries}
    with open(directory / ".metadata", "rb") as file:
        metadata = pickle.load(file)
    found, by_rank = collections.defaultdict(set), {}
    for index, place in metadata.storage_data.items():
        writer = int(place.relative_path.split("_")[2])
        if writer not in by_rank:
            by_rank[writer] = offers(world, writer, numbers)
        piece = by_rank[writer][index.fqn]
        assert tuple(piece.offsets) == tuple(index.offset)
        found[index.fqn].update(piece.local.reshape(-1).tolist())
    masks = {}
    for entry in world.entries:
        mask = torch.zeros(math.prod(entry.shape), dtype=torch.bool)
        mask[list(found[entry.fqn])] = True
        masks[entry.fqn] = mask.reshape(entry.shape)
    return masks

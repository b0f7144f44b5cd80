"""Checkpoints of any number of ranks, written in one process by torch's own planner and writer.

Each rank gets a fake process group for as long as its state dict and local plan are made; then the
coordinator's planner makes the global plan, and every rank's data is written from the state dict it
kept. No collective runs, so nothing here may call one (distribute_tensor, for instance).
"""

import contextlib
import dataclasses
import itertools
import logging
import sys
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint.default_planner
from torch.distributed.checkpoint import FileSystemWriter
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex
from torch.distributed.checkpoint.metadata import TensorProperties
from torch.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.distributed.tensor.placement_types import _StridedShard
from torch.testing._internal.distributed.fake_pg import FakeStore

warnings.simplefilter("ignore")
logging.getLogger("torch.distributed.checkpoint").setLevel(logging.CRITICAL)
logging.getLogger("torch.distributed.checkpoint.default_planner").setLevel(logging.CRITICAL)


@dataclasses.dataclass
class Piece:
    """A box that a framework hands to the planner itself, without a DTensor around it."""
    local: torch.Tensor
    offsets: tuple
    size: tuple
    claimed: tuple = None  # the sizes that its chunk is said to have; those of local without


@dataclasses.dataclass
class Rank:
    number: int
    world: int

    def coordinate(self, mesh):
        """Row-major over the axes: the last one runs fastest."""
        left, coordinate = self.number, {}
        for name, size in reversed(mesh.items()):
            left, coordinate[name] = divmod(left, size)
        return {name: coordinate[name] for name in mesh}

    def device_mesh(self, mesh):
        ranks = torch.arange(self.world).reshape(tuple(mesh.values()))
        return DeviceMesh("cpu", ranks, mesh_dim_names=tuple(mesh), _init_backend=False)

    def submesh(self, mesh, axes):
        """The mesh of only these axes that this rank is in."""
        coordinate = self.coordinate(mesh)
        pick = tuple(slice(None) if name in axes else coordinate[name] for name in mesh)
        ranks = torch.arange(self.world).reshape(tuple(mesh.values()))[pick]
        return DeviceMesh("cpu", ranks, mesh_dim_names=tuple(axes), _init_backend=False)


def placement_of(text):
    if text == "Replicate":
        return Replicate()
    numbers = text[text.index("(") + 1:-1].replace("sf=", "").split(",")
    if text.startswith("StridedShard"):
        return _StridedShard(int(numbers[0]), split_factor=int(numbers[1]))
    return Shard(int(numbers[0]))


def contiguous_strides(shape):
    return tuple(torch.empty(tuple(shape), device="meta").stride())


def dtensor(local, device_mesh, placements, shape):
    return DTensor.from_local(local, device_mesh, [placement_of(p) for p in placements],
                              run_check=False, shape=torch.Size(shape),
                              stride=contiguous_strides(shape))


def torch_box(shape, device_mesh, placements):
    sizes, offsets = compute_local_shape_and_global_offset(
        torch.Size(shape), device_mesh, [placement_of(p) for p in placements])
    return tuple(offsets), tuple(sizes)


def forget_ranks():
    """Between ranks: torch remembers how an operation came out, with the mesh it was on."""
    from torch.distributed.tensor import debug
    for name in ("_clear_sharding_prop_cache", "_clear_python_sharding_prop_cache",
                 "_clear_fast_path_sharding_prop_cache"):
        getattr(debug, name, lambda: None)()


class PiecePlanner(DefaultSavePlanner):
    """torch's planner, and the write items of pieces (one or a list a name) next to its own."""

    def set_up_planner(self, state_dict, *args, **kwargs):
        listed = {fqn: value if isinstance(value, list) else [value]
                  for fqn, value in state_dict.items()}
        self.pieces = {fqn: pieces for fqn, pieces in listed.items()
                       if pieces and isinstance(pieces[0], Piece)}
        rest = {fqn: value for fqn, value in state_dict.items() if fqn not in self.pieces}
        super().set_up_planner(rest, *args, **kwargs)

    def create_local_plan(self):
        plan = super().create_local_plan()
        items = plan.items + [self.item_of(fqn, piece) for fqn, pieces in self.pieces.items()
                              for piece in pieces]
        names = {**plan.planner_data, **{fqn: (fqn,) for fqn in self.pieces}}
        self.plan = dataclasses.replace(plan, items=items, planner_data=names)
        return self.plan

    @staticmethod
    def item_of(fqn, piece):
        offsets = torch.Size(piece.offsets)
        sizes = torch.Size(piece.claimed or piece.local.size())
        chunk = ChunkStorageMetadata(offsets=offsets, sizes=sizes)
        return WriteItem(index=MetadataIndex(fqn, offsets), type=WriteItemType.SHARD,
                         tensor_data=TensorWriteData(
                             chunk=chunk, size=torch.Size(piece.size),
                             properties=TensorProperties.create_from_tensor(piece.local)))

    def lookup_object(self, index):
        if index.fqn in self.pieces:
            return next(piece.local for piece in self.pieces[index.fqn]
                        if tuple(piece.offsets) == tuple(index.offset))
        return super().lookup_object(index)


@contextlib.contextmanager
def unchecked_plans(unchecked):
    """What some frameworks do: whatever the plan says, it is taken for right."""
    module = torch.distributed.checkpoint.default_planner
    real = module._validate_global_plan
    if unchecked:
        def passes(plan, metadata):
            answer = real(plan, metadata)
            return True if isinstance(answer, bool) else type(answer)()
        module._validate_global_plan = passes
    try:
        yield
    finally:
        module._validate_global_plan = real


def write_beside(directory, world, files_of):
    """What every rank saves by itself, each file in that rank's process group."""
    for number in range(world):
        with process_group(number, world):
            for name, content in files_of(Rank(number, world)).items():
                torch.save(content, f"{directory}/{name}")


@contextlib.contextmanager
def process_group(number, world):
    forget_ranks()
    excepthook = sys.excepthook  # every init_process_group wraps it in one more
    dist.init_process_group("fake", rank=number, world_size=world, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()
        sys.excepthook = excepthook


def write_checkpoint(directory, world, state_dict_of, thread_count=1, single_file_per_rank=True,
                     unchecked=False, writer=None):
    planners, plans = [], []
    for number in range(world):
        with process_group(number, world):
            planner = PiecePlanner()
            planner.set_up_planner(state_dict_of(Rank(number, world)), is_coordinator=number == 0)
            plans.append(planner.create_local_plan())
        planners.append(planner)

    writer = writer or FileSystemWriter(str(directory), thread_count=thread_count,
                                        sync_files=False,
                                        single_file_per_rank=single_file_per_rank)
    writer.set_up_storage_writer(True)
    plans = [writer.prepare_local_plan(plan) for plan in plans]
    with unchecked_plans(unchecked):
        plans, metadata = planners[0].create_global_plan(plans)
    plans = writer.prepare_global_plan(plans)
    results = [writer.write_data(planner.finish_plan(plan), planner).wait()
               for planner, plan in zip(planners, plans)]
    writer.finish(metadata, results)


# What follows is ours, not torch's: the slow obvious form of what a placement means.

def torch_chunk(length, parts, index):
    step = -(-length // parts)
    start = min(index * step, length)
    return start, max(0, min(step, length - start))


def box_of(shape, mesh, placements, coordinate):
    """(offsets, sizes): plain shards cut from left to right, strided ones after all plain ones."""
    offsets, sizes = [0] * len(shape), list(shape)
    axes = list(zip(mesh, placements))
    plain = [(name, p) for name, p in axes if p.startswith("Shard")]
    strided = [(name, p) for name, p in reversed(axes) if p.startswith("StridedShard")]
    for name, placement in itertools.chain(plain, strided):
        dim = placement_of(placement).dim
        start, length = torch_chunk(sizes[dim], mesh[name], coordinate[name])
        offsets[dim], sizes[dim] = offsets[dim] + start, length
    return tuple(offsets), tuple(sizes)


def cut(tensor, offsets, sizes):
    return tensor[tuple(slice(o, o + n) for o, n in zip(offsets, sizes))].contiguous()

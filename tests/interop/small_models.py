"""Tiny live models under a fake process group, one for each way to parallelise, and their specs."""

import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.testing._internal.distributed.fake_pg import FakeStore

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "assets"))

from export_spec import export_spec  # noqa: E402
from fake_ranks import forget_ranks  # noqa: E402


class Block(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.norm = nn.LayerNorm(width)
        self.register_buffer("positions", torch.arange(width))

    def forward(self, x):
        return self.norm(self.down(torch.relu(self.up(x))))


def fully_shard(module, mesh):
    try:
        from torch.distributed.fsdp import fully_shard as shard
    except ImportError:
        from torch.distributed._composable.fsdp import fully_shard as shard
    return shard(module, mesh=mesh)


def tensor_parallel(model, mesh):
    return parallelize_module(model, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})


def plain(rank):
    return Block(8, 16)


def fsdp(rank):
    model = Block(7, 10)  # uneven over 8 ranks, and empty on some
    fully_shard(model, init_device_mesh("cpu", (8,), mesh_dim_names=("dp",)))
    return model


def tp(rank):
    return tensor_parallel(Block(8, 16), init_device_mesh("cpu", (8,), mesh_dim_names=("tp",)))


def fsdp_tp(rank):
    mesh = init_device_mesh("cpu", (4, 2), mesh_dim_names=("dp", "tp"))
    model = tensor_parallel(Block(8, 16), mesh["tp"])
    fully_shard(model, mesh["dp"])
    return model


def hsdp(rank):
    model = Block(8, 16)
    fully_shard(model, init_device_mesh("cpu", (2, 4), mesh_dim_names=("replicate", "shard")))
    return model


def set_values(model, rank):
    """What tensor parallelism leaves of the parameters is memory that no collective filled."""
    random = torch.Generator().manual_seed(rank)
    with torch.no_grad():
        for parameter in model.parameters():
            local = getattr(parameter, "to_local", lambda: parameter)()
            local.copy_(torch.randn(local.shape, generator=random))


MODELS = {"plain": plain, "fsdp": fsdp, "tp": tp, "fsdp_tp": fsdp_tp, "hsdp": hsdp}
WORLD = 8


def stepped_optimizer(model):
    """States without a forward pass: no collective of a fake group has a result."""
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    return optimizer


def state_dict_of(model, optimizer):
    from torch.distributed.checkpoint.state_dict import get_state_dict
    model_state, optimizer_state = get_state_dict(model, optimizer)
    return {"model": model_state, "optimizer": optimizer_state}


def with_rank(rank, work):
    hook = sys.excepthook
    forget_ranks()
    dist.init_process_group("fake", rank=rank, world_size=WORLD, store=FakeStore())
    try:
        torch.manual_seed(1)
        return work()
    finally:
        dist.destroy_process_group()
        sys.excepthook = hook


def export(name, path, rank=0):
    def work():
        model = MODELS[name](rank)
        return export_spec(model, path, optimizer=stepped_optimizer(model))
    return with_rank(rank, work)


def export_all(directory):
    return {name: export(name, pathlib.Path(directory) / f"{name}.json") for name in MODELS}

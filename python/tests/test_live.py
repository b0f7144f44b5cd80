"""hash_of of live tensors against `shardwright hash` of the files they were saved to.

    SHARDWRIGHT=build/release/app/shardwright PYTHONPATH=python python -m pytest python/tests
"""

import copy
import socket

import pytest

torch = pytest.importorskip("torch")

import shardwright as sw  # noqa: E402

SHAPES = [(), (0, 3), (1,), (63,), (65,), (7, 9), (128, 64), (3, 5, 129), (130, 77)]
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32,
          torch.int16, torch.int8, torch.uint8, torch.bool, torch.float8_e4m3fn, torch.complex64]


def random(shape, dtype, seed):
    drawn = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=drawn).bool()
    size = torch.empty(0, dtype=dtype).element_size()
    count = torch.Size(shape).numel() * size
    bits = torch.randint(0, 256, (count,), generator=drawn, dtype=torch.uint8)
    return bits.view(dtype).reshape(shape)


def test_every_dtype_and_shape_has_the_hash_of_its_file(tmp_path):
    import torch.distributed.checkpoint as dcp
    state = {f"{dtype}.{shape}".replace(" ", ""): random(shape, dtype, 7 * i + j)
             for i, dtype in enumerate(DTYPES) for j, shape in enumerate(SHAPES)}
    state["nested"] = {"exp_avg": torch.randn(5, 5), "step": 3, "listed": [torch.randn(3)]}
    dcp.save(copy.copy(state), checkpoint_id=tmp_path / "ckpt")
    assert sw.hash_of(state) == sw.hash(tmp_path / "ckpt")


def test_total_is_that_of_the_program(tmp_path):
    pytest.importorskip("xxhash")
    import torch.distributed.checkpoint as dcp
    state = {"b": torch.randn(3, 4), "a": torch.randn(()), "ä": torch.randn(2, 2).bfloat16()}
    dcp.save(dict(state), checkpoint_id=tmp_path / "ckpt")
    assert sw.hash_of(state).total == sw.hash(tmp_path / "ckpt").total


def test_views_that_are_not_contiguous_count_by_index():
    tensor = torch.randn(70, 66)
    assert sw.hash_of({"t": tensor.t()}) == sw.hash_of({"t": tensor.t().contiguous()})
    assert sw.hash_of({"t": tensor.t()}) != sw.hash_of({"t": tensor.reshape(66, 70)})


def test_a_tensor_without_elements_on_the_meta_device_is_an_error():
    with pytest.raises(ValueError, match="w: "):
        sw.hash_of({"w": torch.empty(3, device="meta")})


def rank(number, port, folder):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
    torch.distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=number,
                                         world_size=4)
    line = init_device_mesh("cpu", (4,))
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    state = {"whole": random((9, 5), torch.float32, 1)}
    for at, (mesh, placements) in enumerate([
            (line, [Shard(0)]), (line, [Shard(1)]), (line, [Replicate()]),
            (grid, [Shard(0), Shard(1)]), (grid, [Shard(0), Shard(0)]),
            (grid, [Replicate(), Shard(1)]), (grid, [Shard(1), Replicate()])]):
        for shape in ((130, 77), (256, 128), (5, 3, 4), (2, 9)):
            name = f"{at}.{shape}".replace(" ", "")
            state[name] = distribute_tensor(random(shape, torch.bfloat16, at), mesh, placements)
    model = torch.nn.Sequential(torch.nn.Linear(36, 20), torch.nn.Linear(20, 36))
    torch.distributed.tensor.parallel.parallelize_module(
        model, grid["tp"], {"0": torch.distributed.tensor.parallel.ColwiseParallel(),
                            "1": torch.distributed.tensor.parallel.RowwiseParallel()})
    torch.distributed.fsdp.fully_shard(model, mesh=grid["dp"])  # strided shards
    state["model"] = model.state_dict()
    dcp.save(dict(state), checkpoint_id=folder)
    hashes = sw.hash_of(state)
    assert hashes == sw.hash(folder)

    with pytest.raises(ValueError, match="whole: ranks hold different values"):
        sw.hash_of({"whole": torch.full((3,), float(number))})
    with pytest.raises(ValueError, match="Partial"):
        sw.hash_of({"sum": DTensor.from_local(torch.ones(3), line, [Partial()])})
    # One rank fails, and no rank waits for it.
    with pytest.raises(ValueError, match="w: .*meta" if number == 2 else "rank 2 .*w: .*meta"):
        sw.hash_of({"w": torch.ones(3, device="meta" if number == 2 else "cpu")})
    torch.distributed.destroy_process_group()


def test_sharded_tensors_have_the_hash_of_their_file(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(rank, (port, tmp_path / "ckpt"), nprocs=4)

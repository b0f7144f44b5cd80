"""Writes what a live model expects of its checkpoint, for `shardwright check --spec`.

Needs nothing but torch (2.6 or newer). Call it on every rank, after the model is parallelised and,
if the optimizer is wanted too, after its first step; rank 0 writes the file:

    from export_spec import export_spec, export_state_dict

    export_spec(model, "spec.json")                          # parameters and buffers
    export_spec(model, "spec.json", optimizer=optimizer)     # and the optimizer's states
    export_state_dict({"model": ..., "optimizer": ...}, "spec.json")
                                        # or exactly what is handed to torch.distributed.checkpoint

Names are those of get_model_state_dict and get_optimizer_state_dict saved as {"model": ...,
"optimizer": ...}; where you save under other keys, say model_prefix="" or whatever it is.

The file maps each name to its global shape, dtype, mesh (axis to size, in order) and placements
("Replicate", "Shard(dim)", "StridedShard(dim,sf=split_factor)"), and to a role where one can be
told: norm, expert, column, row.
"""

import json
import os
import sys

import torch
import torch.distributed as dist


def export_spec(model, path=None, optimizer=None, model_prefix="model.", optimizer_prefix="optimizer."):
    """Exports the model's tensors and, if given, its optimizer's. Every rank gets the spec; without
    a path nothing is written."""
    from torch.distributed.checkpoint.state_dict import get_model_state_dict
    from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict

    state = [(model_prefix, get_model_state_dict(model))]
    if optimizer is not None:
        if not optimizer.state:
            # torch would make the states up by taking a step, and this file changes nothing.
            raise ValueError("the optimizer has no states before its first step: "
                             "call export_spec after it, or leave the optimizer out")
        state.append((optimizer_prefix, get_optimizer_state_dict(model, optimizer)))
    norms = norm_parameters(model)
    spec = {}
    for prefix, tensors in state:
        for name, tensor in flattened(tensors):
            spec[prefix + name] = entry_of(name, tensor, norms)
    write(spec, path)
    return spec


def export_state_dict(state_dict, path):
    """Exports every tensor of the state dict that is handed to torch.distributed.checkpoint."""
    spec = {name: entry_of(name, tensor, frozenset()) for name, tensor in flattened(state_dict)}
    write(spec, path)
    return spec


def flattened(value, path=()):
    """(name, tensor) of all tensors in nested dicts and lists, named as torch's planner does."""
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, (list, tuple)):
        parts = enumerate(value)
    else:
        if isinstance(value, torch.Tensor):
            yield ".".join(path), value
        return
    for key, part in parts:
        yield from flattened(part, path + (str(key),))


def entry_of(name, tensor, norms):
    mesh, placements = layout_of(tensor)
    entry = {"shape": list(tensor.shape), "dtype": str(tensor.dtype).replace("torch.", "", 1),
             "mesh": mesh, "placements": placements}
    role = role_of(name, entry, norms)
    return {**entry, "role": role} if role else entry


def layout_of(tensor):
    device_mesh = getattr(tensor, "device_mesh", None)
    if device_mesh is None:  # no DTensor: the same on every rank
        return {}, []
    names = device_mesh.mesh_dim_names or [f"axis{d}" for d in range(device_mesh.ndim)]
    mesh = {name: device_mesh.size(dim) for dim, name in enumerate(names)}
    return mesh, [text_of(placement) for placement in tensor.placements]


def text_of(placement):
    split_factor = getattr(placement, "split_factor", None)
    if split_factor is not None:  # torch 2.6 counts it as a Shard, newer ones do not
        return f"StridedShard({placement.dim},sf={split_factor})"
    if placement.is_shard():
        return f"Shard({placement.dim})"
    return "Replicate" if placement.is_replicate() else "Partial"


TENSOR_PARALLEL = ("tp", "tensor", "model_parallel", "mp")
EXPERT_PARALLEL = ("ep", "expert", "expert_parallel")


def role_of(name, entry, norms):
    """Told by the module's kind and by the mesh, not by how a project spells its names."""
    if any(name == norm or f".{norm}." in f".{name}." for norm in norms):
        return "norm"
    by_axis = dict(zip(entry["mesh"], entry["placements"]))
    for axis, placement in by_axis.items():
        if axis in EXPERT_PARALLEL and "Shard" in placement:
            return "expert"
    for axis, placement in by_axis.items():
        if axis in TENSOR_PARALLEL and len(entry["shape"]) <= 2:
            return {"Shard(0)": "column", "Shard(1)": "row"}.get(placement)
    return None


def norm_parameters(model):
    found = set()
    for prefix, module in model.named_modules():
        if type(module).__name__.removeprefix("FSDP").endswith("Norm"):
            found.update(f"{prefix}.{name}".lstrip(".")
                         for name, _ in module.named_parameters(recurse=False))
    return frozenset(found)


def write(spec, path):
    if path is None:
        return
    if dist.is_available() and dist.is_initialized() and dist.get_rank() != 0:
        return
    temporary = f"{path}.new"
    with open(temporary, "w", encoding="utf-8") as stream:
        json.dump(spec, stream, indent=1)
        stream.write("\n")
    os.replace(temporary, path)


if __name__ == "__main__":
    print(__doc__.strip())
    sys.exit(0 if sys.argv[1:] in ([], ["-h"], ["--help"]) else 2)

#!/usr/bin/env python3
"""Writes the checkpoint that the metadata benchmark opens: a real one's metadata, no bytes.

1,137 tensors (the shapes of Llama-3-405B) x 3 states (parameter, exp_avg, exp_avg_sq), cut by
FSDP Shard(0) over 1,024 ranks: 3.5 million chunks. The objects are torch's own and the file is
what FileSystemWriter.finish pickles. Every rank's plan and every rank's write results make one
trip through pickle here, as they do through gather_object in a real save: that trip decides which
strings and sizes the .metadata can refer back to and which it spells out again for each chunk.

The data files are sparse: as long as the metadata says, without a byte in them. So this is a
checkpoint for `--depth metadata`; no deeper look can succeed. With --whole every item is there, as
torch.save writes it, of tensors that are cut down to two rows per rank and four columns: as many
tiles, 32 bytes each, to plan and to make. It takes 1.2 KB a tile, 4.4 GB in all.

    make_giant_metadata.py --out DIR [--scale 16] [--whole]    a sixteenth of the ranks
"""

import argparse
import gc
import io
import os
import pathlib
import pickle
import time
import uuid

import torch
from torch.distributed.checkpoint import filesystem, metadata

LAYERS, HIDDEN, FFN, KV, VOCAB = 126, 16384, 53248, 1024, 128256
STATES = ("model.{}", "optimizer.state.{}.exp_avg", "optimizer.state.{}.exp_avg_sq")


def llama_405b():
    yield "tok_embeddings.weight", (VOCAB, HIDDEN)
    for layer in range(LAYERS):
        prefix = f"layers.{layer}."
        yield prefix + "attention.wq.weight", (HIDDEN, HIDDEN)
        yield prefix + "attention.wk.weight", (KV, HIDDEN)
        yield prefix + "attention.wv.weight", (KV, HIDDEN)
        yield prefix + "attention.wo.weight", (HIDDEN, HIDDEN)
        yield prefix + "feed_forward.w1.weight", (FFN, HIDDEN)
        yield prefix + "feed_forward.w2.weight", (HIDDEN, FFN)
        yield prefix + "feed_forward.w3.weight", (FFN, HIDDEN)
        yield prefix + "attention_norm.weight", (HIDDEN,)
        yield prefix + "ffn_norm.weight", (HIDDEN,)
    yield "norm.weight", (HIDDEN,)
    yield "output.weight", (VOCAB, HIDDEN)


def planner_path(state, name):
    if state.startswith("model."):
        return ("model", name)
    return ("optimizer", "state", name, state.rsplit(".", 1)[1])


def torch_chunk(rows, ranks, rank):
    """(start, length) of torch.chunk, padded with empties that start at the end."""
    step = -(-rows // ranks)
    start = min(rank * step, rows)
    return start, max(0, min(step, rows - start))


class ItemLength:
    """The length of the zip that torch.save makes of a tensor of so many bytes."""

    def __init__(self):
        self.of_remainder = {}

    def __call__(self, nbytes):
        # Entries are aligned to 64, so beyond the remainder the length grows byte for byte.
        remainder = nbytes % 64
        if remainder not in self.of_remainder:
            stream = io.BytesIO()
            torch.save(torch.zeros(remainder + 64, dtype=torch.uint8), stream)
            self.of_remainder[remainder] = stream.tell()
        return self.of_remainder[remainder] + nbytes - remainder - 64


class Items:
    """The bytes that torch.save writes for a tile: of one shape they are all alike."""

    def __init__(self):
        self.of_shape = {}

    def __call__(self, shape):
        if shape not in self.of_shape:
            stream = io.BytesIO()
            count = torch.Size(shape).numel()
            torch.save(torch.arange(count, dtype=torch.float32).reshape(shape), stream)
            self.of_shape[shape] = stream.getvalue()
        return self.of_shape[shape]


def through_pickle(value):
    return pickle.loads(pickle.dumps(value))


def strides_of(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def properties_of(local_shape):
    arguments = dict(dtype=torch.float32, layout=torch.strided, requires_grad=False,
                     memory_format=torch.contiguous_format, pin_memory=False)
    if "strides" in metadata.TensorProperties.__dataclass_fields__:  # since torch 2.15
        arguments["strides"] = strides_of(local_shape)
    return metadata.TensorProperties(**arguments)


def rank_plan(tensors, ranks, rank, empties_taken):
    """What this rank keeps to write after deduplication: (fqn, chunk, properties, size)."""
    items = []
    for fqn, shape in tensors:
        start, length = torch_chunk(shape[0], ranks, rank)
        if length == 0:
            # All empty shards share the key (fqn, offset = rows): one rank keeps it.
            if fqn in empties_taken:
                continue
            empties_taken.add(fqn)
        local = (length,) + shape[1:]
        offsets = torch.Size((start,) + (0,) * (len(shape) - 1))
        chunk = metadata.ChunkStorageMetadata(offsets=offsets, sizes=torch.Size(local))
        items.append((fqn, chunk, properties_of(local) if rank == 0 else None, torch.Size(shape)))
    return through_pickle(items)


def build(tensors, ranks, items_in):
    """items_in: the folder that gets the items, None where only their lengths count."""
    item_length, items = ItemLength(), Items()
    state_dict_metadata, storage_data, file_sizes = {}, {}, []
    empties_taken = set()
    for rank in range(ranks):
        position, results = 0, []
        file_name = f"__{rank}_0.distcp"
        written = []
        for fqn, chunk, properties, size in rank_plan(tensors, ranks, rank, empties_taken):
            entry = state_dict_metadata.setdefault(
                fqn, metadata.TensorStorageMetadata(properties=properties, size=size, chunks=[]))
            nbytes = 4
            for extent in chunk.sizes:
                nbytes *= extent
            index = metadata.MetadataIndex(fqn, chunk.offsets, index=len(entry.chunks))
            if items_in is not None:
                written.append(items(tuple(chunk.sizes)))
            length = item_length(nbytes) if items_in is None else len(written[-1])
            results.append((index, filesystem._StorageInfo(file_name, position, length)))
            entry.chunks.append(chunk)
            position += length
        storage_data.update(through_pickle(results))
        if items_in is None:
            file_sizes.append((file_name, position))
        else:
            (items_in / file_name).write_bytes(b"".join(written))
    return state_dict_metadata, storage_data, file_sizes


def write(out, pickled, file_sizes):
    with open(os.path.join(out, ".metadata.tmp"), "wb") as stream:
        pickle.dump(pickled, stream)
        stream.flush()
        os.fsync(stream.fileno())
    for name, size in file_sizes:
        with open(os.path.join(out, name), "wb") as stream:
            stream.truncate(size)
    os.replace(os.path.join(out, ".metadata.tmp"), os.path.join(out, ".metadata"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--scale", type=int, default=1, help="divide the ranks by this")
    parser.add_argument("--whole", action="store_true", help="with bytes, of small tensors")
    arguments = parser.parse_args()
    ranks = max(1, arguments.ranks // arguments.scale)

    gc.disable()  # tens of millions of live objects, no cycles: the collector would double the time
    started = time.time()
    tensors = [(state.format(name), shape) for state in STATES for name, shape in llama_405b()]
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    if arguments.whole:
        tensors = [(fqn, (2 * ranks,) + (4,) * (len(shape) - 1)) for fqn, shape in tensors]
    planner_data = {state.format(name): planner_path(state, name)
                    for state in STATES for name, _ in llama_405b()}
    state_dict_metadata, storage_data, file_sizes = build(
        tensors, ranks, out if arguments.whole else None)
    meta = metadata.Metadata(state_dict_metadata, planner_data, storage_data)
    meta.storage_meta = metadata.StorageMeta(checkpoint_id=pathlib.Path("/checkpoints/llama-405b"),
                                             save_id=str(uuid.UUID(int=405)))
    if "version" in metadata.Metadata.__dataclass_fields__:
        meta.version = "1.0.0"
    built = time.time()
    write(arguments.out, meta, file_sizes)
    print(f"{len(tensors)} tensors, {len(storage_data)} chunks, {ranks} ranks: built in "
          f"{built - started:.0f} s, written in {time.time() - built:.0f} s, "
          f"{os.path.getsize(os.path.join(arguments.out, '.metadata'))} bytes of metadata")
    os._exit(0)  # freeing it all takes longer than the exit of the process


if __name__ == "__main__":
    main()

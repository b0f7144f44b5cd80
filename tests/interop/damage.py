"""Ways to damage a checkpoint, from a cut file to a hostile pickle. Each changes a copy."""

import os
import pathlib
import pickle
import struct

import torch
from torch.distributed.checkpoint.metadata import MetadataIndex

import judge  # noqa: F401  (aliases pathlib._local, so that the fixtures' metadata opens)

HUGE = 1 << 62


def truncate(path, keep):
    data = path.read_bytes()
    path.write_bytes(data[:int(len(data) * keep) if isinstance(keep, float) else keep])


def flip(path, at, mask=0x01):
    data = bytearray(path.read_bytes())
    data[at if isinstance(at, int) else int(len(data) * at)] ^= mask
    path.write_bytes(bytes(data))


def zero(path, start, length):
    data = bytearray(path.read_bytes())
    first = int(len(data) * start)
    data[first:first + length] = bytes(min(length, len(data) - first))
    path.write_bytes(bytes(data))


def swap_halves(path):
    data = path.read_bytes()
    path.write_bytes(data[len(data) // 2:] + data[:len(data) // 2])


def directory_instead(path):
    path.unlink()
    path.mkdir()


def link_to(path, target):
    path.unlink()
    path.symlink_to(target)


def pipe_instead(path):
    path.unlink()
    os.mkfifo(path)


def edit(path, change):
    """Loads the metadata with the real classes, changes it, and pickles it again."""
    with open(path, "rb") as stream:
        metadata = pickle.load(stream)
    metadata.storage_meta = None
    change(metadata)
    with open(path, "wb") as stream:
        pickle.dump(metadata, stream)


def each_storage(**fields):
    def change(metadata):
        for index, info in metadata.storage_data.items():
            for name, value in fields.items():
                setattr(info, name, value)
            return  # one entry is enough
    return change


def first_tensor(metadata):
    return next((fqn, entry) for fqn, entry in metadata.state_dict_metadata.items()
                if hasattr(entry, "chunks") and entry.chunks and len(entry.size) > 0)


def chunk_field(field, value):
    """Moves the first chunk, and its storage key with it."""
    def change(metadata):
        fqn, entry = first_tensor(metadata)
        chunk = entry.chunks[0]
        info = metadata.storage_data.pop(MetadataIndex(fqn, chunk.offsets))
        old = getattr(chunk, field)
        # Plain tuples, as Megatron writes them: torch.Size would refuse some of these values.
        setattr(chunk, field, (value,) + tuple(old)[1:])
        index = MetadataIndex(fqn, torch.Size([0]))
        object.__setattr__(index, "offset", tuple(chunk.offsets))
        metadata.storage_data[index] = info
    return change


def tensor_size(value):
    def change(metadata):
        _, entry = first_tensor(metadata)
        entry.size = (value,) + tuple(entry.size)[1:]
    return change


def many_dimensions(metadata):
    _, entry = first_tensor(metadata)
    entry.size = (1,) * 4096


def no_storage(metadata):
    fqn, entry = first_tensor(metadata)
    metadata.storage_data.pop(MetadataIndex(fqn, entry.chunks[0].offsets))


def no_chunk(metadata):
    """The last chunk that holds anything, of a tensor that has more than one: a hole that no file shows."""
    for fqn, entry in metadata.state_dict_metadata.items():
        if hasattr(entry, "chunks") and len(entry.chunks) > 1:
            chunk = [c for c in entry.chunks if 0 not in c.sizes][-1]
            entry.chunks.remove(chunk)
            metadata.storage_data.pop(MetadataIndex(fqn, chunk.offsets))
            return


def overlapping(metadata):
    for _, entry in metadata.state_dict_metadata.items():
        if hasattr(entry, "chunks") and len(entry.chunks) > 1:
            entry.chunks[1].offsets = entry.chunks[0].offsets
            return


class Runs:
    """Pickles as a call of os.system. If anything ever executes it, the marker file appears."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch '{self.marker}'",)


def call_inside(path, marker):
    edit(path, lambda metadata: metadata.planner_data.update({"evil": Runs(marker)}))


def call_as_root(path, marker):
    path.write_bytes(pickle.dumps(Runs(marker)))


def old_style_call(path, marker):
    path.write_bytes(b"cos\nsystem\n(S'touch " + str(marker).encode() + b"'\ntR.")


# Pickles by hand: what no pickler writes.

def laughs(path):
    """Thirty-two tuples, each of two of the one before: 4 billion elements if copied."""
    body = b"\x80\x04]\x94"
    for number in range(64):
        body += b"h" + bytes([number]) + b"h" + bytes([number]) + b"\x86\x94"
    path.write_bytes(body + b".")


def deep(path, depth=1_000_000):
    path.write_bytes(b"\x80\x04" + b"]" * depth + b"a" * (depth - 1) + b".")


def deep_tuples(path, depth=1_000_000):
    path.write_bytes(b"\x80\x04)" + b"\x85" * depth + b".")


def marks(path, count=5_000_000):
    path.write_bytes(b"\x80\x04" + b"(" * count)


def huge_string(path):
    path.write_bytes(b"\x80\x04\x8d" + struct.pack("<Q", HUGE) + b"abc.")


def huge_bytes(path):
    path.write_bytes(b"\x80\x04\x8e" + struct.pack("<Q", (1 << 64) - 1) + b"abc.")


def huge_long(path):
    path.write_bytes(b"\x80\x04\x8b" + struct.pack("<I", 0x7FFFFFFF) + b"abc.")


def negative_long(path):
    path.write_bytes(b"\x80\x04\x8b" + struct.pack("<i", -1) + b"abc.")


def huge_frame(path):
    data = path.read_bytes()
    path.write_bytes(data[:3] + struct.pack("<Q", HUGE) + data[11:])


def huge_memo(path):
    path.write_bytes(b"\x80\x04]r\xff\xff\xff\xff.")


def text_memo(path):
    path.write_bytes(b"\x80\x02]p99999999999999999999\n.")


def empty_stack(path):
    path.write_bytes(b"\x80\x04" + b"0" * 8 + b".")


def never_stops(path):
    path.write_bytes(b"\x80\x04" + b"N0" * 1000)


def unknown_opcode(path):
    path.write_bytes(b"\x80\x04\xfe.")


def metadata_damages(marker):
    """(sentence, function of the .metadata's path, must it be noticed, what must be told)

    Told: "offset" is the file and where in it; "file" the file; "any" a tensor or file of it.
    """
    yes, maybe = True, False
    for keep in (0, 1, 2, 10, 0.25, 0.5, 0.9):
        told = "offset" if keep else "file"
        yield f"cut to {keep}", lambda p, keep=keep: truncate(p, keep), yes, told
    yield "cut by its last byte", lambda p: truncate(p, p.stat().st_size - 1), yes, "offset"
    for number in range(1, 40):
        yield (f"with a bit flipped at {number}/40",
               lambda p, n=number: flip(p, n / 40, 1 << (n % 8)), maybe, "any")
    for number in range(1, 8):
        yield (f"with 16 bytes zeroed at {number}/8",
               lambda p, n=number: zero(p, n / 8, 16), maybe, "any")
    yield "with its halves swapped", swap_halves, yes, "file"
    yield "that is all zeros", lambda p: zero(p, 0.0, p.stat().st_size), yes, "file"
    yield "that is a directory", directory_instead, yes, "file"
    yield "that is a dangling link", lambda p: link_to(p, "nowhere"), yes, "file"
    yield "that is a link to itself", lambda p: link_to(p, p.name), yes, "file"
    yield "that is a pipe", pipe_instead, yes, "file"
    yield "that is an endless device", lambda p: link_to(p, "/dev/zero"), yes, "file"
    for hostile in (laughs, deep, deep_tuples, marks, huge_string, huge_bytes, huge_long,
                    negative_long, huge_frame, huge_memo, text_memo, empty_stack, never_stops,
                    unknown_opcode):
        yield f"that is hostile ({hostile.__name__})", hostile, hostile is not huge_frame, "file"
    edits = {
        "a path out of the checkpoint": each_storage(relative_path="../../../../etc/passwd"),
        "an absolute path": each_storage(relative_path="/etc/passwd"),
        "an empty path": each_storage(relative_path=""),
        "a path with a zero byte": each_storage(relative_path="__0_0.distcp\0.txt"),
        "a path of a megabyte": each_storage(relative_path="a" * 1_000_000),
        "a path to a missing file": each_storage(relative_path="__99_0.distcp"),
        "a negative item offset": each_storage(offset=-1),
        "an item offset of 2^62": each_storage(offset=HUGE),
        "an item offset of 2^80": each_storage(offset=1 << 80),
        "an item length of 2^62": each_storage(length=HUGE),
        "a negative item length": each_storage(length=-5),
        "an item length of 0": each_storage(length=0),
        "an item offset and length that wrap": each_storage(offset=HUGE * 2 - 8, length=HUGE * 2),
        "a negative chunk offset": chunk_field("offsets", -1),
        "a chunk offset of 2^62": chunk_field("offsets", HUGE),
        "a negative chunk size": chunk_field("sizes", -3),
        "a chunk size of 2^62": chunk_field("sizes", HUGE),
        "a chunk size of 2^63-1": chunk_field("sizes", HUGE * 2 - 1),
        "a tensor size of 2^62": tensor_size(HUGE),
        "a negative tensor size": tensor_size(-7),
        "a tensor of 4096 dimensions": many_dimensions,
        "a chunk without storage": no_storage,
        "a chunk too few": no_chunk,
        "two chunks in one place": overlapping,
        "sizes that are a string": lambda m: setattr(first_tensor(m)[1], "size", "abc"),
        "chunks that are a number": lambda m: setattr(first_tensor(m)[1], "chunks", 7),
        "storage data that is a list": lambda m: setattr(m, "storage_data", [1, 2, 3]),
        "tensors that are None": lambda m: setattr(m, "state_dict_metadata", None),
    }
    for sentence, change in edits.items():
        yield f"with {sentence}", lambda p, change=change: edit(p, change), yes, "any"
    for call in (call_inside, call_as_root, old_style_call):
        yield (f"that would run a command ({call.__name__})",
               lambda p, call=call: call(p, marker), yes, "file")


def data_damages():
    """(sentence, function of a .distcp's path, what notices it: the depth of the check)"""
    yield "cut to nothing", lambda p: truncate(p, 0), "metadata"
    yield "cut in half", lambda p: truncate(p, 0.5), "metadata"
    yield "cut by its last byte", lambda p: truncate(p, p.stat().st_size - 1), "metadata"
    yield "that is all zeros", lambda p: zero(p, 0.0, p.stat().st_size), "headers"
    yield "with its halves swapped", swap_halves, "headers"
    yield "that is missing", pathlib.Path.unlink, "metadata"
    yield "that is a directory", directory_instead, "metadata"
    yield "that is a dangling link", lambda p: link_to(p, "nowhere"), "metadata"
    yield "that is a pipe", pipe_instead, "metadata"
    yield "that is an endless device", lambda p: link_to(p, "/dev/zero"), "metadata"
    for number in range(1, 30):
        yield (f"with a bit flipped at {number}/30",
               lambda p, n=number: flip(p, n / 30, 1 << (n % 8)), "maybe")


def payload_position(data):
    """The first data/0 entry with bytes in it: after the name comes the padding field."""
    name = b"archive/data/0FB"
    at = data.index(name)
    extra = struct.unpack_from("<H", data, at - 2)[0]
    return at + len(name) - 2 + extra


def flip_payload(path):
    flip(path, payload_position(path.read_bytes()))


def header_damages():
    """Safetensors: the header is a length and a JSON text."""
    def length_of(value):
        return lambda p: p.write_bytes(struct.pack("<Q", value) + p.read_bytes()[8:])

    def text_of(text):
        return lambda p: p.write_bytes(struct.pack("<Q", len(text)) + text + bytes(64))

    yield "cut to nothing", lambda p: truncate(p, 0)
    yield "cut to 7 bytes", lambda p: truncate(p, 7)
    yield "cut in half", lambda p: truncate(p, 0.5)
    yield "cut by its last byte", lambda p: truncate(p, p.stat().st_size - 1)
    yield "with a header of 2^62 bytes", length_of(HUGE)
    yield "with a header of no bytes", length_of(0)
    yield "with a header one byte too long", lambda p: length_of(
        struct.unpack("<Q", p.read_bytes()[:8])[0] + 1)(p)
    yield "with a header that nests a million deep", text_of(b"[" * 1_000_000)
    yield "with a header that is not an object", text_of(b"[1,2]")
    yield "with a tensor beyond the file", text_of(
        b'{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,1000000]}}')
    yield "with negative offsets", text_of(
        b'{"w":{"dtype":"F32","shape":[4],"data_offsets":[-16,0]}}')
    yield "with a shape of 2^62", text_of(
        b'{"w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,16]}}')
    yield "with an unknown dtype", text_of(
        b'{"w":{"dtype":"Q7","shape":[4],"data_offsets":[0,16]}}')
    yield "with sharding info that is not JSON", text_of(
        b'{"__metadata__":{"DCP_SHARDING_INFO":"{"},'
        b'"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}')
    yield "that is a directory", directory_instead
    yield "that is a pipe", pipe_instead

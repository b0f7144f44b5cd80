"""What real torch says. Imported by the tests, and served by a second torch as a child process:

    python judge.py            reads one JSON request a line, answers with one JSON line
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import warnings

import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file

from checks import LeftOut

# Checkpoints saved under Python 3.13 name a module that no other Python has. That is a finding
# of its own (portability); the judge has to be able to open the originals all the same.
sys.modules.setdefault("pathlib._local", pathlib)
warnings.simplefilter("ignore")


def dtype_of(name):
    return getattr(torch, name.removeprefix("torch."))


def same_bits(a, b):
    """Equal as bytes; the text form of a NaN has no payload, so all NaN of a dtype are equal."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.numel() == 0:
        return True
    if a.is_complex():
        return same_bits(torch.view_as_real(a), torch.view_as_real(b))
    different = bytes_of(a).ne(bytes_of(b)).any(dim=1)
    if not different.any():
        return True
    if not a.is_floating_point():
        return False
    both_nan = (a.to(torch.float64).isnan() & b.to(torch.float64).isnan()).reshape(-1)
    return not (different & ~both_nan).any()


def bytes_of(tensor):
    flat = tensor.contiguous().reshape(-1)
    return flat.view(torch.uint8).reshape(flat.numel(), flat.element_size())


def first_difference(got, wanted):
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return (f"{got.dtype} {tuple(got.shape)} instead of {wanted.dtype} {tuple(wanted.shape)}")
    at = bytes_of(got).ne(bytes_of(wanted)).any(dim=1).nonzero()[0].item()
    return (f"element {at} is {got.reshape(-1)[at].item()} instead of "
            f"{wanted.reshape(-1)[at].item()}")


def tensor_of_text(values, dtype, shape):
    """The flat values of `show --json --values` as a tensor again."""
    if dtype.is_complex:
        flat = [complex(float(re), float(im)) for re, im in values]
        return torch.tensor(flat, dtype=torch.complex128).to(dtype).reshape(shape)
    if dtype == torch.bool:
        return torch.tensor([bool(value) for value in values], dtype=dtype).reshape(shape)
    if dtype.is_floating_point:
        flat = torch.tensor([float(value) for value in values], dtype=torch.float64)
        return flat.to(torch.float32).to(dtype).reshape(shape) if dtype.itemsize < 4 \
            else flat.to(dtype).reshape(shape)
    return torch.tensor([int(value) for value in values], dtype=dtype).reshape(shape)


def poisoned(shape, dtype):
    """A destination that no checkpoint holds: a gap that load leaves untouched becomes visible."""
    tensor = torch.empty(shape, dtype=dtype)
    if tensor.numel():
        bytes_of(tensor)  # contiguous by construction
        tensor.reshape(-1).view(torch.uint8).fill_(0xA5 if dtype != torch.bool else 1)
    return tensor


def destination(spec, only=None):
    return {fqn: poisoned(entry["shape"], dtype_of(entry["dtype"]))
            for fqn, entry in spec.items() if only is None or fqn in only}


def load_dcp(checkpoint, spec, only=None):
    """dcp.load into tensors of the spec's shapes, as a model that is right would do it."""
    state = destination(spec, only)
    dcp.load(state, checkpoint_id=str(checkpoint))
    return state


def load_rank_local(checkpoint, spec):
    """A checkpoint of save(use_collectives=False): every rank's metadata, joined here."""
    import pickle
    from torch.distributed.checkpoint.filesystem import FileSystemReader

    joined = None
    for path in sorted(pathlib.Path(checkpoint).glob("__*.metadata")):
        with open(path, "rb") as stream:
            part = pickle.load(stream)
        if joined is None:
            joined = part
            continue
        for fqn, entry in part.state_dict_metadata.items():
            if fqn in joined.state_dict_metadata and hasattr(entry, "chunks"):
                joined.state_dict_metadata[fqn].chunks.extend(entry.chunks)
            else:
                joined.state_dict_metadata[fqn] = entry
        joined.storage_data.update(part.storage_data)

    class Reader(FileSystemReader):
        def read_metadata(self, *args, **kwargs):
            return joined

    state = destination(spec)
    dcp.load(state, storage_reader=Reader(str(checkpoint)))
    return state


def load_hf_sharded(checkpoint):
    """The sharded safetensors of torch's Hugging Face writer, put together by hand."""
    pieces = {}
    for path in sorted(pathlib.Path(checkpoint).glob("*.safetensors")):
        with open(path, "rb") as stream:
            header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
        sharding = json.loads(header.get("__metadata__", {}).get("DCP_SHARDING_INFO", "{}"))
        for fqn, tensor in load_file(path).items():
            offsets = sharding.get(fqn, {}).get("saved_offsets", [0] * tensor.dim())
            pieces.setdefault(fqn, []).append((offsets, tensor))
    return {fqn: assembled(parts) for fqn, parts in pieces.items()}


def assembled(parts):
    shape = [max(o[d] + t.shape[d] for o, t in parts) for d in range(parts[0][1].dim())]
    whole, seen = poisoned(shape, parts[0][1].dtype), torch.zeros(shape, dtype=torch.int32)
    for offsets, tensor in parts:
        box = tuple(slice(o, o + n) for o, n in zip(offsets, tensor.shape))
        whole[box], seen[box] = tensor, seen[box] + 1
    if not (seen == 1).all():
        raise ValueError("the shards do not cover the tensor exactly once")
    return whole


def load_hf_by_torch(checkpoint, spec):
    from torch.distributed.checkpoint import HuggingFaceStorageReader
    state = destination(spec)
    dcp.load(state, storage_reader=HuggingFaceStorageReader(str(checkpoint)))
    return state


def is_dcp(checkpoint):
    return (pathlib.Path(checkpoint) / ".metadata").exists()


def load_any(checkpoint, spec):
    if is_dcp(checkpoint):
        return load_dcp(checkpoint, spec)
    if any(pathlib.Path(checkpoint).glob("__*.metadata")):
        return load_rank_local(checkpoint, spec)
    return load_hf_sharded(checkpoint)


def inside(boxes, shape):
    mask = torch.zeros(shape, dtype=torch.bool)
    for box in boxes:
        mask[tuple(slice(o, o + n) for o, n in zip(box["offsets"], box["sizes"]))] = True
    return mask


def differences(got, truth, lost_boxes=None):
    """Sentences about every tensor that is not the truth outside its lost boxes."""
    found = []
    for fqn, wanted in truth.items():
        if fqn not in got:
            found.append(f"{fqn} is not there")
        elif not same_outside(got[fqn], wanted, (lost_boxes or {}).get(fqn, [])):
            found.append(f"{fqn}: {first_difference(got[fqn], wanted)}")
    return found


def same_outside(got, wanted, boxes):
    if got.shape != wanted.shape or got.dtype != wanted.dtype or not boxes:
        return same_bits(got, wanted)
    kept = ~inside(boxes, got.shape)
    return same_bits(got[kept], wanted[kept])


def load_and_compare(checkpoint, spec, truth, lost_boxes=None):
    with open(spec) as stream:
        wanted_layout = json.load(stream)
    truth = load_file(truth)
    got = load_dcp(checkpoint, wanted_layout, only=set(truth) if lost_boxes is None else None)
    return differences(got, truth, lost_boxes)


def metadata_attribute(checkpoint, name):
    """What this torch reads of an attribute of .metadata that it does not know."""
    metadata = dcp.FileSystemReader(checkpoint).read_metadata()
    return getattr(metadata, name, None)


def saved_chunks(checkpoint):
    """{fqn: [(offsets, sizes, file, offset, length)]} as torch reads the metadata."""
    from torch.distributed.checkpoint import FileSystemReader
    from torch.distributed.checkpoint.metadata import MetadataIndex

    metadata = FileSystemReader(str(checkpoint)).read_metadata()
    chunks = {}
    for fqn, entry in metadata.state_dict_metadata.items():
        for chunk in getattr(entry, "chunks", ()):
            info = metadata.storage_data[MetadataIndex(fqn, chunk.offsets)]
            chunks.setdefault(fqn, []).append((list(chunk.offsets), list(chunk.sizes),
                                               info.relative_path, info.offset, info.length))
    return chunks


def pickle_globals(path):
    """Every class or function that a pickle names, without loading it."""
    import pickletools

    named, strings, memo = set(), [], []
    with open(path, "rb") as stream:
        for opcode, argument, _ in pickletools.genops(stream):
            if opcode.name == "GLOBAL":
                named.add(tuple(argument.split(" ")))
            elif opcode.name == "STACK_GLOBAL":
                named.add(tuple(strings[-2:]))
            elif "UNICODE" in opcode.name:
                strings.append(argument)
            elif opcode.name == "MEMOIZE":
                memo.append(strings[-1] if strings else None)
            elif opcode.name in ("BINGET", "LONG_BINGET") and argument < len(memo):
                strings.append(memo[argument])
    return named


def tree_hash(directory, but=()):
    """Relative path to content hash of every file, links told as links."""
    hashes = {}
    for path in sorted(pathlib.Path(directory).rglob("*")):
        name = str(path.relative_to(directory))
        if name in but or (path.is_dir() and not path.is_symlink()):
            continue
        hashes[name] = ("-> " + os.readlink(path) if path.is_symlink()
                        else hashlib.sha256(path.read_bytes()).hexdigest())
    return hashes


class NoOtherTorch:
    """Where no Python can have torch 2.6 (3.14 and newer): what it would judge is left out."""

    version = "none (torch 2.6 needs Python 3.13 or older)"

    def ask(self, function, **arguments):
        raise LeftOut()

    def close(self):
        pass


class OtherTorch:
    """The same judge under another torch: one process for the whole run."""

    def __init__(self, python):
        self.child = subprocess.Popen([python, os.path.abspath(__file__)], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.version = self.ask("version")

    def ask(self, function, **arguments):
        request = json.dumps({"function": function, "arguments": arguments})
        self.child.stdin.write(request + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError("the other torch has ended")
        answer = json.loads(line)
        if "problem" in answer:
            raise RuntimeError(f"torch {getattr(self, 'version', '?')}: {answer['problem']}")
        return answer["value"]

    def close(self):
        self.child.stdin.close()
        self.child.wait(timeout=30)


def version():
    return torch.__version__


def serve():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever torch prints must not get between the answers
    for line in sys.stdin:
        request = json.loads(line)
        try:
            arguments = request["arguments"]
            answer = {"value": SERVED[request["function"]](**arguments)}
        except BaseException as problem:  # torch's CheckpointException is no Exception
            answer = {"problem": f"{type(problem).__name__}: {problem}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def specs_of_models(directory):
    import small_models
    return small_models.export_all(directory)


def generated_cases(directory, count, seed, broken):
    import make_cases
    return [str(path) for path in make_cases.make_cases(directory, count, seed, broken)]


SERVED = {"version": version, "load_and_compare": load_and_compare,
          "metadata_attribute": metadata_attribute,
          "specs_of_models": specs_of_models, "generated_cases": generated_cases}


if __name__ == "__main__":
    serve()

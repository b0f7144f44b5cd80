"""Steps of a plan as a person writes them, and what they mean, in loops over numpy arrays.

A tensor is its bytes, [*shape, itemsize], and says of every element whether its own value is lost
(`lost`), was ever saved (`padding`: not), was rounded (`is_cast`, of the whole tensor) or to what
cannot say it (`out_of_range`).
"""

import dataclasses
import math

import numpy as np
import torch

from judge import dtype_of

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
          torch.float8_e5m2]


@dataclasses.dataclass
class Tensor:
    bytes: np.ndarray
    dtype: torch.dtype
    lost: np.ndarray
    padding: np.ndarray
    is_cast: bool = False
    out_of_range: np.ndarray = None

    def __post_init__(self):
        if self.out_of_range is None:
            self.out_of_range = np.zeros(self.lost.shape, bool)

    @property
    def shape(self):
        return self.lost.shape

    def moved(self, move):
        """`move` takes an array whose first axes are those of the tensor."""
        return Tensor(move(self.bytes), self.dtype, move(self.lost), move(self.padding),
                      self.is_cast, move(self.out_of_range))


def of_torch(tensor):
    flat = tensor.detach().contiguous().reshape(-1)
    raw = flat.view(torch.uint8).numpy().copy() if flat.numel() else np.zeros(0, np.uint8)
    none = np.zeros(tuple(tensor.shape), bool)
    return Tensor(raw.reshape(*tensor.shape, tensor.element_size()), tensor.dtype, none,
                  none.copy())


def to_torch(tensor):
    if not tensor.lost.size:
        return torch.empty(tensor.shape, dtype=tensor.dtype)
    flat = torch.from_numpy(np.ascontiguousarray(tensor.bytes).reshape(-1))
    return flat.view(tensor.dtype).reshape(tensor.shape)


def element(dtype, value):
    number = torch.tensor(float(value), dtype=torch.float64) if dtype in FLOATS \
        else torch.tensor(int(value))
    return of_torch(number.to(dtype)).bytes


def inside(box):
    return tuple(slice(o, o + n) for o, n in zip(box["offsets"], box["sizes"]))


def rows(first, length, dim):
    return lambda array: np.take(array, range(first, first + length), axis=dim)


class Reference:
    def __init__(self, truth, others=None):
        self.tensors = {name: of_torch(tensor) for name, tensor in truth.items()}
        self.others, self.dropped, self.trimmed = others or {}, [], 0

    def take(self, steps):
        for step in steps:
            getattr(self, "take_" + step["step"].replace("-", "_"))(step)
        return self

    @property
    def is_lossless(self):
        return not (self.dropped or self.trimmed or
                    any(t.lost.any() or t.is_cast for t in self.tensors.values()))

    def each(self, step, change):
        for name in step["tensors"]:
            self.tensors[name] = change(self.tensors[name])

    def take_retile(self, step):
        pass

    take_reshard = take_retile

    def take_permute_dims(self, step):
        order = step["order"]
        self.each(step, lambda tensor: tensor.moved(
            lambda array: array.transpose(*order, *range(len(order), array.ndim))))

    def take_permute_blocks(self, step):
        begins = np.cumsum([0, *step["sizes"]])
        index = [i for block in step["order"] for i in range(begins[block], begins[block + 1])]
        self.each(step, lambda tensor: tensor.moved(
            lambda array: np.take(array, np.array(index, int), axis=step["dim"])))

    def take_split(self, step):
        whole, first, dim = self.tensors.pop(step["tensor"]), 0, step["dim"]
        for name, length in zip(step["into"], step["sizes"]):
            part = whole.moved(rows(first, length, dim))
            if step.get("drop_dim"):
                part = part.moved(lambda array: array.squeeze(dim))
            self.tensors[name], first = part, first + length

    def take_concat(self, step):
        parts = [self.tensors.pop(name) for name in step["tensors"]]
        join = np.stack if step.get("new_dim") else np.concatenate
        self.tensors[step["into"]] = Tensor(
            join([p.bytes for p in parts], step["dim"]), parts[0].dtype,
            join([p.lost for p in parts], step["dim"]),
            join([p.padding for p in parts], step["dim"]), any(p.is_cast for p in parts),
            join([p.out_of_range for p in parts], step["dim"]))

    def take_pad(self, step):
        def pad(tensor):
            room = list(zip(step["before"], step["after"]))
            padded = Tensor(np.pad(tensor.bytes, [*room, (0, 0)]), tensor.dtype,
                            np.pad(tensor.lost, room),
                            np.pad(tensor.padding, room, constant_values=True), tensor.is_cast,
                            np.pad(tensor.out_of_range, room))
            around = np.pad(np.zeros(tensor.shape, bool), room, constant_values=True)
            padded.bytes[around] = element(tensor.dtype, step["value"])
            return padded
        self.each(step, pad)

    def take_trim(self, step):
        def trim(tensor):
            kept = tensor.moved(lambda array: array[inside(step)])
            self.trimmed += int((~tensor.padding).sum() - (~kept.padding).sum())
            return kept
        self.each(step, trim)

    def take_rename(self, step):
        self.tensors = {step["to"] if name == step["from"] else name: tensor
                        for name, tensor in self.tensors.items()}

    def take_drop(self, step):
        for name in step["tensors"]:
            del self.tensors[name]
            self.dropped.append(name)

    def take_cast(self, step):
        self.each(step, lambda tensor: cast(tensor, dtype_of(step["dtype"])))

    def put(self, tensor, boxes, source):
        tensor = tensor.moved(np.copy)
        for box in boxes:
            tensor.bytes[inside(box)] = source[inside(box)]
            tensor.lost[inside(box)], tensor.padding[inside(box)] = True, False
            tensor.out_of_range[inside(box)] = False
        return tensor

    def take_mask(self, step):
        self.each(step, lambda tensor: self.put(
            tensor, step["boxes"],
            np.broadcast_to(element(tensor.dtype, step["value"]), tensor.bytes.shape)))

    def take_fill(self, step):
        if "from_checkpoint" not in step:
            return self.take_mask(step)
        source = of_torch(self.others[step.get("from_tensor", step["tensors"][0])])
        self.each(step, lambda tensor: self.put(tensor, step["boxes"],
                                                cast(source, tensor.dtype).bytes))

    def take_dequantise(self, step):
        for name in step["tensors"]:
            codes = self.tensors[name]
            factors = self.tensors.pop(name + "_scale_inv")
            index = np.ix_(*[np.arange(n) // b for n, b in zip(codes.shape, step["block"])])
            product = to_torch(codes).float() * to_torch(factors)[
                tuple(torch.from_numpy(i) for i in index)]
            made = of_torch(product.to(dtype_of(step["dtype"])))
            made.lost, made.is_cast = codes.lost | factors.lost[index], True
            made.out_of_range = lost_in_cast(product, made.dtype)
            self.tensors[name] = made


def cast(tensor, dtype):
    """As torch does it: through float32."""
    if tensor.dtype == dtype:
        return tensor
    made = of_torch(to_torch(tensor).float().to(dtype))
    return Tensor(made.bytes, dtype, tensor.lost, tensor.padding, True,
                  tensor.out_of_range | lost_in_cast(to_torch(tensor), dtype))


def lost_in_cast(tensor, dtype):
    """By what becomes of a number: it is beyond the last one by more than half a step."""
    before, after = tensor.double(), tensor.float().to(dtype).double()
    largest = torch.tensor(torch.finfo(dtype).max, dtype=torch.float64)
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    step = largest - (largest.to(dtype).view(bits) - 1).view(dtype).double()
    gone = torch.isnan(after) | (torch.isinf(after) != torch.isinf(before)) | \
        (torch.isfinite(before) & (before.abs() > largest + step / 2))
    return (gone & ~torch.isnan(before)).numpy()


def elements(tensor):
    return math.prod(tensor.shape)

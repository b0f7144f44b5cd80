"""What `stats` says of tensors is what torch and exact fractions say of them.

Counts, least and greatest are equal; mean and deviation are the doubles nearest to the true ones,
computed here from every element as a fraction.
"""

import fractions
import math

import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file

import program
from checks import expect, expect_equal

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
          torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu]
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool]
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def random_bits(dtype, count, generator):
    """Every eighth has an exponent of all ones, none, or is a zero."""
    width = torch.empty(0, dtype=dtype).element_size()
    bytes_ = torch.randint(0, 256, (count * width,), dtype=torch.uint8, generator=generator)
    bits = bytes_.view(BITS[width]).clone()
    bits[::8] = 0
    bits[4::16] = -1 if width > 1 else 255
    if width > 1:
        bits[1::8] &= 0x3F
    return bits.view(dtype)


def tensors():
    generator = torch.Generator().manual_seed(9)
    out = {}
    for dtype in FLOATS:
        name = str(dtype).split(".")[1]
        out[f"{name}.bits"] = random_bits(dtype, 4096, generator)
        normal = torch.randn(300, 70, generator=generator) * 0.02
        out[f"{name}.normal"] = normal.abs().to(dtype) if "e8m0" in name else normal.to(dtype)
    out["float64.far"] = torch.tensor([1e300, -1e300, 1.0, 5e-324, 1e-310], dtype=torch.float64)
    out["float32.far"] = torch.tensor([3e38, -3e38, 1e-45, 1.0, -0.0, math.inf, math.nan])
    out["float32.large"] = torch.randn(3_000_001, generator=generator)
    out["bfloat16.nan"] = torch.full((9,), math.nan, dtype=torch.bfloat16)
    out["float32.empty"] = torch.zeros(0, 4)
    for dtype in INTEGERS:
        name = str(dtype).split(".")[1]
        high = 2 if dtype == torch.bool else 100
        out[name] = torch.randint(0, high, (5, 77), generator=generator).to(dtype)
        if dtype not in (torch.bool, torch.uint8):
            info = torch.iinfo(dtype)
            out[f"{name}.ends"] = torch.tensor([info.min, info.max, -1, 0, 3], dtype=dtype)
    out["complex64"] = torch.tensor([0, 1j, complex(-0.0, 0.0), 2])
    return out


def numbers_of(tensor):
    if tensor.dtype in INTEGERS:
        return [int(value) for value in tensor.flatten().tolist()]
    return tensor.flatten().to(torch.float64).tolist()


def denormals(tensor, numbers):
    if tensor.dtype in INTEGERS or tensor.dtype == torch.float8_e8m0fnu:
        return 0
    least = torch.finfo(tensor.dtype).smallest_normal
    return sum(1 for value in numbers if value != 0 and abs(value) < least)


def deviation(spread):
    """The double nearest to the root of a fraction: squares on both sides of the next half."""
    if spread == 0:
        return 0.0
    shift = max(0, 200 - spread.numerator.bit_length() + spread.denominator.bit_length())
    shift += shift % 2
    root = math.isqrt((spread.numerator << shift) // spread.denominator)
    near = float(fractions.Fraction(root, 1 << (shift // 2)))
    candidates = [math.nextafter(near, 0), near, math.nextafter(near, math.inf)]
    for low, high in zip(candidates, candidates[1:]):
        middle = (fractions.Fraction(low) + fractions.Fraction(high)) / 2
        if spread < middle * middle:
            return low
    return candidates[-1]


def key(value):
    """-0 below 0."""
    return value, math.copysign(1, value)


def histogram(finite):
    counts = {}
    for value in finite:
        if value != 0:
            exponent = (abs(value).bit_length() if isinstance(value, int)
                        else math.frexp(value)[1]) - 1
            bucket = (1 if value > 0 else -1, exponent)
            counts[bucket] = counts.get(bucket, 0) + 1
    order = sorted(counts, key=lambda bucket: bucket[0] * (bucket[1] + 5000))
    return [{"sign": sign, "exponent": exponent, "count": counts[sign, exponent]}
            for sign, exponent in order]


def back(told, tensor):
    """A number of the answer, as an element of the dtype."""
    if isinstance(told, (int, bool)) and tensor.dtype in INTEGERS:
        return int(told)
    return float(torch.tensor(float(told), dtype=torch.float64).to(tensor.dtype))


def compare(told, tensor, exact=True):
    numbers = numbers_of(tensor)
    finite = [value for value in numbers if math.isfinite(value)]
    ordered = [value for value in numbers if not math.isnan(value)]
    expect_equal(told["elements"], tensor.numel(), "elements")
    expect_equal(told["shape"], list(tensor.shape), "shape")
    expect_equal(told["nan"], len(numbers) - len(ordered), "nan")
    expect_equal(told["inf"], len(ordered) - len(finite), "inf")
    expect_equal(told["zero"], numbers.count(0), "zero")
    expect_equal(told["denormal"], denormals(tensor, numbers), "denormal")
    for word, choose in (("min", min), ("max", max)):
        if not ordered:
            expect_equal(told[word], None, word)
            continue
        expect_equal(key(back(told[word], tensor)), key(choose(ordered, key=key)), word)
    expect_equal(told["histogram"], histogram(finite), "histogram")
    if not finite:
        expect_equal((told["mean"], told["std"]), (None, None), "mean and std")
    elif exact:
        exactly = [fractions.Fraction(value) for value in finite]
        mean = sum(exactly) / len(exactly)
        spread = sum(value * value for value in exactly) / len(exactly) - mean * mean
        expect_equal(told["mean"], float(mean), "mean")
        expect_equal(told["std"], deviation(spread), "std")
    else:
        mean = math.fsum(finite) / len(finite)
        std = math.sqrt(math.fsum((value - mean) ** 2 for value in finite) / len(finite))
        expect(abs(told["mean"] - mean) <= 2 * math.ulp(mean), f"mean {told['mean']}, not {mean}")
        expect(abs(told["std"] - std) <= 4 * math.ulp(std), f"std {told['std']}, not {std}")


def run(checks, other, scratch):
    states = tensors()
    dcp.save(states, checkpoint_id=str(scratch / "dcp"))
    told = program.shardwright("stats", scratch / "dcp", "--json").must_exit(0).json["tensors"]
    for name, tensor in states.items():
        if tensor.is_complex():
            continue
        with checks.that(f"statistics of {name} are those of torch's tensor"):
            compare(told[name], tensor, exact=tensor.numel() < 100_000)
    with checks.that("of complex numbers elements and zeros are counted, and that is said"):
        pairs = told["complex64"]
        expect_equal((pairs["elements"], pairs["zero"], pairs["mean"]), (4, 2, None), "complex64")
        expect("complex64" in pairs["note"], f"{pairs}")
    with checks.that("a safetensors file of the same tensors says the same"):
        kept = {name: tensor for name, tensor in states.items() if "fnuz" not in name}
        save_file(kept, scratch / "model.safetensors")
        again = program.shardwright("stats", scratch / "model.safetensors", "--json")
        expect_equal(again.must_exit(0).json["tensors"], {name: told[name] for name in kept},
                     "tensors")

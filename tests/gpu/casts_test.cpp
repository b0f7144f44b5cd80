// Casts by the kernels on the simulated GPU (the rig), compared with the CPU's: every code of 8 and
// 16 bits to every dtype, and floats with every exponent and all values near each rounding. Real
// GPUs test all 2^32 (tests/gpu/run.sh).
#include <doctest/doctest.h>

#include <cstdlib>

#include "rig_executor.h"
#include "slab_cases.h"

using namespace shw;
using namespace shw::test;

namespace {

// Casts contiguous elements in one slab; one job, scaled by `factor` if it is given.
void check_cast(Dtype from, Dtype to, const std::vector<std::byte>& codes,
                const float* factor = nullptr) {
  const auto count = static_cast<std::int64_t>(codes.size() / size_of(from));
  TileJob job{ElementOp::kCast, from, to, {}, {0, 0}, {}};
  if (factor != nullptr) {
    job.op = ElementOp::kScale;
    job.factor = *factor;
  }
  for_each_canonical_pair(
      pair_of(Extents{count}, Extents{size_of(from)}, 0, Extents{size_of(to)}, 0),
      [&](const LayoutPair& pair) { job.layouts = pair; });
  std::vector<std::byte> wanted(static_cast<std::size_t>(count) * size_of(to)), made = wanted;
  REQUIRE(cpu_executor()->run({codes, std::span(&job, 1), {}, wanted}).has_value());
  REQUIRE(RigExecutor().run({codes, std::span(&job, 1), {}, made}).has_value());
  CHECK_MESSAGE(made == wanted, name(from) << " to " << name(to));
}

std::vector<std::byte> all_codes(Dtype dtype) {
  const std::size_t size = size_of(dtype), count = size == 1 ? 256 : 65536;
  std::vector<std::byte> codes(count * size);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(codes.data() + i * size, &i, size);
  return codes;
}

std::vector<std::byte> bytes_of(const std::vector<std::uint32_t>& bits) {
  std::vector<std::byte> bytes(bits.size() * 4);
  std::memcpy(bytes.data(), bits.data(), bytes.size());
  return bytes;
}

// SHARDWRIGHT_RIG_FLOATS: how many floats besides those around roundings; 2^24 take seven seconds.
std::uint64_t floats() {
  const char* asked = std::getenv("SHARDWRIGHT_RIG_FLOATS");
  return asked == nullptr ? std::uint64_t{1} << 15 : std::strtoull(asked, nullptr, 10);
}

// Floats of every sign and exponent: ties for each number of mantissa bits, and their neighbours.
std::vector<std::uint32_t> some_floats() {
  std::vector<std::uint32_t> bits;
  const std::uint64_t step = (std::uint64_t{1} << 32) / floats();
  for (std::uint64_t value = 0; value < std::uint64_t{1} << 32; value += step)
    bits.push_back(static_cast<std::uint32_t>(value));
  for (std::uint32_t exponent = 0; exponent < 512; ++exponent) {
    for (int kept = 0; kept < 23; ++kept) {
      for (std::uint32_t near = 0; near < 3; ++near) {
        bits.push_back((exponent << 23) + (1u << (22 - kept)) + near - 1);
        if (kept < 11) bits.push_back((exponent << 23) + (3u << (21 - kept)) + near - 1);
      }
    }
  }
  return bits;
}

}  // namespace

TEST_CASE("every code of 8 and 16 bits is cast and scaled as the CPU does it") {
  const float factors[] = {0.37f, -1e30f, std::numeric_limits<float>::infinity()};
  for (Dtype from : kFloats) {
    if (size_of(from) > 2) continue;
    const std::vector<std::byte> codes = all_codes(from);
    for (Dtype to : kFloats) {
      if (to != from) check_cast(from, to, codes);
    }
    for (const float& factor : factors) check_cast(from, Dtype::kBfloat16, codes, &factor);
  }
}

TEST_CASE("floats of every exponent and around every rounding are cast as the CPU does it") {
  const std::vector<std::byte> codes = bytes_of(some_floats());
  for (Dtype to : kFloats) {
    if (to != Dtype::kFloat32) check_cast(Dtype::kFloat32, to, codes);
  }
}

TEST_CASE("doubles become what the CPU makes of them, NaNs with their payload") {
  std::vector<std::byte> codes;
  SlabDice dice(5);
  for (int i = 0; i < 20000; ++i) {
    std::uint64_t bits = dice.bits();
    // Half of the doubles are inside or just outside the range of float.
    if (i % 2 == 0)
      bits = (bits & ~(std::uint64_t{0x7FF} << 52)) |
             static_cast<std::uint64_t>(dice.pick(870, 1155)) << 52;
    if (i % 16 == 0) bits |= std::uint64_t{0x7FF} << 52;
    const auto* bytes = reinterpret_cast<const std::byte*>(&bits);
    codes.insert(codes.end(), bytes, bytes + 8);
  }
  for (Dtype to : kFloats) {
    if (to != Dtype::kFloat64) check_cast(Dtype::kFloat64, to, codes);
  }
}

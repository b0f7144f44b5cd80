#include "core/tensor/float_counts.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

using namespace shw;

namespace {

template <class Bits>
Bytes bytes_of(const std::vector<Bits>& elements) {
  Bytes bytes(elements.size() * sizeof(Bits));
  std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

// The reference: classification of each number by the C++ library.
template <class Number>
void count_one(Number number, FloatCounts& counts) {
  ++counts.count;
  switch (std::fpclassify(number)) {
    case FP_NAN:
      ++counts.nan;
      break;
    case FP_INFINITE:
      ++counts.infinite;
      break;
    case FP_SUBNORMAL:
      ++counts.denormal;
      break;
    case FP_ZERO:
      ++counts.zero;
      break;
    default:
      counts.huge += std::fabs(number) >= Number{1LL << 33} ? 1 : 0;
      break;
  }
}

FloatCounts counted(Dtype dtype, BytesView bytes) {
  FloatCounter counter(dtype);
  counter.add(bytes);
  return counter.counts();
}

}  // namespace

TEST_CASE("every float of 16 bits is counted as what it is, more often than a counter holds") {
  std::vector<std::uint16_t> all;
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
      all.push_back(static_cast<std::uint16_t>(bits));
  }
  // bfloat16 is the upper half of a float32 of the same kind.
  FloatCounts brain;
  for (std::uint16_t bits : all)
    count_one(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16), brain);
  CHECK(counted(Dtype::kBfloat16, bytes_of(all)) == brain);
  FloatCounts half = counted(Dtype::kFloat16, bytes_of(all));
  CHECK(half ==
        FloatCounts{3 * 0x10000, 3 * 2 * 1023, 3 * 2, 3 * 2 * 1023, 3 * 2, 3 * 2 * 3 * 1024});
  CHECK(counted(Dtype::kFloat16, Bytes(1 << 18)) == FloatCounts{1 << 17, 0, 0, 0, 1 << 17});
}

TEST_CASE("floats of 32 and 64 bits are counted as the library classifies them") {
  std::mt19937_64 random(5);
  std::vector<std::uint32_t> narrow;
  std::vector<std::uint64_t> wide;
  for (int i = 0; i < 100'000; ++i) {
    std::uint64_t bits = random();
    // Every fourth is at a border: an exponent of all zeros or ones, or no mantissa.
    if (i % 4 == 0) bits &= ~(std::uint64_t{0x7FF} << 52) & ~(std::uint64_t{0xFF} << 23);
    if (i % 8 == 1) bits |= (std::uint64_t{0x7FF} << 52) | (std::uint64_t{0xFF} << 23);
    if (i % 3 == 0) bits &= ~((std::uint64_t{1} << 52) - 1) | (std::uint64_t{0xFF800000});
    if (i % 16 == 5) bits = std::uint64_t{0x7FF} << 52;
    if (i % 16 == 6) bits = std::uint64_t{0xFF} << 23;
    wide.push_back(bits);
    narrow.push_back(static_cast<std::uint32_t>(bits));
  }
  FloatCounts in_narrow, in_wide;
  for (std::uint32_t bits : narrow) count_one(std::bit_cast<float>(bits), in_narrow);
  for (std::uint64_t bits : wide) count_one(std::bit_cast<double>(bits), in_wide);
  CHECK(in_narrow.nan > 0);
  CHECK(in_narrow.infinite > 0);
  CHECK(in_narrow.denormal > 0);
  CHECK(in_wide.infinite > 0);
  CHECK(counted(Dtype::kFloat32, bytes_of(narrow)) == in_narrow);
  CHECK(counted(Dtype::kFloat64, bytes_of(wide)) == in_wide);
}

TEST_CASE("one number that is not normal among thousands that are is never passed over") {
  std::mt19937 random(11);
  auto look = [&]<class Bits>(Dtype dtype, int mantissa_bits, Bits one, auto number) {
    const auto normal = static_cast<Bits>(Bits{1} << mantissa_bits);
    const auto sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
    const auto infinity = static_cast<Bits>(sign - normal);
    const Bits bias = static_cast<Bits>((sign >> 1) / normal - 1);
    const auto huge = static_cast<Bits>((bias + 33) * normal);
    const std::vector<Bits> borders = {0,
                                       1,
                                       static_cast<Bits>(normal - 1),
                                       normal,
                                       static_cast<Bits>(huge - 1),
                                       huge,
                                       static_cast<Bits>(infinity - 1),
                                       infinity,
                                       static_cast<Bits>(infinity + 1),
                                       static_cast<Bits>(sign - 1)};
    for (Bits border : borders) {
      for (Bits bits : {border, static_cast<Bits>(border | sign)}) {
        for (int round = 0; round < 20; ++round) {
          std::vector<Bits> all(5000 + random() % 100, one);
          all[random() % all.size()] = bits;
          FloatCounts expected;
          for (Bits each : all) count_one(number(each), expected);
          CHECK(counted(dtype, bytes_of(all)) == expected);
        }
      }
    }
  };
  look(Dtype::kFloat64, 52, std::bit_cast<std::uint64_t>(1.5),
       [](std::uint64_t bits) { return std::bit_cast<double>(bits); });
  look(Dtype::kFloat32, 23, std::bit_cast<std::uint32_t>(1.5F),
       [](std::uint32_t bits) { return std::bit_cast<float>(bits); });
  look(Dtype::kBfloat16, 7, std::uint16_t{0x3FC0}, [](std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  });
}

TEST_CASE("an element may come in two parts, and zeros as a length") {
  std::mt19937 random(7);
  Bytes bytes(4096);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (Dtype dtype : {Dtype::kFloat16, Dtype::kBfloat16, Dtype::kFloat32, Dtype::kFloat64}) {
    for (int round = 0; round < 200; ++round) {
      std::size_t hole = random() % 1000, at = random() % (bytes.size() - hole);
      Bytes with_hole = bytes;
      std::fill_n(with_hole.begin() + static_cast<std::ptrdiff_t>(at), hole, std::byte{0});
      FloatCounter parts(dtype);
      for (std::size_t done = 0; done < bytes.size();) {
        if (done == at) {
          parts.add_zeros(hole);
          done += hole;
        }
        std::size_t end = done < at ? at : bytes.size();
        std::size_t step = std::min<std::size_t>(random() % 20, end - done);
        parts.add(BytesView(with_hole).subspan(done, step));
        done += step;
      }
      CHECK(parts.counts() == counted(dtype, with_hole));
    }
  }
}

TEST_CASE("what is not a float is not counted") {
  for (Dtype dtype : {Dtype::kInt32, Dtype::kUnknown, Dtype::kFloat8E4m3fn}) {
    CHECK_FALSE(can_be_counted(dtype));
    CHECK(counted(dtype, Bytes(64)) == FloatCounts{});
  }
}

#include "core/tensor/fingerprint.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "core/base/bytes.h"
#include "core/tensor/shape.h"
#include "core/tensor/strided_copy.h"

using namespace shw;

namespace {

Bytes random_bytes(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// The definition, computed word by word.
Fingerprint slow_fingerprint(BytesView elements, std::size_t size) {
  __extension__ using Wide = unsigned __int128;
  const std::size_t parts = (size + 3) / 4;
  Wide sums[2] = {0, 0};
  for (std::size_t i = 0; i < elements.size() / size; ++i) {
    for (std::size_t part = 0; part < parts; ++part) {
      std::uint32_t word = 0;
      for (std::size_t byte = 0; byte < std::min<std::size_t>(4, size); ++byte)
        word |= static_cast<std::uint32_t>(elements[i * size + part * 4 + byte]) << (8 * byte);
      const std::uint64_t k = i * parts + part;
      for (int sum : {0, 1}) {
        Wide weight = Wide{block_weight(sum, k / 64)} *
                      word_weight(sum, static_cast<std::uint32_t>(k % 64)) % kFingerprintPrime;
        sums[sum] = (sums[sum] + weight * word) % kFingerprintPrime;
      }
    }
  }
  return {static_cast<std::uint64_t>(sums[0]), static_cast<std::uint64_t>(sums[1])};
}

Fingerprint fingerprint_of(BytesView elements, std::size_t size, std::uint64_t first = 0) {
  Fingerprint out;
  add_run(out, elements.data(), size, first, elements.size() / size);
  return out;
}

// Fingerprint of a box of a row-major tensor from a buffer with these strides in bytes.
Fingerprint fingerprint_of_box(const std::byte* memory, ExtentsView strides, const Box& box,
                               ExtentsView shape, std::size_t size) {
  Fingerprint out;
  Extents logical = row_major_strides(shape);
  std::int64_t first = 0;
  for (std::size_t d = 0; d < logical.size(); ++d) first += box.offsets[d] * logical[d];
  for_each_canonical_pair(pair_of(box.sizes, strides, 0, logical, first),
                          [&](const LayoutPair& pair) { add_strided(out, memory, pair, size); });
  return out;
}

// Disjoint boxes that fill the shape, made by repeated cuts.
void split(std::mt19937& random, const Box& box, int depth, std::vector<Box>& boxes) {
  std::size_t d = box.sizes.empty() ? 0 : random() % box.sizes.size();
  if (depth == 0 || box.sizes.empty() || box.sizes[d] < 2) {
    boxes.push_back(box);
    return;
  }
  auto at = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(box.sizes[d] - 1)) + 1;
  Box low = box, high = box;
  low.sizes[d] = at;
  high.offsets[d] += at;
  high.sizes[d] -= at;
  split(random, low, depth - 1, boxes);
  split(random, high, depth - 1, boxes);
}

std::uint64_t low_bits(std::mt19937_64& random, std::size_t below) {
  return random() % static_cast<std::uint64_t>(below);
}

}  // namespace

TEST_CASE("a run has the fingerprint that its definition says") {
  for (std::size_t size : {1, 2, 4, 8, 16}) {
    CAPTURE(size);
    Bytes bytes = random_bytes(3'000 * size, size);
    CHECK(fingerprint_of(bytes, size) == slow_fingerprint(bytes, size));
    for (std::size_t count : {0, 1, 3, 15, 16, 17, 63, 64, 65, 128, 200}) {
      BytesView some = BytesView(bytes).first(count * size);
      CHECK(fingerprint_of(some, size) == slow_fingerprint(some, size));
    }
  }
  // The largest words: 64 products fill 64 bits.
  Bytes ones(4 * 1024, std::byte{0xFF});
  CHECK(fingerprint_of(ones, 4) == slow_fingerprint(ones, 4));
}

TEST_CASE("sums of the largest words, block after block, leave no bit behind") {
  for (std::size_t size : {1, 2, 4, 8, 16}) {
    for (std::size_t blocks = 1; blocks < 40; ++blocks) {
      const Bytes bytes(blocks * 64 * std::min<std::size_t>(size, 4), std::byte{0xff});
      CHECK(fingerprint_of(bytes, size) == slow_fingerprint(bytes, size));
    }
  }
}

TEST_CASE("a fingerprint never changes, so that certificates stay true") {
  Bytes bytes(1000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  CHECK(to_hex(fingerprint_of(bytes, 1)) == "0aa26ba8a3fa7c0715ef25b4e79bdad5");
  CHECK(to_hex(fingerprint_of(bytes, 2)) == "007b126e8c93573a02a6603095794320");
  CHECK(to_hex(fingerprint_of(bytes, 4)) == "193c9cb67be39d270bb70a87142b1031");
  CHECK(to_hex(fingerprint_of(bytes, 8)) == "193c9cb67be39d270bb70a87142b1031");
}

TEST_CASE("runs add up wherever they are cut, and zeros add nothing") {
  std::mt19937 random(31);
  for (std::size_t size : {1, 2, 4, 8, 16}) {
    const std::size_t count = 5'000;
    Bytes bytes = random_bytes(count * size, 40 + size);
    for (int round = 0; round < 20; ++round) {
      Fingerprint sum;
      for (std::size_t at = 0; at < count;) {
        std::size_t length = std::min<std::size_t>(random() % 300 + 1, count - at);
        sum += fingerprint_of(BytesView(bytes).subspan(at * size, length * size), size, at);
        at += length;
      }
      CHECK(sum == slow_fingerprint(bytes, size));
    }
    Bytes padded(bytes.size() + 1'000 * size);
    std::copy(bytes.begin(), bytes.end(), padded.begin());
    CHECK(fingerprint_of(padded, size) == fingerprint_of(bytes, size));
  }
}

TEST_CASE("every tiling of a tensor has its fingerprint, in any order and any layout") {
  std::mt19937 random(32);
  for (int round = 0; round < 300; ++round) {
    std::size_t size = std::size_t{1} << random() % 5, ndim = random() % 5;
    Extents shape(ndim);
    for (auto& extent : shape)
      extent = static_cast<std::int64_t>(random() % (ndim < 3 ? 90 : 14)) + 1;
    // Rows that begin with a block, as nearly all do, so that columns are summed side by side.
    if (ndim >= 2 && round % 3 == 0)
      shape.back() = 64 * static_cast<std::int64_t>(random() % 3 + 1);
    if (ndim == 2 && round % 6 == 0) shape.front() = 300;
    auto count = static_cast<std::size_t>(*volume(shape));
    Bytes bytes = random_bytes(count * size, static_cast<std::uint64_t>(round));
    std::vector<Box> boxes;
    split(random, whole(shape), 4, boxes);
    std::shuffle(boxes.begin(), boxes.end(), random);
    Extents strides = byte_strides(shape, size);
    Fingerprint in_place, apart;
    for (const Box& box : boxes) {
      std::int64_t first = 0;
      for (std::size_t d = 0; d < ndim; ++d) first += box.offsets[d] * strides[d];
      in_place += fingerprint_of_box(bytes.data() + first, strides, box, shape, size);
      // The same box in a buffer with its dims in another order.
      std::vector<std::size_t> order(ndim);
      for (std::size_t d = 0; d < ndim; ++d) order[d] = d;
      std::shuffle(order.begin(), order.end(), random);
      Extents own(ndim);
      std::int64_t step = static_cast<std::int64_t>(size);
      for (std::size_t d : order) {
        own[d] = step;
        step *= box.sizes[d];
      }
      Bytes copy(static_cast<std::size_t>(step));
      for_each_canonical_pair(
          pair_of(box.sizes, strides, first, own, 0),
          [&](const LayoutPair& pair) { copy_elements(bytes.data(), copy.data(), pair, size); });
      apart += fingerprint_of_box(copy.data(), own, box, shape, size);
    }
    Fingerprint slow = slow_fingerprint(bytes, size);
    CHECK(in_place == slow);
    CHECK(apart == slow);
  }
}

TEST_CASE("a million flipped bits and exchanged elements all show") {
  std::mt19937_64 random(33);
  const std::size_t size = 2, count = 1 << 14;
  Bytes bytes = random_bytes(count * size, 50);
  auto element = [&](std::size_t i) {
    return fingerprint_of(BytesView(bytes).subspan(i * size, size), size, i);
  };
  auto minus = [](std::uint64_t x, std::uint64_t y) {
    return fingerprint_reduced(x + kFingerprintPrime - y);
  };
  std::size_t missed = 0;
  for (int round = 0; round < 500'000; ++round) {
    std::size_t i = low_bits(random, count), j = low_bits(random, count);
    // The contribution of an element before and after a flipped bit.
    Bytes flipped(bytes.begin() + static_cast<std::ptrdiff_t>(i * size),
                  bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * size));
    flipped[random() % size] ^= static_cast<std::byte>(1u << random() % 8);
    Fingerprint after = fingerprint_of(flipped, size, i), before = element(i);
    missed += after.a == before.a || after.b == before.b ? 1 : 0;
    // Exchanges two different elements.
    BytesView x = BytesView(bytes).subspan(i * size, size),
              y = BytesView(bytes).subspan(j * size, size);
    if (std::equal(x.begin(), x.end(), y.begin())) continue;
    Fingerprint from = element(i), to = fingerprint_of(y, size, i);
    from += element(j);
    to += fingerprint_of(x, size, j);
    missed += minus(from.a, to.a) == 0 || minus(from.b, to.b) == 0 ? 1 : 0;
  }
  CHECK(missed == 0);
}

TEST_CASE("rows and tiles exchanged, shifts and pairs of signs all show") {
  std::mt19937_64 random(34);
  const std::size_t rows = 64, columns = 96, size = 2, row = columns * size;
  const Bytes bytes = random_bytes(rows * row, 51);
  const Fingerprint whole_one = fingerprint_of(bytes, size);
  auto shows = [&](const Bytes& changed) {
    Fingerprint now = fingerprint_of(changed, size);
    return now.a != whole_one.a && now.b != whole_one.b;
  };
  auto begin_of = [&](std::size_t r, std::size_t c) {
    return static_cast<std::ptrdiff_t>(r * row + c * size);
  };
  std::size_t missed = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      Bytes changed = bytes;
      std::swap_ranges(changed.begin() + begin_of(i, 0), changed.begin() + begin_of(i + 1, 0),
                       changed.begin() + begin_of(j, 0));
      missed += shows(changed) ? 0 : 1;
    }
  }
  for (int round = 0; round < 3'000; ++round) {
    // Two aligned tiles of 8 x 8, which are disjoint or equal.
    std::size_t i = low_bits(random, 8), j = low_bits(random, 12), k = low_bits(random, 8),
                l = low_bits(random, 12);
    Bytes changed = bytes;
    for (std::size_t r = 0; r < 8; ++r)
      std::swap_ranges(changed.begin() + begin_of(8 * i + r, 8 * j),
                       changed.begin() + begin_of(8 * i + r, 8 * j + 8),
                       changed.begin() + begin_of(8 * k + r, 8 * l));
    if (changed != bytes) missed += shows(changed) ? 0 : 1;
    // Changes two signs, anywhere or within the same 64 elements.
    changed = bytes;
    std::size_t first = low_bits(random, rows * columns), second = low_bits(random, rows * columns);
    if (round % 2 == 0) second = first / 64 * 64 + second % 64;
    changed[first * size + 1] ^= std::byte{0x80};
    changed[second * size + 1] ^= std::byte{0x80};
    if (first != second) missed += shows(changed) ? 0 : 1;
  }
  for (std::size_t by = 1; by < 200; ++by) {
    Bytes changed = bytes;
    std::rotate(changed.begin(), changed.begin() + static_cast<std::ptrdiff_t>(by * size),
                changed.end());
    missed += shows(changed) ? 0 : 1;
    missed += fingerprint_of(bytes, size, by) == whole_one ? 1 : 0;
  }
  CHECK(missed == 0);
}

TEST_CASE("weights of blocks are below the prime, not zero and all different") {
  for (int sum : {0, 1}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t block = 0; block < 100'000; ++block) {
      std::uint64_t weight = block_weight(sum, block);
      CHECK_UNARY(weight != 0 && weight < kFingerprintPrime);
      seen.insert(weight);
    }
    CHECK(seen.size() == 100'000);
  }
}

TEST_CASE("a fingerprint is 32 digits, and nothing else reads as one") {
  Fingerprint one = fingerprint_of(random_bytes(512, 9), 4);
  CHECK(fingerprint_of_hex(to_hex(one)) == one);
  CHECK(to_hex(Fingerprint{1, 0xAB}) == "000000000000000100000000000000ab");
  for (const char* text : {"", "00", "000000000000000100000000000000AB",
                           "0000000000000001-0000000000000ab", "000000000000000100000000000000a ",
                           "1fffffffffffffff0000000000000000", "ffffffffffffffff0000000000000000"})
    CHECK_FALSE(fingerprint_of_hex(text));
}

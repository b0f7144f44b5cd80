#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "core/formats/zip/byte_stream.h"

using namespace shw;

namespace {

std::byte byte_at(std::uint64_t i) {
  return static_cast<std::byte>(i * 2654435761u >> 7);
}

// Endless bytes up to `size`, in parts of any length; counts how often it is started.
class CountedStream final : public ByteStream {
 public:
  CountedStream(std::uint64_t size, std::uint64_t fails_at) : size_(size), fails_at_(fails_at) {}
  Result<std::size_t> read(std::span<std::byte> out) override {
    const std::size_t length = std::min<std::uint64_t>(out.size(), size_ - at_);
    if (at_ + length > fails_at_) return fail(ErrorKind::kDamaged, "a bad block");
    for (std::size_t i = 0; i < length; ++i) out[i] = byte_at(at_ + i);
    at_ += length;
    return length;
  }

 private:
  std::uint64_t size_, fails_at_, at_ = 0;
};

struct Started {
  int times = 0;
  std::shared_ptr<const ByteSource> source(std::uint64_t size, std::uint64_t real_size,
                                           std::uint64_t fails_at = UINT64_MAX) {
    return streamed_source("item", size, [=, this]() -> Result<std::unique_ptr<ByteStream>> {
      ++times;
      return std::make_unique<CountedStream>(real_size, fails_at);
    });
  }
};

bool is_right(const ByteSource& source, std::uint64_t at, std::size_t length) {
  Bytes read(length);
  if (!source.read(at, read)) return false;
  for (std::size_t i = 0; i < length; ++i) {
    if (read[i] != byte_at(at + i)) return false;
  }
  return true;
}

constexpr std::uint64_t kSize = (9 << 20) + 77;

}  // namespace

TEST_CASE("a stream that is read from front to back is started once") {
  Started started;
  auto source = started.source(kSize, kSize);
  CHECK(source->size() == kSize);
  std::mt19937 dice(1);
  for (std::uint64_t at = 0; at < kSize;) {
    const std::size_t length = std::min<std::uint64_t>(1 + dice() % (3 << 20), kSize - at);
    REQUIRE(is_right(*source, at, length));
    // The last bytes are kept, because a reader of rows returns to them.
    const std::uint64_t back = std::min<std::uint64_t>(at + length, dice() % kStreamKept);
    REQUIRE(is_right(*source, at + length - back, back));
    at += length;
  }
  CHECK(started.times == 1);
}

TEST_CASE("any part of a stream is what it is wherever it was read before") {
  Started started;
  auto source = started.source(kSize, kSize);
  std::mt19937 dice(2);
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t at = dice() % kSize;
    REQUIRE(is_right(*source, at, std::min<std::uint64_t>(dice() % (1 << 20), kSize - at)));
  }
  CHECK(started.times > 5);
  Bytes beyond(2);
  CHECK_FALSE(source->read(kSize - 1, beyond).has_value());
  CHECK(is_right(*source, kSize, 0));
}

TEST_CASE("a stream that ends too soon or breaks is an error, and may be read again up to there") {
  Started started;
  auto short_one = started.source(kSize, kSize - 5);
  CHECK(is_right(*short_one, 0, 1 << 20));
  CHECK_FALSE(is_right(*short_one, kSize - 10, 10));
  CHECK(is_right(*short_one, kSize - 10, 5));
  auto broken = started.source(kSize, kSize, 5 << 20);
  CHECK_FALSE(is_right(*broken, 6 << 20, 10));
  CHECK(is_right(*broken, 1 << 20, 100));
}

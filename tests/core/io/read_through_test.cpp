#include "core/io/read_through.h"

#include <doctest/doctest.h>

#include <cstring>

#include "core/base/page_memory.h"
#include "core/exec/slab.h"

using namespace shw;

namespace {

std::size_t into_page(const std::byte* at) {
  return reinterpret_cast<std::uintptr_t>(at) % kPageBytes;
}

Bytes numbered(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

// Reports a part of itself as a hole.
class WithHole final : public ByteSource {
 public:
  WithHole(Bytes bytes, Extent hole) : bytes_(std::move(bytes)), hole_(hole) {
    std::memset(bytes_.data() + hole_.offset, 0, hole_.length);
  }
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return bytes_.size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }
  std::vector<Extent> extents(std::uint64_t offset, std::uint64_t length) const override {
    const std::uint64_t end = hole_.offset + hole_.length;
    return {{offset, hole_.offset - offset}, hole_, {end, offset + length - end}};
  }
  BytesView bytes() const { return bytes_; }

 private:
  std::string name_ = "with a hole";
  Bytes bytes_;
  Extent hole_;
};

}  // namespace

TEST_CASE("a range is read into memory that is in its page as the range is in the file's") {
  const auto source = memory_source("a file", numbered((2 << 20) + 5000));
  for (std::uint64_t offset : {0, 1, 16, 64, 4080, 4095, 4096, 5000}) {
    Bytes read;
    auto take = [&](BytesView part) -> Status {
      CHECK(into_page(part.data()) == (offset + read.size()) % kPageBytes);
      read.insert(read.end(), part.begin(), part.end());
      return {};
    };
    const std::uint64_t length = source->size() - offset;
    REQUIRE(read_through(*source, offset, length, {take}, nullptr));
    CHECK(read == *read_bytes(*source, offset, length));
  }
}

TEST_CASE("a hole that nobody asks for comes as zeros between the bytes around it") {
  const std::uint64_t begin = 100, length = 3 << 20;
  WithHole source(numbered((3 << 20) + 200), {8192, 2 << 20, true});
  Bytes read;
  auto take = [&](BytesView part) -> Status {
    read.insert(read.end(), part.begin(), part.end());
    return {};
  };
  REQUIRE(read_through(source, begin, length, {take}, nullptr));
  const BytesView all = source.bytes().subspan(begin, length);
  REQUIRE(read.size() == all.size());
  CHECK(std::memcmp(read.data(), all.data(), all.size()) == 0);
}

TEST_CASE("nothing is read of an empty range") {
  int parts = 0;
  auto take = [&](BytesView) -> Status { return ++parts, Status{}; };
  REQUIRE(read_through(*memory_source("a file", numbered(10)), 10, 0, {take}, nullptr));
  CHECK(parts == 0);
}

TEST_CASE("a slab begins a page, whatever its size") {
  for (std::size_t bytes : {1, 100, 4097, 1 << 20, 9 << 20}) {
    Slab slab;
    const auto room = slab.room(bytes);
    CHECK(room.size() == bytes);
    CHECK(into_page(room.data()) == 0);
    std::memset(room.data(), 1, room.size());
  }
}

#include "core/io/coalescing_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

using namespace shw;

namespace {

// Stores the written bytes, and each call.
class KeptFile final : public OutputFile {
 public:
  Status write_at(std::uint64_t offset, BytesView part) override {
    if (fails) return fail(ErrorKind::kIo, "the disk is full");
    const auto end = static_cast<std::size_t>(offset) + part.size();
    bytes.resize(std::max(bytes.size(), end));
    std::copy(part.begin(), part.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    calls.emplace_back(offset, part.size());
    return {};
  }
  Result<bool> reflink_at(std::uint64_t, const ByteSource&, std::uint64_t, std::uint64_t) override {
    return false;
  }
  Status sync() override { return {}; }
  Status finish(std::uint64_t length) override {
    bytes.resize(static_cast<std::size_t>(length));
    return {};
  }

  Bytes bytes;
  std::vector<std::pair<std::uint64_t, std::size_t>> calls;
  bool fails = false;
};

}  // namespace

TEST_CASE("runs that follow each other are written at once whatever the order they come in") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    // Runs of a file from front to back, some with a gap before them.
    std::vector<std::pair<std::size_t, std::size_t>> runs;
    std::size_t end = 0, islands = 0;
    for (std::size_t i = random() % 40; i > 0; --i) {
      const std::size_t gap = random() % 4 == 0 ? 1 + random() % 9 : 0;
      islands += gap != 0 || runs.empty() ? 1 : 0;
      runs.emplace_back(end + gap, 1 + random() % 3000);
      end = runs.back().first + runs.back().second;
    }
    Bytes wanted(end);
    std::shuffle(runs.begin(), runs.end(), random);
    KeptFile file;
    CoalescingFile gathered(file);
    for (const auto& [begin, length] : runs) {
      Bytes part(length);
      for (std::byte& one : part) one = static_cast<std::byte>(random());
      std::copy(part.begin(), part.end(), wanted.begin() + static_cast<std::ptrdiff_t>(begin));
      REQUIRE(gathered.write_at(begin, part));
    }
    CHECK(file.calls.empty());
    REQUIRE(gathered.flush());
    CHECK(file.bytes == wanted);
    CHECK(file.calls.size() == islands);
    CHECK(std::is_sorted(file.calls.begin(), file.calls.end()));
    REQUIRE(gathered.flush());
    CHECK(file.calls.size() == islands);
  }
}

TEST_CASE("what is long is not held and much of what is short is not either") {
  KeptFile file;
  CoalescingFile gathered(file);
  Bytes wanted;
  for (std::size_t i = 0; i < 500; ++i) {
    const Bytes part(i == 250 ? 100'000 : 20'000, static_cast<std::byte>(i));
    REQUIRE(gathered.write_at(wanted.size(), part));
    wanted.insert(wanted.end(), part.begin(), part.end());
    std::size_t written = 0;
    for (const auto& call : file.calls) written += call.second;
    CHECK(wanted.size() - written <= std::size_t{5} << 20);
  }
  REQUIRE(gathered.finish(wanted.size()));
  CHECK(file.bytes == wanted);
}

TEST_CASE("what cannot be written is said when it is written together") {
  KeptFile file;
  CoalescingFile gathered(file);
  REQUIRE(gathered.write_at(0, Bytes(10)));
  file.fails = true;
  CHECK_FALSE(gathered.flush().has_value());
}

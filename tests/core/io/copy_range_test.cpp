#include "core/io/copy_range.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "core/faulty_store.h"
#include "core/memory_store.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

Bytes drawn_bytes(std::mt19937_64& random, std::size_t count) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Bytes of the blocks that are whole in [begin, begin + length), counted one by one.
std::uint64_t bytes_in_whole_blocks(std::uint64_t begin, std::uint64_t length) {
  std::uint64_t bytes = 0;
  for (std::uint64_t block = 0; block < begin + length; block += kShareBlock) {
    if (block >= begin && block + kShareBlock <= begin + length) bytes += kShareBlock;
  }
  return bytes;
}

std::unique_ptr<OutputFile> new_file(Store& store, const std::string& folder,
                                     const std::string& name) {
  auto opened = store.edit_folder(folder);
  REQUIRE(opened.has_value());
  auto file = (*opened)->create_file(name);
  REQUIRE(file.has_value());
  return std::move(*file);
}

Bytes file_in(const Store& store, const std::string& folder, const std::string& name) {
  auto source = store.read_folder(folder).value()->open(name);
  REQUIRE(source.has_value());
  auto bytes = read_bytes(**source, 0, (*source)->size());
  REQUIRE(bytes.has_value());
  return *bytes;
}

// A file system that shares so many times, and then never again.
class SharesAtFirst final : public OutputFile {
 public:
  explicit SharesAtFirst(int times) : times_(times) {}
  Status write_at(std::uint64_t offset, BytesView bytes) override {
    add(offset, bytes.size());
    return {};
  }
  Result<bool> reflink_at(std::uint64_t offset, const ByteSource&, std::uint64_t begin,
                          std::uint64_t length) override {
    CHECK(offset % kShareBlock == 0);
    CHECK(begin % kShareBlock == 0);
    CHECK(length % kShareBlock == 0);
    if (times_-- <= 0) return false;
    add(offset, length);
    return true;
  }
  Status sync() override { return {}; }
  Status finish(std::uint64_t) override { return {}; }

  // The written ranges in order, with adjacent ones merged.
  std::vector<Extent> ranges() {
    std::sort(there_.begin(), there_.end(),
              [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
    std::vector<Extent> ranges;
    for (const Extent& range : there_) {
      if (!ranges.empty() && ranges.back().offset + ranges.back().length == range.offset)
        ranges.back().length += range.length;
      else
        ranges.push_back(range);
    }
    return ranges;
  }

 private:
  void add(std::uint64_t offset, std::uint64_t length) {
    if (length != 0) there_.push_back({offset, length});
  }
  int times_;
  std::vector<Extent> there_;
};

// An endless source of zeros that stores nothing.
class Endless final : public ByteSource {
 public:
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return UINT64_MAX / 2; }
  Status read(std::uint64_t, std::span<std::byte> out) const override {
    std::fill(out.begin(), out.end(), std::byte{0});
    return {};
  }

 private:
  std::string name_ = "endless";
};

}  // namespace

TEST_CASE("a long run is shared but for its ends where both sides are equal and else copied") {
  std::mt19937_64 random(7);
  for (bool shares : {true, false}) {
    MemoryStore store;
    if (shares) store.share_blocks();
    const Bytes bytes = drawn_bytes(random, 4 << 20);
    store.put("/a/from", bytes);
    auto source = store.read_folder("/a").value()->open("from").value();
    for (int i = 0; i < 60; ++i) {
      const std::uint64_t offset = random() % (1 << 20);
      const std::uint64_t length = i % 4 == 0   ? random() % kMinShared
                                   : i % 4 == 1 ? kMinShared
                                                : kMinShared + random() % (1 << 20);
      std::uint64_t at = random() % 100'000;
      if (i % 3 != 0) at += reflink_alignment_padding(offset, at);
      CAPTURE(offset);
      CAPTURE(length);
      CAPTURE(at);
      const bool is_shared = shares && length >= kMinShared && (offset - at) % kShareBlock == 0;
      for (bool is_read : {false, true}) {
        const std::string name = "to" + std::to_string(i) + (is_read ? "r" : "");
        const std::uint64_t before = store.shared_bytes();
        auto file = new_file(store, "/a", name);
        Progress progress;
        Bytes seen;
        ExtentVisitor passing;
        passing.bytes = [&](BytesView part) -> Status {
          seen.insert(seen.end(), part.begin(), part.end());
          return {};
        };
        const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
        const Bytes wanted(first, first + static_cast<std::ptrdiff_t>(length));
        if (is_read) {
          REQUIRE(reflink_or_write(*source, offset, wanted, *file, at));
        } else {
          progress.begin(Phase::kCopying, length, true);
          REQUIRE(copy_range(*source, offset, length, *file, at, &progress, &passing));
          CHECK(progress.done == length);
          CHECK(seen == (is_shared ? Bytes() : wanted));
        }
        REQUIRE(file->finish(at + length));
        Bytes there = file_in(store, "/a", name);
        CHECK(std::all_of(there.begin(), there.begin() + static_cast<std::ptrdiff_t>(at),
                          [](std::byte byte) { return byte == std::byte{0}; }));
        CHECK(Bytes(there.begin() + static_cast<std::ptrdiff_t>(at), there.end()) == wanted);
        CHECK(store.shared_bytes() - before ==
              (is_shared ? bytes_in_whole_blocks(offset, length) : 0));
      }
    }
  }
}

TEST_CASE("where a file system shares a part only the rest of a run is copied") {
  constexpr std::uint64_t kLength = (std::uint64_t{600} << 20) + 10'000, kAt = 5 * kShareBlock + 7;
  const Endless source;
  for (int times : {0, 1, 2, 3}) {
    SharesAtFirst file(times);
    std::uint64_t seen = 0;
    ExtentVisitor passing;
    passing.bytes = [&](BytesView part) -> Status {
      seen += part.size();
      return {};
    };
    REQUIRE(copy_range(source, 7, kLength, file, kAt, nullptr, &passing));
    const std::vector<Extent> ranges = file.ranges();
    REQUIRE(ranges.size() == 1);
    CHECK(ranges[0].offset == kAt);
    CHECK(ranges[0].length == kLength);
    CHECK(seen == (times == 0 ? kLength : 0));  // all of it or nothing
  }
}

TEST_CASE("a disk that is full while it shares is not a reason to copy") {
  MemoryStore memory;
  memory.share_blocks();
  memory.put("/a/from", Bytes(2 << 20, std::byte{1}));
  FaultyStore store(memory, [](const std::string& step, const std::string& path) {
    return step == "share" ? std::optional(Error{ErrorKind::kIo, "no space left", {path}})
                           : std::nullopt;
  });
  auto source = memory.read_folder("/a").value()->open("from").value();
  auto file = new_file(store, "/a", "to");
  auto copied = copy_range(*source, 0, 2 << 20, *file, 0, nullptr);
  REQUIRE_FALSE(copied.has_value());
  CHECK(copied.error().message == "no space left");
  CHECK(memory.shared_bytes() == 0);
}

TEST_CASE("a run of a file of this machine arrives whole whatever its file system can do") {
  TemporaryFolder folder;
  std::mt19937_64 random(11);
  const Bytes bytes = drawn_bytes(random, (3 << 20) + 77);
  put(folder / "from", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  auto source = posix_store().read_folder(folder.path()).value()->open("from").value();
  for (std::uint64_t at : {std::uint64_t{4096 + 100}, std::uint64_t{4096 + 101}}) {
    const std::string name = "to" + std::to_string(at);
    auto file = new_file(posix_store(), folder.path(), name);
    REQUIRE(copy_range(*source, 100, bytes.size() - 100, *file, at, nullptr));
    REQUIRE(file->finish(at + bytes.size() - 100));
    const Bytes there = file_in(posix_store(), folder.path(), name);
    REQUIRE(there.size() == at + bytes.size() - 100);
    CHECK(std::equal(bytes.begin() + 100, bytes.end(),
                     there.begin() + static_cast<std::ptrdiff_t>(at)));
  }
}

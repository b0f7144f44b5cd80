// Hashes items while their file is copied, and compares with the hash of the same bytes read at
// once.
#include "core/exec/copy_hasher.h"

#include <doctest/doctest.h>

#include <random>

#include "core/model/builder.h"

using namespace shw;

namespace {

constexpr std::uint64_t kFile = 300'000;

struct WatchedItem {
  std::int64_t offset = 0, length = 0;
};

std::shared_ptr<const Checkpoint> checkpoint_of(const std::vector<WatchedItem>& items,
                                                const Bytes& bytes) {
  CheckpointBuilder builder;
  builder.set_directory(memory_directory("/ck", {{"a", bytes}, {"b", bytes}}));
  builder.add_tensor("w", Dtype::kUint8, Extents{static_cast<std::int64_t>(kFile)});
  for (const WatchedItem& item : items)
    builder.add_chunk(Extents{0}, Extents{1}, {builder.file("a"), item.offset, item.length});
  builder.add_chunk(Extents{0}, Extents{1}, {builder.file("b"), 0, 10});
  return builder.finish();
}

// Passes the bytes in pieces of any size, and some zeros as holes.
void pass(const ExtentVisitor& parts, BytesView bytes, std::mt19937_64& dice) {
  while (!bytes.empty()) {
    auto length = std::min<std::size_t>(bytes.size(), 1 + dice() % 5000);
    BytesView piece = bytes.first(length);
    bool zeros = std::all_of(piece.begin(), piece.end(), [](auto b) { return b == std::byte{0}; });
    CHECK((zeros && dice() % 2 == 0 ? parts.hole(length) : parts.bytes(piece)).has_value());
    bytes = bytes.subspan(length);
  }
}

Bytes some_bytes(std::mt19937_64& dice) {
  Bytes bytes(kFile);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = i / 20'000 % 3 == 1 ? std::byte{0} : static_cast<std::byte>(dice());
  return bytes;
}

}  // namespace

TEST_CASE("items that go by in a copy have the hash of their bytes") {
  std::mt19937_64 dice(20261123);
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    const Bytes bytes = some_bytes(dice);
    std::vector<WatchedItem> items;
    for (std::int64_t at = 0; at < static_cast<std::int64_t>(kFile);) {
      std::int64_t length = std::min(static_cast<std::int64_t>(kFile) - at,
                                     static_cast<std::int64_t>(1 + dice() % 40'000));
      items.push_back({at, length});
      if (dice() % 4 == 0) items.push_back(items.back());  // an item that two chunks share
      at += length + (dice() % 2 == 0 ? 0 : static_cast<std::int64_t>(dice() % 3000));
    }
    std::shuffle(items.begin(), items.end(), dice);
    auto checkpoint = checkpoint_of(items, bytes);
    const std::vector<std::string> copied{"a"};
    CopyHasher passing(*checkpoint, copied);
    const FileId file = checkpoint->item(ChunkId{0})->file;
    // In two parts: items across the border were not copied whole.
    const std::uint64_t border = dice() % kFile;
    for (auto [begin, end] : {std::pair(std::uint64_t{0}, border), std::pair(border, kFile)}) {
      auto watch = passing.watch("a", begin, end - begin);
      if (watch) pass(*watch, BytesView(bytes).subspan(begin, end - begin), dice);
    }
    for (const WatchedItem& item : items) {
      auto offset = static_cast<std::uint64_t>(item.offset),
           length = static_cast<std::uint64_t>(item.length);
      auto seen = passing.hash_of(file, offset, length);
      bool is_cut = offset < border && offset + length > border;
      CHECK(seen.has_value() == !is_cut);
      if (seen) CHECK(*seen == hash_of(BytesView(bytes).subspan(offset, length)));
    }
  }
}

TEST_CASE("pieces of a copy never cut an item that is in it") {
  std::mt19937_64 dice(7);
  int longer = 0;
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    std::vector<WatchedItem> items;
    const std::int64_t most = round % 2 == 0 ? 40'000 : 4000;
    for (std::int64_t at = 0; at < static_cast<std::int64_t>(kFile);) {
      std::int64_t length = std::min(static_cast<std::int64_t>(kFile) - at,
                                     static_cast<std::int64_t>(1 + dice() % most));
      items.push_back({at, length});
      at += length + (dice() % 2 == 0 ? 0 : static_cast<std::int64_t>(dice() % 3000));
    }
    auto checkpoint = checkpoint_of(items, Bytes(kFile));
    const std::vector<std::string> copied{"a"};
    CopyHasher passing(*checkpoint, copied);
    const std::uint64_t first = dice() % 1000, about = 1 + dice() % 20'000, last = kFile - first;
    std::vector<std::uint64_t> borders{first};
    while (borders.back() < last) {
      const std::uint64_t at = borders.back();
      const std::uint64_t piece = passing.length_of_piece("a", at, last - at, about);
      REQUIRE(piece > 0);
      REQUIRE(piece <= last - at);
      bool is_an_item = std::any_of(items.begin(), items.end(), [&](const WatchedItem& item) {
        return item.offset == static_cast<std::int64_t>(at) &&
               item.length == static_cast<std::int64_t>(piece);
      });
      CHECK((piece <= about || is_an_item));
      longer += piece > about ? 1 : 0;
      borders.push_back(at + piece);
    }
    for (const WatchedItem& item : items) {
      const auto begin = static_cast<std::uint64_t>(item.offset);
      const auto end = begin + static_cast<std::uint64_t>(item.length);
      if (begin < first || end > last) continue;
      for (std::uint64_t border : borders) CHECK_FALSE((border > begin && border < end));
    }
    CHECK(passing.length_of_piece("no such file", 0, 1000, 300) == 300);
    CHECK(passing.length_of_piece("no such file", 0, 200, 300) == 200);
  }
  CHECK(longer > 100);
}

TEST_CASE("what was not watched, is across another item, or is cut short has no hash") {
  std::mt19937_64 dice(1);
  const Bytes bytes = some_bytes(dice);
  const std::int64_t size = kFile;
  auto checkpoint = checkpoint_of(
      {{100, 50}, {120, 100}, {400, 0}, {-5, 10}, {size - 5, 10}, {1000, -1}, {2000, 10}}, bytes);
  const std::vector<std::string> copied{"a", "no such file"};
  CopyHasher passing(*checkpoint, copied);
  CHECK_FALSE(passing.watch("b", 0, kFile).has_value());
  CHECK_FALSE(passing.watch("no such file", 0, kFile).has_value());
  CHECK_FALSE(passing.watch("a", 101, 20).has_value());
  auto watch = passing.watch("a", 0, kFile);
  REQUIRE(watch.has_value());
  const FileId file = checkpoint->item(ChunkId{0})->file;
  CHECK_FALSE(passing.hash_of(file, 100, 50).has_value());
  CHECK(watch->bytes(BytesView(bytes).first(149)).has_value());
  CHECK_FALSE(passing.hash_of(file, 100, 50).has_value());
  CHECK(watch->bytes(BytesView(bytes).subspan(149, 1000)).has_value());
  CHECK(passing.hash_of(file, 100, 50) == hash_of(BytesView(bytes).subspan(100, 50)));
  CHECK_FALSE(passing.hash_of(file, 100, 51).has_value());
  CHECK_FALSE(passing.hash_of(file, 120, 100).has_value());
  CHECK_FALSE(passing.hash_of(file, 400, 0).has_value());
  CHECK_FALSE(passing.hash_of(file, 2000, 10).has_value());
  CHECK_FALSE(passing.hash_of(FileId::kNone, 100, 50).has_value());
  CHECK_FALSE(CopyHasher().hash_of(file, 100, 50).has_value());
}

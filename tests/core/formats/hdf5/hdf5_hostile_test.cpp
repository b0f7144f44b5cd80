// Small HDF5 files that would be large in memory: the result is bounded by the size of the file.
#include <algorithm>

#include "core/formats/hdf5/hdf5_files.h"
#include "core/formats/hdf5/hdf5_walk.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
constexpr std::uint64_t kRootAt = 96;

// Builds the bytes of a file in the older form of HDF5.
struct Forge {
  Bytes bytes = {};

  Forge& zeros(std::size_t count) {
    bytes.resize(bytes.size() + count);
    return *this;
  }
  Forge& text(std::string_view words) {
    auto more = std::as_bytes(std::span(words));
    bytes.insert(bytes.end(), more.begin(), more.end());
    return *this;
  }
  Forge& number(std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes.push_back(std::byte(value >> (8 * i) & 0xFF));
    return *this;
  }
  Forge& message(std::uint16_t type, const Bytes& body) {
    number(type, 2).number(body.size(), 2).zeros(4);
    bytes.insert(bytes.end(), body.begin(), body.end());
    return *this;
  }
  Forge& object(std::uint16_t count, const Bytes& messages) {
    number(1, 1).zeros(1).number(count, 2).number(1, 4).number(messages.size(), 4).zeros(4);
    bytes.insert(bytes.end(), messages.begin(), messages.end());
    return *this;
  }
  // Nodes have room for `symbols` symbols (an even number) and two children.
  Forge& superblock(std::size_t symbols = 2) {
    text("\x89HDF\r\n\x1a\n").zeros(5).number(8, 1).number(8, 1).zeros(1);
    number(symbols / 2, 2)
        .number(1, 2)
        .zeros(4)
        .zeros(8)
        .number(kNowhere, 8)
        .number(kNowhere, 8)
        .number(kNowhere, 8);
    return zeros(8).number(kRootAt, 8).zeros(24);
  }
  Forge& tree(std::uint8_t type, std::uint16_t count, std::uint8_t level = 0) {
    return text("TREE")
        .number(type, 1)
        .number(level, 1)
        .number(count, 2)
        .number(kNowhere, 8)
        .number(kNowhere, 8);
  }
};

// A tree with one node, whose last name is at this place in the heap. No name precedes all names.
constexpr std::uint64_t kGroupTree = 64;
Forge& group_tree(Forge& file, std::uint64_t node, std::uint64_t last_name) {
  return file.tree(0, 1).zeros(8).number(node, 8).number(last_name, 8).zeros(16);
}

struct Symbol {
  std::uint64_t name = 0, object = 0;
};

// A root group with these symbols, whose names are in `heap`, followed by other bytes.
Forge group_of(const std::vector<Symbol>& symbols, std::string_view heap) {
  const std::uint64_t tree = kRootAt + 40, names = tree + kGroupTree, node = names + 32;
  const std::uint64_t data = node + 8 + 40 * symbols.size();
  Forge file;
  file.superblock(symbols.size());
  file.object(1, Forge{}.message(0x11, Forge{}.number(tree, 8).number(names, 8).bytes).bytes);
  group_tree(file, node, symbols.back().name);
  file.text("HEAP").zeros(4).number(heap.size(), 8).number(1, 8).number(data, 8);
  file.text("SNOD").number(1, 1).zeros(1).number(symbols.size(), 2);
  for (const Symbol& symbol : symbols)
    file.number(symbol.name, 8).number(symbol.object, 8).zeros(24);
  return file.text(heap);
}

std::uint64_t end_of_group(std::size_t symbols, std::size_t heap) {
  return kRootAt + 40 + kGroupTree + 32 + 8 + 40 * symbols + heap;
}

// Names of seven digits in sequence, starting at byte 8.
std::string numbered(std::size_t count) {
  std::string heap(8, '\0');
  for (std::size_t i = 0; i < count; ++i) {
    std::string digits = std::to_string(1'000'000 + i);
    heap += digits + '\0';
  }
  return heap;
}

// A dataset of tiles of one byte, followed by its tree.
Bytes tiled(std::uint64_t at, std::uint16_t tiles) {
  auto object = [&](std::uint64_t tree) {
    Forge space, type, layout, messages;
    space.number(1, 1).number(1, 1).zeros(6).number(tiles, 8);
    type.number(0x10, 1).zeros(3).number(1, 4).number(0, 2).number(8, 2).zeros(4);
    layout.number(3, 1).number(2, 1).number(2, 1).number(tree, 8).number(1, 4).number(1, 4).zeros(
        5);
    messages.message(1, space.bytes).message(3, type.bytes).message(8, layout.bytes);
    return Forge{}.object(3, messages.bytes);
  };
  Forge dataset = object(at + object(0).bytes.size());
  // One node above the leaves, each of which has room for 64 tiles.
  constexpr std::uint64_t kRoom = 64, kKey = 24, kEntry = kKey + 8, kNode = 24 + kKey;
  const std::uint64_t leaves = (tiles + kRoom - 1) / kRoom;
  std::uint64_t leaf = at + dataset.bytes.size() + kNode + leaves * kEntry;
  auto key = [&](std::uint64_t offset) -> Forge& {
    return dataset.number(1, 4).zeros(4).number(offset, 8).zeros(8);
  };
  dataset.tree(1, static_cast<std::uint16_t>(leaves), 1);
  for (std::uint64_t first = 0; first < tiles; first += kRoom) {
    key(first).number(leaf, 8);
    leaf += kNode + std::min<std::uint64_t>(kRoom, tiles - first) * kEntry;
  }
  key(tiles);
  for (std::uint64_t first = 0; first < tiles; first += kRoom) {
    const std::uint64_t last = std::min<std::uint64_t>(first + kRoom, tiles);
    dataset.tree(1, static_cast<std::uint16_t>(last - first));
    for (std::uint64_t i = first; i < last; ++i) key(i).number(100, 8);
    key(last);
  }
  return dataset.bytes;
}

// Sets the file size in the superblock.
OpenedCheckpoint open_whole(Forge file) {
  const Bytes end = Forge{}.number(file.bytes.size(), 8).bytes;
  std::copy(end.begin(), end.end(), file.bytes.begin() + 40);
  return open_bytes(std::move(file.bytes));
}

struct Told {
  std::size_t bytes = 0, tiles = 0, arrays = 0;
  bool says_that_more_is_there = false;
};

Told told_of(const Bytes& bytes) {
  auto source = memory_source("m.h5", bytes);
  auto walk = walk_hdf5(source);
  REQUIRE(walk.has_value());
  Told told;
  told.arrays = walk->arrays.size();
  for (const Hdf5NamedArray& array : walk->arrays) {
    told.bytes += array.path.size();
    if (*array.array) told.tiles += (*array.array)->tiles.size();
  }
  for (const auto& [path, error] : walk->lost_groups) {
    told.bytes += path.size();
    told.says_that_more_is_there = true;
  }
  return told;
}

}  // namespace

TEST_CASE("names of an HDF5 group that overlap are not many names") {
  std::string heap(20'000, 'a');
  heap.back() = '\0';
  Bytes bytes = group_of(std::vector<Symbol>(2'000, Symbol{0, kRootAt}), heap).bytes;
  // From 100 kB, names would take 40 MB.
  auto walk = walk_hdf5(memory_source("m.h5", bytes));
  REQUIRE_FALSE(walk.has_value());
  CHECK(walk.error().kind == ErrorKind::kDamaged);
  CHECK(walk.error().message == "names of a group overlap");
}

TEST_CASE("one dataset under thousands of names is reported as often as the file is large") {
  constexpr std::uint16_t kTiles = 3'000;
  constexpr std::size_t kNames = 3'000;
  const std::string heap = numbered(kNames);
  std::vector<Symbol> symbols;
  const std::uint64_t at = end_of_group(kNames, heap.size());
  for (std::size_t i = 0; i < kNames; ++i) symbols.push_back({8 * (i + 1), at});
  Forge file = group_of(symbols, heap);
  REQUIRE(file.bytes.size() == at);
  Bytes dataset = tiled(at, kTiles);
  file.bytes.insert(file.bytes.end(), dataset.begin(), dataset.end());
  Told told = told_of(file.bytes);
  CHECK(told.arrays >= 1);
  CHECK(told.says_that_more_is_there);
  // Nine million tiles, if every name had its own.
  CHECK(told.tiles * sizeof(Hdf5Tile) <= (std::size_t{1} << 20) + 32 * file.bytes.size());

  // A few names of one object are fine, for tied weights.
  symbols.resize(4);
  const std::string few = numbered(4);
  const std::uint64_t next = end_of_group(4, few.size());
  for (Symbol& symbol : symbols) symbol.object = next;
  file = group_of(symbols, few);
  dataset = tiled(next, kTiles);
  file.bytes.insert(file.bytes.end(), dataset.begin(), dataset.end());
  told = told_of(file.bytes);
  CHECK(told.tiles == 4 * kTiles);
  CHECK_FALSE(told.says_that_more_is_there);
}

TEST_CASE(
    "groups that name each other again and again are reported as often as the file is large") {
  // Every group links twice to the next one, which makes 2^40 paths.
  constexpr std::size_t kLevels = 40;
  const std::string heap = numbered(2);
  const std::size_t size = end_of_group(2, heap.size()) - kRootAt;
  Forge file;
  file.superblock();
  for (std::size_t level = 0; level < kLevels; ++level) {
    const std::uint64_t here = kRootAt + level * size, next = here + size;
    const std::uint64_t tree = here + 40, names = tree + kGroupTree, node = names + 32;
    file.object(1, Forge{}.message(0x11, Forge{}.number(tree, 8).number(names, 8).bytes).bytes);
    group_tree(file, node, 16);
    file.text("HEAP").zeros(4).number(heap.size(), 8).number(1, 8).number(node + 88, 8);
    file.text("SNOD").number(1, 1).zeros(1).number(2, 2);
    file.number(8, 8).number(next, 8).zeros(24).number(16, 8).number(next, 8).zeros(24).text(heap);
  }
  Bytes dataset = tiled(kRootAt + kLevels * size, 1);
  file.bytes.insert(file.bytes.end(), dataset.begin(), dataset.end());
  Told told = told_of(file.bytes);
  CHECK(told.arrays >= 1);
  CHECK(told.says_that_more_is_there);
  CHECK(told.bytes <= (std::size_t{1} << 20) + 32 * file.bytes.size());
}

TEST_CASE("continuations of an HDF5 object that overlap are not many bytes") {
  constexpr std::size_t kContinuations = 2'000, kBlock = 65'536;
  const std::uint64_t table = kRootAt + 16 + 24, blocks = table + 24 * kContinuations;
  Forge file;
  file.superblock();
  file.object(
      1,
      Forge{}.message(0x10, Forge{}.number(table, 8).number(24 * kContinuations, 8).bytes).bytes);
  for (std::size_t i = 0; i < kContinuations; ++i)
    file.message(0x10, Forge{}.number(blocks + 8 * i, 8).number(kBlock, 8).bytes);
  for (std::size_t i = 0; i < kContinuations; ++i) file.number(0, 2).number(kBlock - 8, 2).zeros(4);
  file.zeros(kBlock);
  // From 130 kB, messages would take 131 MB.
  auto walk = walk_hdf5(memory_source("m.h5", file.bytes));
  REQUIRE_FALSE(walk.has_value());
  CHECK(walk.error().kind == ErrorKind::kDamaged);
  CHECK(walk.error().message.find("bytes of messages") != std::string::npos);
}

TEST_CASE("elements of HDF5 that nobody wrote are not bytes, however many a shape says") {
  const std::string heap = numbered(2);
  const std::uint64_t at = end_of_group(2, heap.size());
  Forge file = group_of({{8, at}, {16, at}}, heap), space, type, layout, messages;
  space.number(1, 1).number(1, 1).zeros(6).number(std::uint64_t{1} << 40, 8);
  type.number(0x10, 1).zeros(3).number(1, 4).number(0, 2).number(8, 2).zeros(4);
  layout.number(3, 1).number(1, 1).number(kNowhere, 8).number(std::uint64_t{1} << 40, 8).zeros(6);
  messages.message(1, space.bytes).message(3, type.bytes).message(8, layout.bytes);
  file.object(3, messages.bytes);
  auto checkpoint = open_whole(file);
  REQUIRE(checkpoint.has_value());
  auto report = check(**checkpoint, CheckOptions{Depth::kData, nullptr, std::nullopt});
  REQUIRE(report.has_value());
  CHECK(report->verdict == Verdict::kFindings);
}

TEST_CASE("a group of HDF5 in a form that is not read leaves a check undecided") {
  const std::string heap = numbered(2);
  const std::uint64_t at = end_of_group(2, heap.size());
  Forge file = group_of({{8, at}, {16, at}}, heap);
  // Its links are in a fractal heap.
  file.object(
      1, Forge{}.message(0x02, Forge{}.zeros(2).number(96, 8).number(96, 8).zeros(6).bytes).bytes);
  auto checkpoint = open_whole(file);
  REQUIRE(checkpoint.has_value());
  auto report = check(**checkpoint, CheckOptions{Depth::kData, nullptr, std::nullopt});
  REQUIRE(report.has_value());
  std::string told;
  for (const Finding& finding : report->findings)
    if (finding.severity > Severity::kInfo) told += finding.rule + ": " + finding.cause;
  CHECK(told == "");
  CHECK(report->verdict == Verdict::kUndecided);
}

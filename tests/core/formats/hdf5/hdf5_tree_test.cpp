// Contradicting offsets and keys in an HDF5 file, with which h5py fails or reads bytes that were
// never written.
#include <algorithm>

#include "core/formats/hdf5/hdf5_checksum.h"
#include "core/formats/hdf5/hdf5_files.h"
#include "core/formats/hdf5/hdf5_walk.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

// Findings of a deep check, or the reason why the file cannot be opened.
std::string damage_in(Bytes bytes) {
  auto checkpoint = open_bytes(std::move(bytes));
  if (!checkpoint) return checkpoint.error().message;
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(**checkpoint, options);
  REQUIRE(report.has_value());
  std::string causes;
  for (const Finding& finding : report->findings) {
    if (finding.severity == Severity::kError) causes += finding.cause + "\n";
  }
  return causes;
}

bool says(const std::string& causes, std::string_view words) {
  INFO(causes);
  return causes.find(words) != std::string::npos;
}

std::size_t found_at(const Bytes& bytes, const Bytes& what, std::size_t from = 0) {
  auto at = std::search(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.end(),
                        what.begin(), what.end());
  REQUIRE(at != bytes.end());
  return static_cast<std::size_t>(at - bytes.begin());
}

Bytes bytes_of(std::uint64_t value, std::size_t size) {
  Bytes out;
  for (std::size_t i = 0; i < size; ++i) out.push_back(std::byte(value >> (8 * i) & 0xFF));
  return out;
}

void put(Bytes& bytes, std::size_t at, std::uint64_t value, std::size_t size) {
  const Bytes number = bytes_of(value, size);
  std::copy(number.begin(), number.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

// The tree node that lists the tile: the offset of its first key, and the distance between keys.
struct KeysAt {
  std::size_t first = 0, step = 0;
};
KeysAt keys_of(const Bytes& bytes, const std::string& fqn) {
  auto checkpoint = open_bytes(bytes);
  const TensorId tensor = *(*checkpoint)->find(fqn);
  auto item = (*checkpoint)->item((*checkpoint)->chunks(tensor)[0]);
  REQUIRE(item.has_value());
  const std::size_t key = 8 * ((*checkpoint)->shape(tensor).size() + 2);
  const std::size_t child = found_at(bytes, bytes_of(static_cast<std::uint64_t>(item->offset), 8));
  return {child - key, key + 8};
}

}  // namespace

TEST_CASE("a key of a tree of tiles that leads HDF5 past its tile is damage") {
  // (7, 5) of int32 in tiles of (4, 5): two tiles, three keys of a size, a mask and three offsets.
  const Bytes whole = file_bytes("h5py/kinds.h5");
  REQUIRE(damage_in(whole).empty());
  const KeysAt keys = keys_of(whole, "shuffled");
  for (std::size_t key : {0u, 1u, 2u}) {
    // A key with one byte more per element, one off the grid, and one equal to its neighbour's.
    Bytes beside = whole;
    put(beside, keys.first + key * keys.step + 24, key == 2 ? 1 : 4, 8);
    CHECK(says(damage_in(std::move(beside)),
               key == 2 ? "keys of a chunk B-tree" : "does not match its keys"));
    Bytes off_grid = whole;
    put(off_grid, keys.first + key * keys.step + 8, 5, 8);
    CHECK(says(damage_in(std::move(off_grid)), "keys of a chunk B-tree"));
    Bytes unordered = whole;
    put(unordered, keys.first + key * keys.step + 8, key == 0 ? 8 : 0, 8);
    CHECK_FALSE(damage_in(std::move(unordered)).empty());
  }
}

// h5py's visititems stops there, and so does a query for the size of a dataset.
TEST_CASE("a node of a tree of tiles that names a next one where there is none is damage") {
  const Bytes whole = file_bytes("h5py/kinds.h5");
  const std::size_t right = keys_of(whole, "shuffled").first - 8;
  for (std::uint64_t next : {std::uint64_t{0}, ~std::uint64_t{16}}) {
    Bytes led = whole;
    put(led, right, next, 8);
    CHECK(says(damage_in(std::move(led)), "links to a missing node"));
  }
}

TEST_CASE("a file behind a user block is not read, and is not damage") {
  for (std::size_t length : {512u, 2048u}) {
    Bytes behind(length);
    const Bytes whole = file_bytes("h5py/kinds.h5");
    behind.insert(behind.end(), whole.begin(), whole.end());
    auto walk = walk_hdf5(memory_source("m.h5", std::move(behind)));
    REQUIRE_FALSE(walk.has_value());
    CHECK(walk.error().kind == ErrorKind::kUnsupported);
    CHECK(walk.error().message == "begins after a user block");
  }
}

TEST_CASE("elements that are said to be where others do are damage") {
  const Bytes whole = file_bytes("h5py/tiles.h5");
  auto checkpoint = open_bytes(whole);
  REQUIRE((*checkpoint)->tensor_count() > 0);
  const std::string fqn((*checkpoint)->fqn(TensorId{0}));
  auto tiles = (*checkpoint)->chunks(TensorId{0});
  REQUIRE(tiles.size() > 1);
  const auto first = static_cast<std::uint64_t>((*checkpoint)->item(tiles[0])->offset);
  const auto second = static_cast<std::uint64_t>((*checkpoint)->item(tiles[1])->offset);
  const std::size_t named = found_at(whole, bytes_of(second, 8));
  Bytes shared = whole;
  put(shared, named, first, 8);
  CHECK(says(damage_in(std::move(shared)), "where others of it do"));
  Bytes over_superblock = whole;
  put(over_superblock, named, 8, 8);
  CHECK(says(damage_in(std::move(over_superblock)), "what describes the file"));
}

TEST_CASE("a superblock whose extension cannot be read is that of no file") {
  Bytes bytes = file_bytes("h5py/latest.h5");
  put(bytes, 20, bytes.size() - 64, 8);
  put(bytes, 44, hdf5_checksum(BytesView(bytes).first(44)), 4);
  CHECK_FALSE(open_bytes(std::move(bytes)).has_value());
}

TEST_CASE("a layout of before HDF5 1.6 is not read, and is not damage") {
  const Bytes whole = file_bytes("h5py/kinds.h5");
  auto checkpoint = open_bytes(whole);
  REQUIRE(checkpoint.has_value());
  // version 3, class 1, address, length
  std::optional<std::size_t> layout;
  for (std::uint32_t t = 0; t < (*checkpoint)->tensor_count() && !layout; ++t) {
    auto tiles = (*checkpoint)->chunks(TensorId{t});
    auto item = tiles.size() == 1 ? (*checkpoint)->item(tiles[0]) : std::nullopt;
    if (!item || item->length == 0) continue;
    Bytes words = bytes_of(0x0103, 2), at = bytes_of(static_cast<std::uint64_t>(item->offset), 8);
    words.insert(words.end(), at.begin(), at.end());
    auto found = std::search(whole.begin(), whole.end(), words.begin(), words.end());
    if (found != whole.end()) layout = static_cast<std::size_t>(found - whole.begin());
  }
  REQUIRE(layout.has_value());
  for (std::uint64_t version : {1u, 2u, 0u, 6u}) {
    Bytes bytes = whole;
    put(bytes, *layout, version, 1);
    CHECK(damage_in(std::move(bytes)).empty() == (version == 1 || version == 2));
  }
}

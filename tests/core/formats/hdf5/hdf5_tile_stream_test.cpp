// Tiles of HDF5 that are decompressed while they are read.
#include "core/formats/hdf5/hdf5_tile_stream.h"

#include "core/formats/hdf5/hdf5_files.h"

using namespace shw;
using namespace shw::test;

namespace {

Bytes some_bytes(std::size_t count) {
  Bytes bytes(count);
  std::uint32_t state = 7;
  for (std::byte& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

// Shuffles like HDF5's filter: all first bytes, all second ones, ...
Bytes shuffled(const Bytes& bytes, std::size_t element) {
  const std::size_t count = bytes.size() / element;
  Bytes out(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) out[i % element * count + i / element] = bytes[i];
  return out;
}

DeflatedTile tile_of(Bytes stream, std::size_t element, std::uint64_t needed) {
  DeflatedTile tile;
  tile.length = stream.size();
  tile.offset = 3;
  stream.insert(stream.begin(), 3, std::byte{});
  tile.source = memory_source("m.h5", std::move(stream));
  tile.needed = needed;
  tile.shuffled_by = element;
  tile.may_have = [](std::uint64_t) { return true; };
  return tile;
}

Result<Bytes> read_through_stream(const DeflatedTile& tile, std::size_t at_once) {
  SHW_TRY(auto stream, tile_stream(tile));
  Bytes out, part(at_once);
  for (std::size_t made = at_once; made == at_once;) {
    SHW_TRY(made, stream->read(part));
    out.insert(out.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(made));
  }
  return out;
}

}  // namespace

TEST_CASE("a tile that is inflated while it is read holds what it holds as a whole") {
  const Bytes bytes = some_bytes(240'000);
  for (std::size_t element : {1u, 2u, 4u, 8u, 16u}) {
    for (std::size_t needed : {bytes.size(), bytes.size() / 2, std::size_t{16}}) {
      for (bool is_known : {true, false}) {
        CAPTURE(element);
        CAPTURE(needed);
        CAPTURE(is_known);
        DeflatedTile tile = tile_of(stored_stream(shuffled(bytes, element)), element, needed);
        if (is_known) tile.whole = bytes.size();
        auto read = read_through_stream(tile, 4096);
        REQUIRE(read.has_value());
        CHECK(*read == Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(needed)));
      }
    }
  }
}

TEST_CASE("a tile whose stream is of another length or damaged is never read as other numbers") {
  const Bytes bytes = some_bytes(4096);
  for (std::size_t element : {1u, 4u}) {
    CAPTURE(element);
    const Bytes stream = stored_stream(shuffled(bytes, element));
    auto is_refused = [&](DeflatedTile tile) {
      auto read = read_through_stream(tile, 512);
      if (read) return false;
      CHECK(read.error().kind == ErrorKind::kDamaged);
      CHECK(read.error().message.find("compressed chunk") != std::string::npos);
      CHECK(read.error().place.offset == 3);
      return true;
    };
    DeflatedTile cut = tile_of(stream, element, 2048);
    cut.length -= 1;
    CHECK(is_refused(cut));
    // The checksum counts although it comes after all bytes that are read.
    Bytes flipped = stream;
    flipped.back() ^= std::byte{1};
    CHECK(is_refused(tile_of(flipped, element, 2048)));
    CHECK(is_refused(tile_of(stream, element, bytes.size() + element)));
    if (element == 1) continue;
    for (std::uint64_t whole : {bytes.size() - element, bytes.size() + element}) {
      DeflatedTile other = tile_of(stream, element, 2048);
      other.whole = whole;
      CHECK(is_refused(other));
    }
    DeflatedTile impossible = tile_of(stream, element, 2048);
    impossible.may_have = [](std::uint64_t made) { return made != 4096; };
    CHECK(is_refused(impossible));
  }
}

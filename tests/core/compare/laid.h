// Checkpoints in memory: tensors by their row-major bytes, cut into random tiles at any place of a
// file, row-major or with their dims in another order.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/common/codecs.h"
#include "core/io/source.h"
#include "core/model/builder.h"
#include "core/repair/reference.h"

namespace shw::test {

const Format kLaidFormat{.name = "laid", .title = "laid", .codec = &kRawCodec};

struct RankTile {
  Box box;
  bool turned = false;  // the last dim has the largest stride
};

struct TiledTensor {
  std::string fqn;
  Dtype dtype = Dtype::kFloat32;
  Extents shape;
  Bytes bytes;
  std::vector<RankTile> tiles = {};  // none: one tile
};

inline Bytes tile_bytes(const TiledTensor& tensor, const RankTile& tile) {
  std::size_t width = size_of(tensor.dtype);
  Bytes out;
  auto add = [&](const Extents& at) {
    std::size_t from = flat(plus(tile.box.offsets, at), tensor.shape) * width;
    out.insert(out.end(), tensor.bytes.begin() + static_cast<std::ptrdiff_t>(from),
               tensor.bytes.begin() + static_cast<std::ptrdiff_t>(from + width));
  };
  if (!tile.turned) {
    each(tile.box.sizes, add);
    return out;
  }
  Extents turned = tile.box.sizes;
  std::rotate(turned.begin(), turned.end() - 1, turned.end());
  each(turned, [&](const Extents& at) {
    Extents back = at;
    std::rotate(back.begin(), back.begin() + 1, back.end());
    add(back);
  });
  return out;
}

inline Extents turned_strides(const Extents& sizes) {
  Extents turned = sizes;
  std::rotate(turned.begin(), turned.end() - 1, turned.end());
  Extents strides = row_major_strides(turned);
  std::rotate(strides.begin(), strides.begin() + 1, strides.end());
  return strides;
}

// `cut_off`: number of bytes missing at the end of the file. `met`: findings from opening.
// `beside`: other files of the folder with their text.
inline std::shared_ptr<const Checkpoint> laid(
    const std::vector<TiledTensor>& tensors, const std::string& folder = "memory",
    std::size_t cut_off = 0, const std::vector<Finding>& met = {},
    const std::vector<std::pair<std::string, std::string>>& beside = {}) {
  Bytes file;
  CheckpointBuilder builder;
  for (const Finding& finding : met) builder.add_finding(finding);
  builder.set_format(kLaidFormat);
  struct Placed {
    std::int64_t offset, length;
  };
  std::vector<Placed> places;
  for (const TiledTensor& tensor : tensors) {
    std::vector<RankTile> tiles = tensor.tiles;
    if (tiles.empty()) tiles.push_back({whole(tensor.shape)});
    for (const RankTile& tile : tiles) {
      Bytes bytes = tile_bytes(tensor, tile);
      places.push_back(
          {static_cast<std::int64_t>(file.size()), static_cast<std::int64_t>(bytes.size())});
      file.insert(file.end(), bytes.begin(), bytes.end());
    }
  }
  file.resize(file.size() - cut_off);
  std::vector<std::pair<std::string, Bytes>> files{{"data", std::move(file)}};
  for (const auto& [name, text] : beside) {
    const auto bytes = std::as_bytes(std::span(text));
    files.emplace_back(name, Bytes(bytes.begin(), bytes.end()));
  }
  builder.set_directory(memory_directory(folder, std::move(files)));
  std::size_t next = 0;
  for (const TiledTensor& tensor : tensors) {
    std::vector<RankTile> tiles = tensor.tiles;
    if (tiles.empty()) tiles.push_back({whole(tensor.shape)});
    builder.add_tensor(tensor.fqn, tensor.dtype, tensor.shape);
    for (const RankTile& tile : tiles) {
      ItemPlace place{builder.file("data"), places[next].offset, places[next].length};
      ++next;
      StorageId storage = builder.add_storage(place);
      ChunkId chunk = builder.add_chunk(tile.box.offsets, tile.box.sizes);
      builder.set_view(chunk, storage, 0, tile.turned ? turned_strides(tile.box.sizes) : Extents{});
    }
  }
  return builder.finish();
}

// Cuts a box in two, `cuts` times.
inline void cut_at_random(const Box& box, int cuts, std::mt19937& random,
                          std::vector<RankTile>& tiles) {
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < box.sizes.size(); ++d) {
    if (box.sizes[d] > 1) dims.push_back(d);
  }
  if (cuts == 0 || dims.empty()) {
    tiles.push_back({box, !dims.empty() && random() % 3 == 0});
    return;
  }
  std::size_t d = dims[random() % dims.size()];
  auto at = static_cast<std::int64_t>(1 + random() % static_cast<std::uint64_t>(box.sizes[d] - 1));
  Box low = box, high = box;
  low.sizes[d] = at;
  high.offsets[d] += at;
  high.sizes[d] -= at;
  int left = static_cast<int>(random() % static_cast<unsigned>(cuts));
  cut_at_random(low, left, random, tiles);
  cut_at_random(high, cuts - 1 - left, random, tiles);
}

inline std::vector<RankTile> random_tiles(const Extents& shape, std::mt19937& random) {
  std::vector<RankTile> tiles;
  cut_at_random(whole(shape), static_cast<int>(random() % 7), random, tiles);
  std::shuffle(tiles.begin(), tiles.end(), random);
  return tiles;
}

inline Bytes random_bytes(std::size_t count, std::mt19937& random) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace shw::test

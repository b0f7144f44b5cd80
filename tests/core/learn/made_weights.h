// Weights as matrices of bfloat16, and the changes of converters in the simplest form.
#pragma once

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "core/compare/laid.h"
#include "core/learn/learn.h"

namespace shw::test {

// Rows of elements; a vector has one row and `is_vector`.
struct MadeWeight {
  std::vector<std::vector<std::uint16_t>> rows;
  bool is_vector = false;
};
using MadeWeights = std::vector<std::pair<std::string, MadeWeight>>;

inline MadeWeight random_weight(std::size_t rows, std::size_t columns, std::mt19937& random) {
  MadeWeight out;
  for (std::size_t r = 0; r < rows; ++r) {
    out.rows.emplace_back();
    // Numbers near 1, none of them NaN.
    for (std::size_t c = 0; c < columns; ++c)
      out.rows.back().push_back(static_cast<std::uint16_t>(0x3f00 + random() % 0x200));
  }
  return out;
}
inline MadeWeight random_vector(std::size_t size, std::mt19937& random) {
  MadeWeight out = random_weight(1, size, random);
  out.is_vector = true;
  return out;
}
inline MadeWeight filled_vector(std::size_t size, std::uint16_t bits) {
  return {{std::vector<std::uint16_t>(size, bits)}, true};
}

// Piece 0 of each, piece 1 of each, ...
inline MadeWeight joined(const std::vector<MadeWeight>& parts, std::size_t pieces) {
  MadeWeight out;
  for (std::size_t i = 0; i < pieces; ++i) {
    for (const MadeWeight& part : parts) {
      const std::size_t size = part.rows.size() / pieces;
      for (std::size_t r = 0; r < size; ++r) out.rows.push_back(part.rows[i * size + r]);
    }
  }
  return out;
}
inline MadeWeight turned(const MadeWeight& weight) {
  MadeWeight out;
  out.rows.resize(weight.rows.front().size());
  for (const auto& row : weight.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) out.rows[c].push_back(row[c]);
  }
  return out;
}
// A vector is joined by its elements.
inline MadeWeight as_vector(const MadeWeight& columns) {
  MadeWeight out = turned(columns);
  out.is_vector = true;
  return out;
}
// The halves of every head alternate.
inline MadeWeight halves_alternate(const MadeWeight& weight, std::size_t heads) {
  MadeWeight out;
  const std::size_t size = weight.rows.size() / heads;
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t i = 0; i < size; ++i)
      out.rows.push_back(weight.rows[head * size + i % 2 * (size / 2) + i / 2]);
  }
  return out;
}

inline TiledTensor laid_tensor(const std::string& fqn, const MadeWeight& weight) {
  TiledTensor out{fqn, Dtype::kBfloat16, {}, {}};
  if (!weight.is_vector) out.shape.push_back(static_cast<std::int64_t>(weight.rows.size()));
  out.shape.push_back(static_cast<std::int64_t>(weight.rows.front().size()));
  for (const auto& row : weight.rows) {
    const auto bytes = std::as_bytes(std::span(row));
    out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
  }
  return out;
}
// Tensors of one shape along a new dim.
inline TiledTensor stacked(const std::string& fqn, const std::vector<TiledTensor>& cells) {
  TiledTensor out = cells.front();
  out.fqn = fqn;
  out.bytes.clear();
  out.shape.insert(out.shape.begin(), static_cast<std::int64_t>(cells.size()));
  for (const TiledTensor& cell : cells)
    out.bytes.insert(out.bytes.end(), cell.bytes.begin(), cell.bytes.end());
  return out;
}

inline std::vector<TiledTensor> laid_weights(const MadeWeights& weights) {
  std::vector<TiledTensor> out;
  for (const auto& [fqn, weight] : weights) out.push_back(laid_tensor(fqn, weight));
  return out;
}

inline LearnedMap learned_between(const std::vector<TiledTensor>& a,
                                  const std::vector<TiledTensor>& b) {
  auto learned = learn_map(laid(a, "a"), laid(b, "b"), nullptr);
  REQUIRE(learned.has_value());
  return std::move(*learned);
}

// Learns the map in both directions, and makes each side from the other with it.
void check_explained(const std::vector<TiledTensor>& a, const std::vector<TiledTensor>& b);

// The rows of a map as "from, from -> to: join permute", in their order.
std::vector<std::string> row_texts(const ModelMap& map);

}  // namespace shw::test

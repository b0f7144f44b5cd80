// The checkpoint as a matrix: a row per layer, a column per kind of tensor in a layer. A cell has
// all tensors of that kind, such as the experts of a layer. Computed once per report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/session/session.h"
#include "views/tensor_modules.h"

namespace shw {

struct MatrixCell {
  std::uint32_t tensors = 0;
  // Indices of the tensors that a click selects: with the worst mark, otherwise the first; with the
  // worst difference; with the most NaN.
  std::uint32_t first = 0, most_different = 0, most_nan = 0;
  std::uint8_t mark = 0;  // the worst mark, as in Digest::marks
  // The worst to the compared checkpoint: 1 + DifferenceKind, whose first are the worst; 0: none.
  std::uint8_t difference = 0;
  // Share of the compared elements that differ, of the tensor that differs most. 0: not compared.
  double differing_share = 0;
  bool is_read = false;  // elements were read, of which the numbers below are
  std::uint64_t elements = 0, nan = 0, zero = 0;
  std::uint64_t nan_of_one = 0;  // of the tensor `most_nan`
  std::uint64_t absent = 0;      // elements of its tensors that were not read
  double squares = 0;            // sum over the finite elements; 0 where only tiles were read
  double change = 0;  // of the norm per element, to the median of its column: log2 of the ratio
  double bytes = 0;
};

// The layers of one family: "model.layers.", "optim.state.model.layers.".
struct LayerMatrix {
  std::string before;                 // common prefix of the names
  std::vector<std::uint32_t> layers;  // numbers of the rows, ascending
  std::vector<std::string> kinds;     // titles of the columns: "self_attn.q_proj.weight"
  std::vector<MatrixCell> cells;      // row-major
  std::uint32_t tensors = 0;
  double most_bytes = 0, most_differing = 0;
  bool has_norms = false;
  const MatrixCell& cell(std::size_t row, std::size_t column) const {
    return cells[row * kinds.size() + column];
  }
};

// How much of the colour a cell has whose values differ: over three decades of the share of
// elements that differ, and never less than kPalestTint.
inline constexpr double kPalestTint = 0.25;
double difference_tint(const MatrixCell& cell, double most_differing);

// Families with at least two layers, those with the shortest names first, then the largest; at most
// kMaxMatrices.
inline constexpr std::size_t kMaxMatrices = 4;
std::vector<LayerMatrix> make_matrices(const Snapshot& snapshot, const TensorModules& names,
                                       const std::vector<std::uint8_t>& marks);

}  // namespace shw

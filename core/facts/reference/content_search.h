// Searches the reference for the contents of a tensor: whole tensors, and rows within the matrices
// of a layer. For tensors that differ from their counterparts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/facts/check_input.h"
#include "core/model/diagnosis.h"

namespace shw {

// Tensors with fewer distinct values may be equal by chance: norms of ones, zeros.
inline constexpr std::size_t kMinDistinctValues = 16;

struct ContentFound {
  TensorId here{}, there{};  // `there` is in the reference and is not the counterpart of `here`
  bool is_only = true;       // no other tensor of the reference has equal contents
};
// Returns those of `tensors` whose bytes equal another tensor of the reference of the same dtype
// and shape. Of all others 4 KiB are read.
Result<std::vector<ContentFound>> find_contents(const CheckInput& input,
                                                const std::vector<TensorId>& tensors);

// Rows [from, from + count) of `source` in this checkpoint equal rows [at, at + count) of a tensor
// of the reference.
struct MovedRows {
  TensorId source{};
  std::int64_t from = 0, count = 0, at = 0;
};
struct RowsFound {
  TensorId tensor{};            // in this checkpoint, by its counterpart
  std::vector<MovedRows> runs;  // covers all rows of the counterpart, in order
};
// Among matrices of equal row width and dtype: the position of each of the reference's rows in this
// checkpoint. nullopt if a row is not found, or if all rows are in their own tensor. Each row is
// used once.
Result<std::vector<std::vector<RowsFound>>> find_rows(
    const CheckInput& input, const std::vector<std::vector<TensorId>>& groups);

// The biases of these matrices, if their elements moved as the rows did, byte for byte as in the
// reference. Empty if one differs or is missing.
std::vector<RowsFound> find_moved_biases(const CheckInput& input,
                                         const std::vector<RowsFound>& rows);

// The repair that gives `target` the contents of `source`, which has the same form. For formats
// that store names in the data files, where entries cannot be renamed.
PartlyLost copy_content_repair(const Checkpoint& checkpoint, TensorId target, TensorId source);

}  // namespace shw

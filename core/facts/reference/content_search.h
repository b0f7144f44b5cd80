// Where the reference holds what a tensor here holds: whole tensors, and rows among the matrices of
// a layer. Both are asked of tensors that differ from their counterparts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/facts/check_input.h"
#include "core/model/diagnosis.h"

namespace shw {

// Fewer different values may be alike by chance: norms of ones, zeros.
inline constexpr std::size_t kTellingValues = 16;

struct ContentFound {
  TensorId here{}, there{};  // `there` is of the reference, and not the counterpart
  bool is_only = true;       // no other tensor of the reference holds the same
};
// Those of `tensors` whose bytes are those of another tensor of the reference, of the same dtype
// and shape. Of all others 4 KiB are read.
Result<std::vector<ContentFound>> find_contents(const CheckInput& input,
                                                const std::vector<TensorId>& tensors);

// Rows [from, from + count) of `source`, here, are rows [at, at + count) of a tensor of the
// reference.
struct MovedRows {
  TensorId source{};
  std::int64_t from = 0, count = 0, at = 0;
};
struct RowsFound {
  TensorId tensor{};            // here, by its counterpart
  std::vector<MovedRows> runs;  // of all rows that the counterpart has, in their order
};
// Of matrices that share the width of their rows and the dtype: where each row lies that the
// reference has in one of them. Nothing where a row is found nowhere, or where all lie in their own
// tensor. Each row is used once.
Result<std::vector<std::vector<RowsFound>>> find_rows(
    const CheckInput& input, const std::vector<std::vector<TensorId>>& groups);

// `target` with all that `source` holds, which has its form: in formats whose names stand in the
// files of the data as well, nothing is renamed.
PartlyLost with_content_of(const Checkpoint& checkpoint, TensorId target, TensorId source);

}  // namespace shw

// Writes a slice of a tensor to a file for numpy or as text.
//
//   .npy   version 1.0 of numpy's format: rows are the first shown dimension. Types that numpy
//          lacks (bfloat16, float8) become float32, which represents each of their values.
//   .csv   a line "# FQN[slice] dtype", then one line per row; an element that is missing or cannot
//          be read is an empty cell.
#pragma once

#include <cstdint>
#include <string>

#include "core/verbs/values/slice_values.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

enum class ValuesFile : std::uint8_t { kNpy, kCsv };

struct SaveValues {
  Opened opened;
  const VerbOptions& options;
  TensorId tensor{};
  ValuesRequest ask;
  ValuesFile kind = ValuesFile::kNpy;
  std::string path = {};  // see PlaceRequest::path
};
struct SavedValues {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t rows = 0, columns = 0;
  std::string dtype;         // dtype in the file
  std::int64_t missing = 0;  // number of elements without a value: NaN, or empty cells
};

// The dtype of numpy that represents all values, as .npy names it: "<f4"; empty if there is none.
std::string npy_dtype(Dtype dtype);

// Refuses .npy if numpy lacks the dtype (kUnsupported), or if elements have no value and the dtype
// no NaN (kDamaged).
Result<SavedValues> save_values(Store& store, const SaveValues& wanted,
                                Progress* progress = nullptr);

}  // namespace shw::verbs

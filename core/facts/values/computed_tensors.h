// Tensors that are computed while they are read, as part of a checkpoint like any other: all that
// reads, compares or writes a checkpoint takes them as they are.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/source.h"
#include "core/model/checkpoint.h"

namespace shw {

struct ComputedTensor {
  std::string fqn;
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  // Rows along the first dimension that are made together: `first` is a multiple of it.
  std::int64_t rows_at_once = 1;
  // Elements of rows [first, first + count), row-major, in `dtype`. A tensor without dimensions is
  // one row.
  std::function<Result<Bytes>(std::int64_t first, std::int64_t count)> make;
  bool is_rounded = false;  // its elements were rounded to `dtype`
};

struct ComputedPart {
  std::vector<ComputedTensor> tensors;
  std::set<TensorId> replaced = {};  // of the checkpoint: they are not there any more
  // Files that stand in the folder, for those of the same name.
  std::vector<std::shared_ptr<const ByteSource>> files = {};
  std::set<std::string> files_gone = {};
  std::vector<Finding> findings = {};
  // What they are computed of: they change when a file of it does.
  std::vector<std::shared_ptr<const Checkpoint>> made_of = {};
};

// `around` with the computed tensors.
Result<std::shared_ptr<const Checkpoint>> with_computed(std::shared_ptr<const Checkpoint> around,
                                                        ComputedPart part, Progress* progress);
// The computed tensors alone, in a folder that has only the files of `part`.
Result<std::shared_ptr<const Checkpoint>> only_computed(const Directory& folder, ComputedPart part,
                                                        Progress* progress);

// A computed tensor whose elements were rounded.
bool is_rounded_in_computing(const Checkpoint& checkpoint, TensorId tensor);

// As `dtype`, which is float32 or narrower.
Result<Bytes> rounded_to(Dtype dtype, const std::vector<float>& elements);

}  // namespace shw

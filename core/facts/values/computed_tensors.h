// Tensors that are computed while reading, in an ordinary checkpoint: code that reads, compares or
// writes checkpoints needs no special case.
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
  // Number of rows (first dimension) that are computed together: `first` is a multiple of it.
  std::int64_t rows_at_once = 1;
  // Returns the elements of rows [first, first + count), row-major, in `dtype`. A tensor without
  // dimensions has one row.
  std::function<Result<Bytes>(std::int64_t first, std::int64_t count)> make;
  bool is_rounded = false;  // the elements were rounded to `dtype`
};

struct ComputedPart {
  std::vector<ComputedTensor> tensors;
  std::set<TensorId> replaced = {};  // tensors of the checkpoint that are removed
  // Files that are added to the folder or replace those of the same name.
  std::vector<std::shared_ptr<const ByteSource>> files = {};
  std::set<std::string> hidden_files = {};
  std::vector<Finding> findings = {};
  // The checkpoints from which the tensors are computed: the result depends on their files.
  std::vector<std::shared_ptr<const Checkpoint>> made_of = {};
};

// Returns `around` with the computed tensors added.
Result<std::shared_ptr<const Checkpoint>> add_computed_tensors(
    std::shared_ptr<const Checkpoint> around, ComputedPart part, Progress* progress);
// Returns only the computed tensors, in a folder with only the files of `part`.
Result<std::shared_ptr<const Checkpoint>> make_computed_only_checkpoint(const Directory& folder,
                                                                        ComputedPart part,
                                                                        Progress* progress);

// True if the elements of a computed tensor were rounded.
bool is_rounded_in_computing(const Checkpoint& checkpoint, TensorId tensor);

// Rounds to `dtype`, which is float32 or narrower.
Result<Bytes> rounded_to(Dtype dtype, const std::vector<float>& elements);

}  // namespace shw

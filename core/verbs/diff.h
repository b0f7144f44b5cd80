// Compares two checkpoints.
#pragma once

#include <memory>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/compare/compare.h"
#include "core/model/checkpoint.h"
#include "core/verbs/map_options.h"

namespace shw::verbs {

struct ComparedCheckpoints {
  std::shared_ptr<const Checkpoint> a, b;
  CheckpointDifference difference;
  bool is_empty = false;  // DiffOptions::only matches no name of either
};

struct DiffOptions {
  CompareOptions compare = {};
  std::string only = {};    // words and terms as in `ls`; empty: everything
  MapOptions mapping = {};  // used if two programs wrote the checkpoints
};
// Compares two open checkpoints.
Result<ComparedCheckpoints> diff_opened(std::shared_ptr<const Checkpoint> a,
                                        std::shared_ptr<const Checkpoint> b,
                                        const DiffOptions& options, Progress* progress = nullptr);
// Errors about B show paths relative to the working directory.
Result<ComparedCheckpoints> diff(const std::string& a, const std::string& b,
                                 const DiffOptions& options, Progress* progress = nullptr);

}  // namespace shw::verbs

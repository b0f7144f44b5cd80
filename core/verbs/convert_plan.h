// Turns the options of `convert` into steps: what to drop, cast and rename.
#pragma once

#include <string>
#include <vector>

#include "core/verbs/transforms.h"

namespace shw::verbs {

struct ConvertPlan {
  Plan plan;
  std::vector<std::string> notes = {};  // one line each: what is dropped, cast or kept
  bool is_empty = false;                // true: VerbOptions::only matches nothing
};
Result<ConvertPlan> plan_of_convert(const Opened& opened, const VerbOptions& said,
                                    Progress* progress);

// The format of the checkpoint at a path (also of a computed one), if it can be written, otherwise
// safetensors.
Result<std::string> source_format_or_safetensors(const std::string& path, Progress* progress);

// For an adapter made by `extract`: text about how much of the difference its matrices miss.
std::string extraction_note(const Checkpoint& adapter);

// A tensor after the steps before a cast.
struct CastCandidate {
  std::string fqn;
  Dtype dtype = Dtype::kUnknown;
};
// The tensors that a cast of the weights changes. Optimizer states, scales, quantised tensors, and
// tensors that loaders keep in float32 are not cast; `note` counts them with the reason.
struct CastChoice {
  Dtype to = Dtype::kUnknown;
  std::vector<std::string> tensors = {};
  std::string note = {};
};
// kUsage if `dtype` is not one that weights can be cast to. `option` is named in errors.
Result<CastChoice> choose_casts(const Checkpoint& checkpoint,
                                const std::vector<CastCandidate>& candidates,
                                const std::string& option, const std::string& dtype);

}  // namespace shw::verbs

// What `convert` is asked for, as steps: what goes, what its elements become, what it is called.
#pragma once

#include <string>
#include <vector>

#include "core/verbs/transforms.h"

namespace shw::verbs {

struct ConvertPlan {
  Plan plan;
  std::vector<std::string> notes = {};  // a line each: what is left out, cast, and stays
  bool is_empty = false;                // VerbOptions::only fits nothing
};
Result<ConvertPlan> plan_of_convert(const Opened& opened, const VerbOptions& said,
                                    Progress* progress);

// The format of what lies at a path, whatever is computed of it, where it can be written, else
// safetensors.
Result<std::string> format_to_keep(const std::string& path, Progress* progress);

// Of an adapter as `extract` makes it: how much its matrices leave out.
std::string extraction_note(const Checkpoint& adapter);

// A tensor as steps before a cast leave it.
struct CastCandidate {
  std::string fqn;
  Dtype dtype = Dtype::kUnknown;
};
// Which of them a cast of the weights changes. States of an optimizer, scales, what is quantised
// and what loaders keep in float32 stay; `note` says how many and why.
struct CastChoice {
  Dtype to = Dtype::kUnknown;
  std::vector<std::string> tensors = {};
  std::string note = {};
};
// kUsage where `dtype` is none that weights are cast to. `option`: what asks for it.
Result<CastChoice> choose_casts(const Checkpoint& checkpoint,
                                const std::vector<CastCandidate>& candidates,
                                const std::string& option, const std::string& dtype);

}  // namespace shw::verbs

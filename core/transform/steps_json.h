// Steps as a person writes them down, and what they are for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/transform/steps.h"

namespace shw {

//   {"schema": "shardwright/1", "plan": 2, "checkpoint", "fingerprint",
//    "inputs": [{"checkpoint", "fingerprint"}],   others that steps take from
//    "steps": [{"step": "cast", "tensors": ["*.weight"], "dtype": "bfloat16"}, ...],
//    "target": {"format": "safetensors", "shard_bytes": 5000000000, "weights_only": true},
//    "hash"}
struct StepPlan {
  std::string checkpoint, fingerprint;
  struct Input {
    std::string checkpoint, fingerprint;
    std::string original_path = {};  // the relative path that the plan has for it
  };
  std::vector<Input> inputs = {};
  std::vector<Step> steps = {};
  std::string format = {};  // of what is written; empty: as what is read
  std::uint64_t shard_bytes = 0;
  bool weights_only = false;  // what a trainer keeps beside the weights is not copied along
};

// XXH3-128 of all of it but the hash and the path as typed: equal plans do the same.
std::string hash_of(const StepPlan& plan);
std::string steps_to_json(const StepPlan& plan);
// A plan of steps, and no plan that a repair wrote.
bool is_step_plan(std::string_view json);
// kDamaged names the step (from 1) and the key that is wrong: nothing is passed over, a key that no
// step has least of all.
Result<StepPlan> steps_from_json(std::string_view json, const std::string& source);

}  // namespace shw

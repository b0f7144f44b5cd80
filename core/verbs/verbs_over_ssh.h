// Verbs that read every byte, run on the machine of an ssh:// checkpoint: only their answers are
// transferred.
#pragma once

#include <string>

#include "core/compare/difference.h"
#include "core/verbs/values/tensor_numbers.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

struct SshUse {
  bool is_possible = false;
  // Why verbs run here although the checkpoint is reached by ssh: a sentence.
  std::string why_not = {};
};
// Possible if the options name files of one machine reached by ssh, and this shardwright is
// installed there. Costs a login.
SshUse ssh_use(const VerbOptions& options);
// True if the path names a file on the machine of the open checkpoint.
bool is_on_machine_of(const VerbOptions& options, const std::string& path);

// check() of every byte. `before`, the last report of this machine, gives its spec, and its
// diagnoses to the findings that are equal. Plans of the others need plan_over_ssh().
Result<CheckReport> check_over_ssh(const VerbOptions& options, const CheckReport* before,
                                   Progress* progress = nullptr);
// plan() of what a check of every byte finds; a lost element is filled as the options say. Refuses
// from:CHECKPOINT: the plan would name its fill by a path of the other machine.
Result<Plan> plan_over_ssh(const Opened& opened, const VerbOptions& options,
                           Progress* progress = nullptr);
// verify() of a result on another machine.
Result<VerifyReport> verify_over_ssh(const std::string& path, Progress* progress = nullptr);
// The difference of every value of two checkpoints of one machine.
Result<CheckpointDifference> diff_over_ssh(const std::string& a, const std::string& b,
                                           Progress* progress = nullptr);
// compute_tensor_numbers() of the open checkpoint.
Result<CheckpointNumbers> numbers_over_ssh(const Checkpoint& checkpoint, const VerbOptions& options,
                                           Progress* progress = nullptr);
// The text of hash().
Result<std::string> hash_over_ssh(const VerbOptions& options, Progress* progress = nullptr);

}  // namespace shw::verbs

// Verbs that read every byte, run on the machine of an ssh:// checkpoint: only their answers are
// transferred.
#pragma once

#include <string>

#include "core/verbs/values/tensor_numbers.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

// True if the options name files of one machine reached by ssh, and shardwright is installed there.
// Costs a login.
bool can_run_over_ssh(const VerbOptions& options);

// check() of every byte. Plans are made here: `before`, the last report of this machine, gives its
// spec, and its diagnoses to the findings that are equal.
Result<CheckReport> check_over_ssh(const VerbOptions& options, const CheckReport* before,
                                   Progress* progress = nullptr);
// numbers_of_tensors() of the open checkpoint.
Result<CheckpointNumbers> numbers_over_ssh(const Checkpoint& checkpoint, const VerbOptions& options,
                                           Progress* progress = nullptr);
// The text of hash().
Result<std::string> hash_over_ssh(const VerbOptions& options, Progress* progress = nullptr);

}  // namespace shw::verbs

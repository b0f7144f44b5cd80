// A path may stand for the newest step of a run, as scripts that start training want it:
// "runs/llama/@latest", "runs/llama/@latest-complete", also with what lies below each step behind
// it ("runs/llama/@latest/model"). Three trainers in one summer took the newest folder though its
// save had not finished (vllm/speculators #739, RLinf #1469, VeOmni #1172).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/team.h"
#include "core/verbs/options.h"

namespace shw::verbs {

// A folder of that very name is meant itself, where there is one.
bool stands_for_a_step(std::string_view path);

struct NewestStep {
  std::string asked, path;
  std::vector<std::string> passed_over;  // "step_10000: files are gone", newest first
};

// Steps are the folders (or files of torch.save, safetensors) whose names end in a number and are
// alike but for their numbers, those of them that hold a checkpoint deciding which; the greatest
// is the newest. @latest is that one, whatever became of its save. @latest-complete is the newest
// that opens and of which nothing is missing by its metadata: every file is there and long enough,
// the tiles fill their tensors once. No byte of a tensor is read for it. Errors: kUnsupported where
// there is no step, or steps of several names, or no complete one, with why each was passed over;
// those of listing.
Result<NewestStep> newest_step(const std::string& path, Progress* progress = nullptr);

// In all that was said: CHECKPOINT, --against, --fill from:CHECKPOINT. All members of a team take
// the first one's, however many steps are saved meanwhile.
Result<std::vector<NewestStep>> resolve_newest_steps(VerbOptions& verb_options, Progress* progress,
                                                     Team* team = nullptr);

// "runs/@latest-complete is runs/step_9000; passed over, since not complete:
//   step_10000: files are gone"
std::string in_words(const NewestStep& step);

}  // namespace shw::verbs

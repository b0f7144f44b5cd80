// Paths for the newest step of a run: "runs/llama/@latest", "runs/llama/@latest-complete",
// optionally with a subfolder ("runs/llama/@latest/model"). Three trainers took the newest folder
// although its save had not finished (vllm/speculators #739, RLinf #1469, VeOmni #1172).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/team.h"
#include "core/verbs/options.h"

namespace shw::verbs {

// True for such a path, unless a folder with exactly that name exists.
bool is_step_alias(std::string_view path);

struct NewestStep {
  std::string asked, path;
  std::vector<std::string> passed_over;  // "step_10000: files are gone", newest first
};

// Steps are folders (or torch.save and safetensors files) whose names end in a
// number and differ only in numbers; the pattern is that of those with a checkpoint.
// @latest is the greatest step, complete or not. @latest-complete is the greatest
// that opens and has all data by its metadata: files exist and are long enough,
// chunks tile their tensors. Reads no tensor data. Errors: kUnsupported without
// steps, with several patterns, or without a complete step (with reasons); errors of
// listing. Remote paths are listed anew.
Result<NewestStep> newest_step(const std::string& path, Progress* progress = nullptr);

// The absolute path without links or passwords, for output; empty if `path` is empty or still has
// an unresolved step.
std::string resolved_path(const std::string& path);

// The beginning of a request: resolves CHECKPOINT, --against and --fill from:CHECKPOINT. The ranks
// of a team use rank 0's result, even if steps are saved meanwhile. Remote paths are listed anew.
Result<std::vector<NewestStep>> resolve_newest_steps(VerbOptions& verb_options, Progress* progress,
                                                     Team* team = nullptr);

// "runs/@latest-complete is runs/step_9000; passed over, since not complete:
//   step_10000: files are gone"
std::string in_words(const NewestStep& step);

}  // namespace shw::verbs

// Norms and non-finite elements of a run, by module and step. Every float element of a step is read
// once; steps are counted one by one, so that the table can be shown meanwhile. A new step is
// counted without reading the others again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/verbs/run/run_steps.h"

namespace shw::verbs {

// Sums over the float tensors of one module at one step.
struct ModuleNumbers {
  std::uint32_t tensors = 0;   // 0: the step has no float tensor of the module
  std::uint64_t elements = 0;  // number of elements read
  std::uint64_t unread = 0;    // number of elements in no chunk or with unreadable bytes
  std::uint64_t repeated = 0;  // number of elements read more than once, included in `elements`
  std::uint64_t nan = 0, infinite = 0;
  double squares = 0;   // sum over the finite elements
  double norm() const;  // L2 norm of the finite elements
  ModuleNumbers& operator+=(const ModuleNumbers& other);
};

struct StepNumbers {
  std::uint64_t stamp = 0;             // RunStep::stamp when it was counted
  std::vector<ModuleNumbers> modules;  // by index in RunNumbers::modules; may be shorter
  ModuleNumbers all;
  // By module: its first tensor with a NaN or infinite element.
  std::map<std::uint32_t, std::string> odd_tensors;
  std::size_t files_unread = 0;  // files whose tensors are unknown
  std::optional<Error> error;    // why nothing was counted
  bool is_whole() const { return !error && all.unread == 0 && files_unread == 0; }
};

struct RunModule {
  std::string name;    // "model.layers.5.mlp"; empty: tensors outside of modules
  std::string tensor;  // the FQN of its first float tensor
};

struct RunNumbers {
  std::string path;  // RunSteps::path
  std::shared_ptr<const std::vector<RunModule>> modules;
  std::map<std::string, std::shared_ptr<const StepNumbers>, std::less<>> steps;  // by name
};

// Null if the step was not counted, or was written since.
const StepNumbers* numbers_of(const RunNumbers& numbers, const RunStep& step);
// Steps of the run that are not counted; `numbers` may be null.
std::size_t count_uncounted_steps(const RunSteps& run, const RunNumbers* numbers);
// Counts the newest step that is not counted. Fails only with kCancelled.
Result<RunNumbers> count_next_step(const RunSteps& run, RunNumbers numbers, Progress* progress);

}  // namespace shw::verbs

#include "core/verbs/run/run_numbers.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "core/facts/values/tensor_statistics.h"
#include "core/formats/open.h"
#include "core/model/module_name.h"
#include "core/rules/rules.h"
#include "core/verbs/values/tensor_numbers.h"

namespace shw::verbs {
namespace {

// Module names of all steps; a step may add some.
class ModuleNames {
 public:
  explicit ModuleNames(const RunNumbers& numbers) {
    if (numbers.modules != nullptr) modules_ = *numbers.modules;
    for (std::uint32_t m = 0; m < modules_.size(); ++m) index_.emplace(modules_[m].name, m);
  }
  std::uint32_t index_of(const std::string& fqn) {
    std::string name = fqn.substr(0, module_length(fqn));
    auto [found, is_new] = index_.emplace(name, static_cast<std::uint32_t>(modules_.size()));
    if (is_new) modules_.push_back({std::move(name), fqn});
    return found->second;
  }
  std::vector<RunModule> release_modules() { return std::move(modules_); }

 private:
  std::vector<RunModule> modules_;
  std::unordered_map<std::string, std::uint32_t> index_;
};

ModuleNumbers numbers_of_tensor(const TensorStatistics& tensor) {
  const Statistics& s = tensor.statistics;
  ModuleNumbers numbers;
  numbers.tensors = 1;
  numbers.elements = s.elements;
  numbers.unread = static_cast<std::uint64_t>(std::max<std::int64_t>(0, tensor.missing)) +
                   static_cast<std::uint64_t>(std::max<std::int64_t>(0, tensor.unread));
  numbers.repeated = static_cast<std::uint64_t>(std::max<std::int64_t>(0, tensor.repeated));
  numbers.nan = s.nan;
  numbers.infinite = s.infinite;
  numbers.squares = sum_of_squares(s);
  return numbers;
}

// Fails only with kCancelled; other errors are stored in `numbers`.
Status count_step(const RunStep& step, ModuleNames& names, StepNumbers& numbers,
                  Progress* progress) {
  auto opened = open_checkpoint(step.path, progress);
  if (!opened && opened.error().kind == ErrorKind::kCancelled) return cancelled_error();
  if (!opened) {
    numbers.error = std::move(opened).error();
    return {};
  }
  const Checkpoint& checkpoint = **opened;
  auto counted = statistics_of(checkpoint, float_tensors(checkpoint), progress);
  if (!counted && counted.error().kind == ErrorKind::kCancelled) return cancelled_error();
  if (!counted) {
    numbers.error = std::move(counted).error();
    return {};
  }
  numbers.files_unread = unreadable_subjects(checkpoint).size();
  for (const TensorStatistics& tensor : *counted) {
    const std::uint32_t module = names.index_of(tensor.fqn);
    if (numbers.modules.size() <= module) numbers.modules.resize(module + 1);
    const ModuleNumbers more = numbers_of_tensor(tensor);
    numbers.modules[module] += more;
    numbers.all += more;
    if (more.nan + more.infinite != 0) numbers.odd_tensors.emplace(module, tensor.fqn);
  }
  return {};
}

}  // namespace

double ModuleNumbers::norm() const {
  return std::sqrt(squares);
}

ModuleNumbers& ModuleNumbers::operator+=(const ModuleNumbers& other) {
  tensors += other.tensors;
  elements += other.elements;
  unread += other.unread;
  repeated += other.repeated;
  nan += other.nan;
  infinite += other.infinite;
  squares += other.squares;
  return *this;
}

const StepNumbers* numbers_of(const RunNumbers& numbers, const RunStep& step) {
  auto found = numbers.steps.find(step.name);
  const bool is_known = found != numbers.steps.end() && found->second->stamp == step.stamp;
  return is_known ? found->second.get() : nullptr;
}

std::size_t count_uncounted_steps(const RunSteps& run, const RunNumbers* numbers) {
  if (numbers == nullptr || numbers->path != run.path) return run.steps.size();
  return static_cast<std::size_t>(std::ranges::count_if(
      run.steps, [&](const RunStep& step) { return numbers_of(*numbers, step) == nullptr; }));
}

Result<RunNumbers> count_next_step(const RunSteps& run, RunNumbers numbers, Progress* progress) {
  if (numbers.path != run.path) numbers = {run.path, nullptr, {}};
  auto next = std::ranges::find_if(
      run.steps, [&](const RunStep& step) { return numbers_of(numbers, step) == nullptr; });
  if (next == run.steps.end()) return numbers;
  ModuleNames names(numbers);
  auto counted = std::make_shared<StepNumbers>();
  counted->stamp = next->stamp;
  SHW_CHECK(count_step(*next, names, *counted, progress));
  numbers.modules = std::make_shared<const std::vector<RunModule>>(names.release_modules());
  numbers.steps.insert_or_assign(next->name, std::move(counted));
  return numbers;
}

}  // namespace shw::verbs

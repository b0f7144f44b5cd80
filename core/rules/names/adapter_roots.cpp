#include "core/rules/names/adapter_roots.h"

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "core/base/words.h"
#include "core/facts/names/wrapper_marks.h"
#include "core/rules/names/adapter_weights.h"
#include "core/rules/names/plan_names.h"
#include "core/rules/names/tuned_parameters.h"

namespace shw {
namespace {

// PEFT's name behind another part: "base_model.model.x" of "_orig_mod.base_model.model.x". Empty
// where nothing in the name tells it.
std::string name_behind_part(std::string_view fqn) {
  const std::size_t at = fqn.find("." + std::string(kPeftRoot));
  return at == std::string_view::npos ? std::string() : std::string(fqn.substr(at + 1));
}

}  // namespace

void report_wrong_roots(const Facts& facts, const AdapterConfig& config,
                        std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  // LoRA's names have a report of their own, because other trainers write them as well.
  if (!opened_adapter_file(c) || config.peft_type == "LORA") return;
  constexpr std::string_view kBase = "base_model.";
  std::vector<std::string> subjects;
  std::vector<std::pair<TensorId, std::string>> names;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = c.fqn(tensor);
    if (fqn.starts_with(kBase) || !has_ending_of_type(config, fqn)) continue;
    subjects.emplace_back(fqn);
    if (std::string name = name_behind_part(fqn); !name.empty())
      names.emplace_back(tensor, std::move(name));
  }
  if (subjects.empty()) return;
  const bool are_all_known = names.size() == subjects.size();
  Finding finding = adapter_contradiction(
      fmt::format(
          "{} of {} {} not begin with `{}` (for example {}). PEFT finds no module for such names "
          "and skips them with a warning: the base model runs without what they learned.",
          human_count(subjects.size()), plural(c.tensor_count(), "name"),
          subjects.size() == 1 ? "does" : "do", kBase, subjects.front()),
      subjects);
  if (are_all_known) plan_new_names(facts, std::move(names), finding);
  findings.push_back(std::move(finding));
}

}  // namespace shw

#include "core/rules/names/plan_names.h"

#include <fmt/core.h>

#include <unordered_set>

#include "core/base/words.h"
#include "core/facts/names/wrapper_marks.h"

namespace shw {
namespace {

// Also renames entries whose names belong to a renamed tensor: "_extra_state", option groups.
void add_objects(const Facts& facts, Renamed& first) {
  const auto objects = facts.checkpoint.objects();
  for (std::size_t i = 0; i < objects.size(); ++i) {
    Unwrapped bare = without_wrappers(objects[i].fqn, false);
    if (!bare.marks.empty()) first.objects.emplace_back(i, std::move(bare.name));
  }
}

}  // namespace

void plan_new_names(const Facts& facts, std::vector<std::pair<TensorId, std::string>> names,
                    Finding& finding) {
  const Checkpoint& c = facts.checkpoint;
  std::unordered_set<std::string> taken;
  std::unordered_set<std::string_view> left;
  for (const auto& [tensor, name] : names) left.insert(c.fqn(tensor));
  for (const auto& [tensor, name] : names) {
    const bool is_there = c.find(name) && !left.contains(name);
    if (taken.insert(name).second && !is_there) continue;
    finding.cause +=
        fmt::format(" Two tensors would get the name {}, so nothing is renamed.", name);
    finding.evidence.emplace_back("would_be_twice", name);
    return;
  }
  if (!c.format().traits.has_index && c.format().rewrite != Rewrite::kFiles) {
    finding.cause +=
        " This format cannot be rewritten: run `shardwright convert CHECKPOINT --to safetensors "
        "--out NEW` first, then repair the result.";
    return;
  }
  const std::size_t count = names.size();
  for (auto& [tensor, name] : names)
    finding.diagnoses.emplace_back(Renamed{tensor, std::move(name), {}});
  if (finding.diagnoses.empty()) return;
  if (c.format().traits.has_index) add_objects(facts, std::get<Renamed>(finding.diagnoses.front()));
  finding.remedy = Remedy{"rename", true,
                          fmt::format("Give {} the name{} that the model reads: no element "
                                      "changes.",
                                      plural(count, "tensor"), count == 1 ? "" : "s")};
}

}  // namespace shw

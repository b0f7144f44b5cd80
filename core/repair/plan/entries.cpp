#include "core/repair/plan/entries.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "core/base/words.h"
#include "core/repair/plan/operations.h"

namespace shw {
namespace {

std::optional<std::size_t> index_of_entry(const Checkpoint& checkpoint, const std::string& fqn) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i) {
    if (checkpoint.objects()[i].fqn != fqn) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

tl::unexpected<Error> entry_plan_error(std::string why, const std::string& fqn) {
  return fail(ErrorKind::kUnsupported, "no safe repair: " + std::move(why),
              Place{.file = {}, .tensor = fqn});
}

bool is_permutation(const std::vector<PlannedEntry>& entries) {
  std::set<std::size_t> replaced, used;
  for (const PlannedEntry& entry : entries) {
    replaced.insert(entry.object);
    used.insert(entry.item_of);
  }
  return std::includes(used.begin(), used.end(), replaced.begin(), replaced.end());
}

Operation operation_of(const Finding& finding, const std::vector<PlannedEntry>& added) {
  Operation made;
  made.lossless = is_permutation(added);
  made.kind = made.lossless ? OperationKind::kRename : OperationKind::kFill;
  made.rule = finding.rule;
  for (const ReplacedEntry& entry : finding.entries) made.subjects.push_back(entry.fqn);
  const ReplacedEntry& first = finding.entries.front();
  made.text = "let " + first.fqn + " say what " + first.from + " says";
  if (added.size() > 1)
    made.text += fmt::format(", and {} likewise", plural(added.size() - 1, "more entry"));
  made.text += added.size() > 1 ? ": their records point there, no byte moves"
                                : ": its record points there, no byte moves";
  return made;
}

}  // namespace

Status plan_entries(const Checkpoint& checkpoint, const Finding& finding, bool damaged,
                    Plan& plan) {
  if (finding.entries.empty()) return {};
  if (damaged)
    return entry_plan_error("data that it needs is damaged", finding.entries.front().fqn);
  if (!checkpoint.format().traits.has_index)
    return entry_plan_error("this format has no records of entries", finding.entries.front().fqn);
  Plan draft;
  draft.objects = plan.objects;
  draft.entries = plan.entries;
  std::vector<PlannedEntry> added;
  for (const ReplacedEntry& entry : finding.entries) {
    auto object = index_of_entry(checkpoint, entry.fqn),
         from = index_of_entry(checkpoint, entry.from);
    if (!object || !from) return entry_plan_error("an entry that it needs is missing", entry.fqn);
    added.push_back({*object, *from});
    draft.entries.push_back(added.back());
  }
  SHW_CHECK(check_entries(checkpoint, draft));
  plan.entries = std::move(draft.entries);
  plan.operations.push_back(operation_of(finding, added));
  return {};
}

bool keeps_every_entry(const Plan& plan) {
  return is_permutation(plan.entries);
}

std::vector<std::size_t> items_after(const Checkpoint& checkpoint, const Plan& plan) {
  std::vector<std::size_t> after(checkpoint.objects().size());
  std::iota(after.begin(), after.end(), std::size_t{0});
  for (const PlannedEntry& entry : plan.entries) after[entry.object] = entry.item_of;
  return after;
}

Status check_entries(const Checkpoint& checkpoint, const Plan& plan) {
  auto objects = checkpoint.objects();
  std::set<std::size_t> seen;
  for (const PlannedEntry& entry : plan.entries) {
    if (entry.object >= objects.size() || entry.item_of >= objects.size())
      return entry_plan_error("there is no such entry", "");
    const NonTensorEntry &to = objects[entry.object], &from = objects[entry.item_of];
    if (!to.item || !from.item)
      return entry_plan_error("an entry that it needs has no item", to.fqn);
    if (!seen.insert(entry.object).second)
      return entry_plan_error("the plan replaces it twice", to.fqn);
    for (const RenamedObject& renamed : plan.objects) {
      if (renamed.object == entry.object)
        return entry_plan_error("the plan both replaces and renames it", to.fqn);
    }
  }
  return {};
}

}  // namespace shw

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <set>

#include "core/base/checked.h"
#include "core/transform/named_entries.h"
#include "core/transform/steps.h"

namespace shw {
namespace {

// True if an entry without a name exists, which torch may save: a search by name cannot find it.
bool has_unnamed_entry(const Checkpoint& source) {
  const auto objects = source.objects();
  return source.find("") || std::any_of(objects.begin(), objects.end(),
                                        [](const NonTensorEntry& row) { return row.fqn.empty(); });
}

// Refuses duplicate names: a loader would see only one of the entries.
Status check_names_differ(TargetState& all, bool may_be_empty) {
  const EntryNames& known = entry_names_of(all);
  if (known.has_unique_names() && (may_be_empty || !known.has(""))) return {};
  sort_and_remove_dropped(all);  // so that the error names the right entry
  std::set<std::string_view> names;
  auto is_new = [&](const std::string& fqn) -> Status {
    if (fqn.empty() && !may_be_empty) return fail(ErrorKind::kUsage, "an entry needs a name");
    if (names.insert(fqn).second) return {};
    return fail(ErrorKind::kUsage, "two entries would have this name",
                Place{.file = {}, .tensor = fqn});
  };
  for (const TargetEntry& entry : all.tensors) SHW_CHECK(is_new(entry.fqn));
  for (const TargetNonTensorEntry& object : all.objects) SHW_CHECK(is_new(object.fqn));
  return {};
}

bool has_valid_pad_counts(const PadStep& step) {
  auto is_count = [](std::int64_t number) { return number >= 0; };
  return step.before.size() == step.after.size() &&
         std::all_of(step.before.begin(), step.before.end(), is_count) &&
         std::all_of(step.after.begin(), step.after.end(), is_count);
}

// Merges `next` into `step` if both pad the same tensors with the same value.
bool merge_pad_steps(PadStep& step, const PadStep& next) {
  const bool same_value =
      std::bit_cast<std::uint64_t>(step.value) == std::bit_cast<std::uint64_t>(next.value);
  if (step.tensors != next.tensors || !same_value || step.before.size() != next.before.size() ||
      !has_valid_pad_counts(step) || !has_valid_pad_counts(next))
    return false;
  PadStep both = step;
  for (std::size_t d = 0; d < step.before.size(); ++d) {
    auto before = checked_add(step.before[d], next.before[d]);
    auto after = checked_add(step.after[d], next.after[d]);
    if (!before || !after) return false;
    both.before[d] = *before;
    both.after[d] = *after;
  }
  step = std::move(both);
  return true;
}

// Merges consecutive pad steps of the same tensors: otherwise each would wrap the parts and tiles
// of the one before, and 200 of them took 2 s.
struct PadRun {
  PadStep step;
  std::size_t count = 1;
};
std::optional<PadRun> merge_pads_from(const std::vector<Step>& steps, std::size_t first) {
  const auto* pad = std::get_if<PadStep>(&steps[first]);
  if (pad == nullptr) return std::nullopt;
  PadRun run{*pad};
  while (first + run.count < steps.size()) {
    const auto* next = std::get_if<PadStep>(&steps[first + run.count]);
    if (next == nullptr || !merge_pad_steps(run.step, *next)) break;
    ++run.count;
  }
  return run;
}

}  // namespace

Result<TargetState> apply_steps(TargetState all, const std::vector<Step>& steps,
                                Progress* progress) {
  const bool may_be_empty = has_unnamed_entry(all.source());
  for (std::size_t i = 0, count = 1; i < steps.size(); i += count) {
    if (is_cancelled(progress)) return cancelled_error();
    all.step = all.steps_before + i + 1;
    const std::optional<PadRun> pads = merge_pads_from(steps, i);
    count = pads ? pads->count : 1;
    Status taken = pads ? apply(all, pads->step)
                        : std::visit([&](const auto& step) { return apply(all, step); }, steps[i]);
    if (taken) taken = check_names_differ(all, may_be_empty);
    if (taken) continue;
    Error error = std::move(taken).error();
    const std::string which = count == 1
                                  ? fmt::format("step {}", all.step)
                                  : fmt::format("steps {} to {}", all.step, all.step + count - 1);
    error.message = fmt::format("{} ({}): {}", which, name(steps[i]), error.message);
    return tl::unexpected<Error>(std::move(error));
  }
  sort_and_remove_dropped(all);
  all.names.reset();
  return all;
}

}  // namespace shw

#include "core/repair/plan/target_of_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "core/formats/open.h"
#include "core/formats/table.h"
#include "core/repair/plan/plan_fingerprint.h"

namespace shw {
namespace {

// Other names of formats: those of the programs that load them, where a program has one format and
// names are not changed.
struct FormatAlias {
  std::string_view alias, format;
};
constexpr FormatAlias kFormatAliases[] = {{"torch_dist", "megatron-dist"}};

constexpr std::uint64_t kHubShardBytes = 5'000'000'000;

// The plan's format, otherwise that of the source. For a source whose format cannot be written:
// torch's own format, unless only its own files can be repaired.
Result<const Format*> format_of(const Checkpoint& checkpoint, const Plan& plan) {
  const Format& now = checkpoint.format();
  if (!plan.format.empty()) return format_to_write(plan.format);
  return now.writer != nullptr || !plan.transforms() ? &now : format_named("dcp");
}

Status check_is_planned_for(const Checkpoint& checkpoint, const std::string& expected,
                            const std::string& path) {
  if (expected.empty() || fingerprint(checkpoint) == expected) return {};
  return fail(ErrorKind::kUsage,
              "the plan was made for a different checkpoint, or this one has changed since", {path},
              "make a new plan");
}

}  // namespace

std::string_view format_alias(std::string_view name) {
  const auto* row = std::ranges::find(kFormatAliases, name, &FormatAlias::format);
  return row == std::end(kFormatAliases) ? name : row->alias;
}

const Format* format_named(std::string_view name) {
  const auto* alias = std::ranges::find(kFormatAliases, name, &FormatAlias::alias);
  if (alias != std::end(kFormatAliases)) name = alias->format;
  const Format* found = nullptr;
  for (const FormatRow& row : formats()) {
    if (row.format->name != name) continue;
    // One name may have a format that is only read and another that is written.
    if (row.format->writer != nullptr) return row.format;
    if (found == nullptr) found = row.format;
  }
  return found;
}

Result<const Format*> format_to_write(const std::string& name) {
  const Format* format = format_named(name);
  if (format != nullptr && format->writer != nullptr) return format;
  std::string written;
  for (const FormatRow& row : formats()) {
    const Format& one = *row.format;
    if (one.writer != nullptr && written.find(one.name) == std::string::npos)
      written += (written.empty() ? "" : ", ") + std::string(one.name);
  }
  return fail(ErrorKind::kUsage, "the format \"" + name + "\" cannot be written", {},
              "formats that are written: " + written);
}

Status set_output_format(const std::string& format, std::uint64_t shard_bytes, Plan& plan) {
  SHW_TRY(const Format* written, format_to_write(format));
  plan.format = written->name;
  plan.shard_bytes = shard_bytes;
  if (written->traits.has_one_piece_per_tensor && shard_bytes == 0)
    plan.shard_bytes = kHubShardBytes;
  return {};
}

namespace {

tl::unexpected<Error> with_input_advice(const PlanInput& input, Error error) {
  if (!input.original_path.empty())
    error.advice += fmt::format("{}the plan names it {}, relative to the folder of the plan's file",
                                error.advice.empty() ? "" : "; ", input.original_path);
  return tl::unexpected<Error>(std::move(error));
}

// The source that a repair fills from was opened when the plan was read.
std::shared_ptr<const Checkpoint> fill_source_at(const Plan& plan, const std::string& path) {
  for (const PlannedTensor& tensor : plan.tensors) {
    const auto& source = tensor.fill_source;
    if (source != nullptr && source->directory() != nullptr && source->directory()->name() == path)
      return source;
  }
  return nullptr;
}

Status open_inputs(const Plan& plan, TargetState& all, Progress* progress) {
  for (const PlanInput& input : plan.inputs) {
    auto other = fill_source_at(plan, input.checkpoint);
    if (other == nullptr) {
      auto opened = open_to_compare(input.checkpoint, progress);
      if (!opened) return with_input_advice(input, std::move(opened).error());
      other = std::move(*opened);
    }
    SHW_CHECK(check_is_planned_for(*other, input.fingerprint, input.checkpoint));
    all.inputs.push_back(std::move(other));
  }
  return {};
}

}  // namespace

Result<TargetOfPlan> target_of_plan(const std::shared_ptr<const Checkpoint>& checkpoint,
                                    const Plan& plan, Progress* progress) {
  SHW_CHECK(check_is_planned_for(*checkpoint, plan.fingerprint, plan.checkpoint));
  TargetOfPlan target{target_state_of(checkpoint), {}, plan.steps};
  resolve_missing(*checkpoint, target.steps);
  SHW_CHECK(open_inputs(plan, target.all, progress));
  target.form.keeps_files = !plan.transforms();
  SHW_CHECK(apply_repair(plan, target.form.keeps_files, target.all));
  target.all.steps_before = plan.operations.size();
  SHW_TRY(target.all, apply_steps(std::move(target.all), target.steps, progress));
  SHW_TRY(target.form.format, format_of(*checkpoint, plan));
  target.form.shard_bytes = plan.shard_bytes;
  return target;
}

}  // namespace shw

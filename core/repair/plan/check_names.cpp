// The right tensor under a wrong name. Every chunk keeps its box. If an index has the names, only
// the index changes; otherwise the files that contain the names are rewritten.
#include "core/repair/plan/check_names.h"

#include <algorithm>
#include <set>

#include "core/repair/lower/lower.h"
#include "core/repair/plan/operations.h"

namespace shw {
Result<PlannedTensor> lower_renamed(const Checkpoint& checkpoint, const Renamed& renamed) {
  auto refuse = [&](const std::string& why) {
    return cannot_lower(checkpoint, renamed.tensor, why);
  };
  if (renamed.fqn.empty()) return refuse("a tensor needs a name");
  if (!checkpoint.format().traits.has_index && checkpoint.format().rewrite != Rewrite::kFiles) {
    return refuse(
        "this format cannot be rewritten; convert the checkpoint first (shardwright convert "
        "CHECKPOINT --to safetensors --out NEW), then repair the result");
  }
  std::string_view old_name = checkpoint.fqn(renamed.tensor);
  if (!renamed_path(checkpoint.path(renamed.tensor), old_name, renamed.fqn)) {
    return refuse("no state dict path can be derived for the name " + renamed.fqn);
  }
  PlannedTensor planned;
  planned.tensor = renamed.tensor;
  planned.shape = copy_of(checkpoint.shape(renamed.tensor));
  planned.fqn = renamed.fqn;
  for (ChunkId chunk : checkpoint.chunks(renamed.tensor)) {
    PlannedChunk kept;
    kept.box = box_of(checkpoint, chunk);
    kept.item = chunk;
    kept.writer = checkpoint.writer(chunk).value_or(0);
    planned.chunks.push_back(std::move(kept));
  }
  return planned;
}

Status check_names(const Checkpoint& checkpoint, const Plan& plan) {
  bool renames = !plan.objects.empty() ||
                 std::any_of(plan.tensors.begin(), plan.tensors.end(),
                             [](const PlannedTensor& planned) { return !planned.fqn.empty(); });
  if (!renames) return {};
  std::vector<std::string_view> names(checkpoint.tensor_count());
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t)
    names[t] = checkpoint.fqn(TensorId{t});
  for (const NonTensorEntry& row : checkpoint.objects()) names.push_back(row.fqn);
  for (const PlannedTensor& planned : plan.tensors)
    names[index_of(planned.tensor)] = fqn_after(checkpoint, planned);
  for (const RenamedObject& object : plan.objects) {
    if (object.object >= checkpoint.objects().size() || object.fqn.empty())
      return fail(ErrorKind::kUsage, "the plan renames an entry that does not exist");
    const NonTensorEntry& row = checkpoint.objects()[object.object];
    if (!renamed_path(checkpoint.object_path(object.object), row.fqn, object.fqn)) {
      return fail(ErrorKind::kUnsupported,
                  "no state dict path can be derived for the name " + object.fqn,
                  Place{.file = {}, .tensor = row.fqn});
    }
    names[checkpoint.tensor_count() + object.object] = object.fqn;
  }
  std::set<std::string_view> seen;
  for (std::string_view one : names) {
    if (seen.insert(one).second) continue;
    return fail(ErrorKind::kUnsupported,
                "two entries would get this name: give each a different name",
                Place{.file = {}, .tensor = std::string(one)});
  }
  return {};
}

}  // namespace shw

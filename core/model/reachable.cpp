#include "core/model/reachable.h"

#include <algorithm>
#include <string>

#include "core/base/words.h"
#include "core/model/evidence.h"

namespace shw {

namespace {

// The opening finding about an entry; null if there is none.
const std::string* opening_finding_of(const Checkpoint& checkpoint, std::string_view fqn) {
  for (const Finding& finding : checkpoint.opening_findings()) {
    const auto& subjects = finding.subjects;
    if (std::find(subjects.begin(), subjects.end(), fqn) == subjects.end()) continue;
    if (const auto* reason = find_evidence<std::string>(finding, "reason")) return reason;
  }
  return nullptr;
}

}  // namespace

bool is_reachable(const Checkpoint& checkpoint, ChunkId chunk) {
  const auto item = checkpoint.item(chunk);
  return item && is_reachable(checkpoint, *item);
}

Status check_reachable(const Checkpoint& checkpoint, const std::optional<ItemPlace>& item,
                       std::string_view fqn) {
  if (item && is_reachable(checkpoint, *item)) return {};
  if (const std::string* why = opening_finding_of(checkpoint, fqn))
    return fail(ErrorKind::kUnsupported, "cannot be carried over: it " + *why,
                {{}, std::nullopt, std::string(fqn)});
  const bool in_file = item && item->file != FileId::kNone;
  return fail(
      ErrorKind::kUnsupported, "cannot be carried over: its bytes are not where the metadata says",
      {in_file ? checkpoint.file(item->file).path : std::string(), std::nullopt, std::string(fqn)},
      "bring the file back; or give up what was in it by `repair --fill zero`, or --fill "
      "from:CHECKPOINT, or a plan with the step {\"step\": \"fill\", \"tensors\": [\"*\"], "
      "\"gone\": true}");
}

Status check_all_reachable(const Checkpoint& checkpoint) {
  Status first;
  std::uint64_t more = 0;
  auto check = [&](const std::optional<ItemPlace>& item, std::string_view fqn) {
    if (item && is_reachable(checkpoint, *item)) return;
    if (first)
      first = check_reachable(checkpoint, item, fqn);
    else
      ++more;
  };
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    for (ChunkId chunk : checkpoint.chunks(TensorId{t}))
      check(checkpoint.item(chunk), checkpoint.fqn(TensorId{t}));
  }
  for (const NonTensorEntry& object : checkpoint.objects()) {
    if (!object.inlined) check(object.item, object.fqn);
  }
  if (!first && more != 0)
    first.error().message += ", nor are those of " + plural(more, "other item");
  return first;
}

}  // namespace shw

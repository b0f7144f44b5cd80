#include "views/digest.h"

#include <algorithm>

#include "core/rules/consequence.h"
#include "core/rules/rules.h"
#include "views/text.h"

namespace shw {
std::shared_ptr<const std::vector<std::uint8_t>> make_marks(const Snapshot& snapshot) {
  auto marks = std::make_shared<std::vector<std::uint8_t>>();
  if (snapshot.checkpoint == nullptr) return marks;
  marks->resize(snapshot.checkpoint->tensor_count());
  if (snapshot.report == nullptr) return marks;
  for (const Finding& finding : snapshot.report->findings) {
    for (const std::string& subject : finding.subjects) {
      auto tensor = snapshot.checkpoint->find(subject);
      if (!tensor) continue;
      auto& mark = (*marks)[index_of(*tensor)];
      mark = std::max(mark, static_cast<std::uint8_t>(static_cast<int>(finding.severity) + 1));
    }
  }
  if (snapshot.repaired != nullptr && snapshot.plan != nullptr) {
    for (const PlannedTensor& planned : snapshot.plan->tensors) {
      // Only fully restored tensors get a tick; filled ones keep a mark.
      if (index_of(planned.tensor) >= marks->size()) continue;
      (*marks)[index_of(planned.tensor)] = planned.lost_elements == 0 ? kMended : kFilled;
    }
  }
  return marks;
}

std::shared_ptr<const CheckpointCard> make_card(const Snapshot& snapshot) {
  auto facts = std::make_shared<CheckpointCard>();
  if (snapshot.checkpoint == nullptr) return facts;
  const Checkpoint& checkpoint = *snapshot.checkpoint;
  facts->format = checkpoint.format().title;
  if (!checkpoint.provenance().torch.empty())
    facts->format += ", torch " + checkpoint.provenance().torch;
  std::uint64_t data_files = 0;
  for (const FileRow& file : checkpoint.files()) {
    if (file.referenced) ++data_files;
  }
  facts->files = std::to_string(data_files);
  const FormatTraits& traits = checkpoint.format().traits;
  if (traits.one_index_file) facts->files += " + " + std::string(traits.index_file);
  facts->bytes = human_bytes(checkpoint.tensor_bytes());
  if (snapshot.report != nullptr) {
    facts->coverage_known = facts->complete = true;
    for (const Finding& finding : snapshot.report->findings) {
      if (rule_of(finding).coverage.text.empty() || finding.severity == Severity::kInfo) continue;
      facts->complete = false;
      facts->coverage = finding.rule;
      break;
    }
  }
  // A rank's shard saved as the whole tensor has full coverage too, so coverage alone is not enough
  // for green.
  facts->sound = facts->complete && snapshot.report != nullptr &&
                 worst_consequence(snapshot.report->findings) != Consequence::kDataLost;
  if (facts->complete) facts->coverage = facts->sound ? "complete" : "complete as recorded";
  return facts;
}

std::shared_ptr<const Digest> make_digest(std::shared_ptr<const Snapshot> snapshot,
                                          const Digest* before) {
  auto digest = std::make_shared<Digest>();
  digest->snapshot = snapshot;
  const Snapshot* old = before != nullptr ? before->snapshot.get() : nullptr;
  bool same_checkpoint = old != nullptr && old->checkpoint == snapshot->checkpoint;
  bool same_report = same_checkpoint && old->report == snapshot->report;
  bool same_spec = same_report && old->spec == snapshot->spec;
  bool same_plan = same_spec && old->plan == snapshot->plan;
  bool same_marks = same_plan && old->repaired == snapshot->repaired;
  digest->marks = same_marks ? before->marks : make_marks(*snapshot);
  digest->marked = static_cast<std::size_t>(std::count_if(
      digest->marks->begin(), digest->marks->end(), [](std::uint8_t mark) { return mark > 1; }));
  digest->list = same_checkpoint && old->order == snapshot->order
                     ? before->list
                     : make_list(*snapshot, before != nullptr ? before->list.get() : nullptr);
  digest->mesh = same_spec && old->mesh == snapshot->mesh ? before->mesh : make_mesh(*snapshot);
  digest->facts = same_report ? before->facts : make_card(*snapshot);
  digest->overview = same_marks ? before->overview : make_overview(*snapshot, *digest->marks);
  bool same_heads = same_marks && before->list == digest->list;
  digest->run_marks =
      same_heads ? before->run_marks : make_run_marks(*digest->list, *digest->marks);
  bool same_picture = same_plan && old->tensor == snapshot->tensor;
  digest->picture = same_picture ? before->picture : make_picture(*snapshot);
  bool same_tiles = same_picture && before->paints != nullptr;
  PaintedTiles tiles;
  if (digest->picture)
    tiles = {digest->picture->tensor, digest->picture->saved, digest->picture->after};
  digest->paints = same_tiles && old->tile_values == snapshot->tile_values
                       ? before->paints
                       : make_paints(*snapshot, digest->picture ? &tiles : nullptr,
                                     same_tiles ? before->paints.get() : nullptr);
  return digest;
}

}  // namespace shw

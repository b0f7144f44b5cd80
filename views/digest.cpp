#include "views/digest.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/facts/values/value_anomaly.h"
#include "core/report/text.h"
#include "core/rules/consequence.h"
#include "views/evidence_rows.h"
#include "views/text.h"

namespace shw {
namespace {

void count_anomalous_tensors(const Snapshot& snapshot, FindingEffects& about) {
  if (snapshot.numbers == nullptr) return;
  const auto& tensors = snapshot.numbers->tensors;
  const std::size_t count =
      std::min<std::size_t>(tensors.size(), snapshot.checkpoint->tensor_count());
  for (std::uint32_t t = 0; t < count; ++t) {
    const ValueAnomaly anomaly =
        value_anomaly(snapshot.checkpoint->fqn(TensorId{t}), tensors[t].elements, tensors[t].nan,
                      tensors[t].infinite);
    about.nan_tensors += anomaly == ValueAnomaly::kAllNan || anomaly == ValueAnomaly::kNan ? 1 : 0;
    about.infinite_tensors += anomaly == ValueAnomaly::kInfinite ? 1 : 0;
  }
}

}  // namespace

std::shared_ptr<const FindingEffects> make_finding_effects(const Snapshot& snapshot) {
  auto about = std::make_shared<FindingEffects>();
  if (snapshot.checkpoint == nullptr || snapshot.report == nullptr) return about;
  const Checkpoint& checkpoint = *snapshot.checkpoint;
  count_anomalous_tensors(snapshot, *about);
  const std::vector<Finding>& findings = snapshot.report->findings;
  about->finding_of.resize(checkpoint.tensor_count());
  about->files.resize(checkpoint.file_count());
  FindingPlaces places(checkpoint);
  for (std::size_t f = 0; f < findings.size(); ++f) {
    for (TensorId tensor : places.tensors(findings[f])) {
      std::uint32_t& worst = about->finding_of[index_of(tensor)];
      if (worst == 0 || findings[worst - 1].severity < findings[f].severity)
        worst = static_cast<std::uint32_t>(f + 1);
    }
    const auto mark = static_cast<std::uint8_t>(static_cast<int>(findings[f].severity) + 1);
    for (FileId file : places.files(findings[f]))
      about->files[index_of(file)] = std::max(about->files[index_of(file)], mark);
  }
  about->names = FindingNames(checkpoint, findings);
  about->affected = count_affected_by_findings(checkpoint, findings);
  about->unreadable = unreadable_in(checkpoint, findings);
  return about;
}

std::shared_ptr<const std::vector<std::uint8_t>> tensor_marks(const Snapshot& snapshot,
                                                              const FindingEffects& about) {
  auto marks = std::make_shared<std::vector<std::uint8_t>>();
  if (snapshot.checkpoint == nullptr) return marks;
  marks->resize(snapshot.checkpoint->tensor_count());
  if (snapshot.report == nullptr) return marks;
  for (std::size_t t = 0; t < about.finding_of.size(); ++t) {
    if (about.finding_of[t] == 0) continue;
    const Finding& finding = snapshot.report->findings[about.finding_of[t] - 1];
    (*marks)[t] = static_cast<std::uint8_t>(static_cast<int>(finding.severity) + 1);
  }
  // The repair wrote a copy, so the open checkpoint keeps its marks.
  if (is_repaired_elsewhere(snapshot)) return marks;
  if (const Plan* plan = executed_plan(snapshot)) {
    for (const PlannedTensor& planned : plan->tensors) {
      // Only fully restored tensors get a tick; filled ones keep a mark.
      if (index_of(planned.tensor) >= marks->size()) continue;
      (*marks)[index_of(planned.tensor)] = planned.lost_elements == 0 ? kChangedByRepair : kFilled;
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
  std::uint64_t data_files = 0, computed = 0;
  double on_disk = 0;
  for (const FileRow& file : checkpoint.files()) {
    const bool is_computed =
        checkpoint.directory() != nullptr && checkpoint.directory()->is_made(file.path);
    if (!is_computed) on_disk += static_cast<double>(file.size);
    if (!file.referenced) continue;
    ++(is_computed ? computed : data_files);
  }
  facts->files = human_count(data_files);
  if (computed != 0) facts->files += fmt::format(" + {} computed", human_count(computed));
  const FormatTraits& traits = checkpoint.format().traits;
  if (traits.one_index_file) facts->files += " + " + std::string(traits.index_file);
  facts->bytes = human_bytes(checkpoint.tensor_bytes());
  // Quantised weights take fewer bytes on disk; an optimizer next to the model takes more.
  const auto in_tensors = static_cast<double>(checkpoint.tensor_bytes());
  if (computed == 0 && on_disk > 0 && (on_disk < 0.8 * in_tensors || on_disk > 1.25 * in_tensors))
    facts->bytes += fmt::format(" ({} on disk)",
                                human_bytes(static_cast<std::uint64_t>(std::min(on_disk, 1e18))));
  if (snapshot.report != nullptr) {
    facts->is_coverage_known = true;
    facts->coverage = unchecked_coverage_text(*snapshot.report);
    facts->complete = facts->coverage.empty();
  }
  // A rank's shard saved as the whole tensor has full coverage too, so coverage alone is not enough
  // for green.
  facts->sound = facts->complete && snapshot.report != nullptr &&
                 worst_consequence(snapshot.report->findings) != Consequence::kDataLost;
  if (facts->complete) facts->coverage = facts->sound ? "complete" : "complete as recorded";
  return facts;
}

namespace {

std::shared_ptr<const std::vector<EvidenceTable>> make_evidence(const Snapshot& snapshot) {
  std::vector<EvidenceTable> tables;
  if (snapshot.checkpoint != nullptr && snapshot.report != nullptr) {
    const std::vector<Finding>& findings = snapshot.report->findings;
    const std::size_t shown = snapshot.finding.value_or(0);
    if (!findings.empty())
      tables =
          evidence_tables(*snapshot.checkpoint, findings[std::min(shown, findings.size() - 1)]);
  }
  return std::make_shared<const std::vector<EvidenceTable>>(std::move(tables));
}

}  // namespace

std::shared_ptr<const Digest> make_digest(std::shared_ptr<const Snapshot> snapshot,
                                          const Digest* before) {
  auto digest = std::make_shared<Digest>();
  digest->snapshot = snapshot;
  const Snapshot* old = before != nullptr ? before->snapshot.get() : nullptr;
  bool same_checkpoint = old != nullptr && old->checkpoint == snapshot->checkpoint;
  bool same_report = same_checkpoint && old->report == snapshot->report;
  bool same_spec = same_report && old->spec == snapshot->spec;
  bool same_plan = same_spec && old->plan == snapshot->plan;
  bool same_marks =
      same_plan && old->repaired == snapshot->repaired && old->executed == snapshot->executed;
  const bool same_effects = same_report && old->numbers == snapshot->numbers;
  digest->about = same_effects ? before->about : make_finding_effects(*snapshot);
  digest->marks = same_marks ? before->marks : tensor_marks(*snapshot, *digest->about);
  digest->list = same_checkpoint && old->order == snapshot->order
                     ? before->list
                     : make_list(*snapshot, before != nullptr ? before->list.get() : nullptr);
  digest->mesh = same_spec && old->mesh == snapshot->mesh ? before->mesh : make_mesh(*snapshot);
  digest->facts = same_report ? before->facts : make_card(*snapshot);
  // Statistics of tiles arrive in batches; a large overview is not recomputed for each.
  const bool is_large =
      snapshot->checkpoint != nullptr && snapshot->checkpoint->chunk_count() > 100'000;
  const bool same_matrix = same_marks && old->compared == snapshot->compared &&
                           old->numbers == snapshot->numbers &&
                           (is_large || old->tile_values == snapshot->tile_values);
  digest->overview = same_matrix
                         ? before->overview
                         : make_overview(*snapshot, *digest->marks, *digest->about, *digest->list);
  bool same_heads = same_marks && before->list == digest->list;
  digest->run_marks =
      same_heads ? before->run_marks : make_run_marks(*digest->list, *digest->marks);
  bool same_picture = same_plan && old->tensor == snapshot->tensor;
  digest->picture = same_picture ? before->picture : make_picture(*snapshot, *digest->about);
  bool same_tiles = same_picture && before->paints != nullptr;
  PaintedTiles tiles;
  if (digest->picture)
    tiles = {digest->picture->tensor, digest->picture->saved, digest->picture->after};
  digest->paints =
      same_tiles && old->tile_values == snapshot->tile_values
          ? before->paints
          : make_paints(*snapshot, digest->about->names, digest->picture ? &tiles : nullptr,
                        same_tiles ? before->paints.get() : nullptr);
  const bool same_finding = same_report && old->finding == snapshot->finding;
  digest->evidence = same_finding ? before->evidence : make_evidence(*snapshot);
  const bool same_run =
      old != nullptr && old->run == snapshot->run && old->run_numbers == snapshot->run_numbers;
  if (same_run)
    digest->run = before->run;
  else if (snapshot->run != nullptr)
    digest->run = std::make_shared<const RunMatrix>(
        make_run_matrix(*snapshot->run, snapshot->run_numbers.get()));
  return digest;
}

}  // namespace shw

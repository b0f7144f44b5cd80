#include "core/repair/plan/operations.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/words.h"
#include "core/repair/lower/item_place.h"
#include "core/repair/lower/lower.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

std::string count(std::int64_t amount, std::string_view noun) {
  return plural(static_cast<std::uint64_t>(std::max<std::int64_t>(amount, 0)), noun);
}

// ": [288, 8192, 640] becomes [288, 4096, 1280]", for the first tensor where they differ.
std::string shape_change_text(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                              std::size_t tensors) {
  ExtentsView before = checkpoint.shape(tensor.tensor);
  std::string text = same(before, tensor.shape)
                         ? to_text(before) + " stays"
                         : to_text(before) + " becomes " + to_text(tensor.shape);
  if (tensors < 2) return ": " + text;
  return " of " + count(static_cast<std::int64_t>(tensors), "tensor") + ": " + text + " for " +
         std::string(checkpoint.fqn(tensor.tensor)) + ", and so on";
}

struct TensorGroup {
  std::vector<const PlannedTensor*> tensors;

  std::vector<std::string> subjects(const Checkpoint& checkpoint) const {
    std::vector<std::string> names;
    for (const PlannedTensor* tensor : tensors) names.emplace_back(checkpoint.fqn(tensor->tensor));
    return names;
  }
  template <class Measure>
  std::int64_t sum(Measure measure) const {
    std::int64_t total = 0;
    for (const PlannedTensor* tensor : tensors) total += measure(*tensor);
    return total;
  }
};

std::int64_t count_chunks_with_data(const PlannedTensor& tensor) {
  return std::count_if(tensor.chunks.begin(), tensor.chunks.end(), [](const PlannedChunk& chunk) {
    return chunk.item || !chunk.pieces.empty() || !chunk.external.empty();
  });
}

bool has_external_chunks(const PlannedTensor& tensor) {
  return std::any_of(tensor.chunks.begin(), tensor.chunks.end(),
                     [](const PlannedChunk& chunk) { return !chunk.external.empty(); });
}

std::string place_of(const Checkpoint& checkpoint) {
  return checkpoint.directory() == nullptr ? "the other checkpoint"
                                           : checkpoint.directory()->name();
}

Operation operation(const Checkpoint& checkpoint, OperationKind kind, const Finding& finding,
                    const TensorGroup& group, std::string text) {
  Operation made;
  made.kind = kind;
  made.rule = finding.rule;
  made.subjects = group.subjects(checkpoint);
  made.tiles = group.sum(count_chunks_with_data);
  made.text = std::move(text);
  return made;
}

void add_relabel(const Checkpoint& checkpoint, const Finding& finding, const TensorGroup& group,
                 Plan& plan) {
  if (group.tensors.empty()) return;
  std::int64_t tiles = group.sum(count_chunks_with_data);
  plan.operations.push_back(
      operation(checkpoint, OperationKind::kRelabel, finding, group,
                "relabel " + count(tiles, "chunk") +
                    shape_change_text(checkpoint, *group.tensors.front(), group.tensors.size())));
}

void add_repoint(const Checkpoint& checkpoint, const Finding& finding, const TensorGroup& group,
                 bool is_listed, Plan& plan) {
  if (group.tensors.empty()) return;
  std::vector<std::string> places;
  for (const PlannedTensor* tensor : group.tensors) {
    for (const PlannedChunk& chunk : tensor->chunks) {
      auto place = external_item_place(checkpoint, chunk);
      if (!place) continue;
      places.push_back(fmt::format("{} {} at byte {} of {}", checkpoint.fqn(tensor->tensor),
                                   to_text(chunk.box), place->offset,
                                   checkpoint.file(place->file).path));
    }
  }
  auto tiles = static_cast<std::int64_t>(places.size());
  Operation made = operation(checkpoint, OperationKind::kRelabel, finding, group,
                             (is_listed ? "point " + count(tiles, "chunk") + " at its own bytes: "
                                        : "list " + count(tiles, "chunk") + " again: ") +
                                 short_list_text(places));
  made.tiles = tiles;
  plan.operations.push_back(std::move(made));
}

void add_move(const Checkpoint& checkpoint, OperationKind kind, const char* verb,
              const Finding& finding, const TensorGroup& group, Plan& plan) {
  if (group.tensors.empty() || group.sum(count_chunks_with_data) == 0) return;
  std::uint64_t bytes = 0;
  for (const PlannedTensor* tensor : group.tensors) bytes += bytes_moved(checkpoint, *tensor);
  Operation made =
      operation(checkpoint, kind, finding, group,
                std::string(verb) + " " + count(group.sum(count_chunks_with_data), "chunk") +
                    shape_change_text(checkpoint, *group.tensors.front(), group.tensors.size()));
  made.bytes_moved = bytes;
  plan.operations.push_back(std::move(made));
}

// "model.layers.0.w -> model.layers.4.w": at most three names and the number of the others.
std::string new_names(const Checkpoint& checkpoint, const TensorGroup& group, const Plan& plan) {
  std::vector<std::string> names;
  for (const PlannedTensor* tensor : group.tensors)
    names.push_back(std::string(checkpoint.fqn(tensor->tensor)) + " -> " + tensor->fqn);
  for (const RenamedObject& object : plan.objects)
    names.push_back(checkpoint.objects()[object.object].fqn + " -> " + object.fqn);
  return short_list_text(names);
}

void add_rename(const Checkpoint& checkpoint, const Finding& finding, const TensorGroup& group,
                Plan& plan) {
  if (group.tensors.empty()) return;
  std::string what = count(static_cast<std::int64_t>(group.tensors.size()), "tensor");
  if (!plan.objects.empty())
    what += " and " + count(static_cast<std::int64_t>(plan.objects.size()), "other entry");
  Operation made = operation(checkpoint, OperationKind::kRename, finding, group,
                             "rename " + what + ": " + new_names(checkpoint, group, plan));
  for (const RenamedObject& object : plan.objects)
    made.subjects.push_back(checkpoint.objects()[object.object].fqn);
  plan.operations.push_back(std::move(made));
}

void add_loss(const Checkpoint& checkpoint, const Finding& finding, const TensorGroup& group,
              Plan& plan) {
  if (group.tensors.empty()) return;
  std::int64_t lost = group.sum([](const PlannedTensor& t) { return t.lost_elements; });
  std::int64_t total =
      group.sum([](const PlannedTensor& t) { return volume(t.shape).value_or(0); });
  Operation mask =
      operation(checkpoint, OperationKind::kMask, finding, group,
                fmt::format("mask {} of {} in {}: their values were never saved", lost,
                            count(total, "element"),
                            count(static_cast<std::int64_t>(group.tensors.size()), "tensor")));
  mask.tiles = group.sum([](const PlannedTensor& t) {
    return static_cast<std::int64_t>(t.chunks.size()) - count_chunks_with_data(t);
  });
  mask.elements_lost = lost;
  mask.lossless = false;
  plan.operations.push_back(mask);

  for (Fill kind : {Fill::kZero, Fill::kCast, Fill::kReference}) {
    TensorGroup filled;
    for (const PlannedTensor* tensor : group.tensors) {
      if (tensor->fill == kind) filled.tensors.push_back(tensor);
    }
    if (filled.tensors.empty()) continue;
    std::int64_t elements = filled.sum([](const PlannedTensor& t) { return t.lost_elements; });
    std::string from =
        kind == Fill::kZero ? "zeros"
        : kind == Fill::kReference
            ? "what " + place_of(*filled.tensors.front()->fill_source) + " holds in the same place"
        : filled.tensors.size() == 1 ? "the cast of " + filled.tensors.front()->fill_from
                                     : "the cast of the tensor that each belongs to, first " +
                                           filled.tensors.front()->fill_from;
    Operation fill = operation(checkpoint, OperationKind::kFill, finding, filled,
                               "fill " + count(elements, "masked element") + " with " + from);
    fill.tiles = filled.sum([](const PlannedTensor& t) {
      return static_cast<std::int64_t>(t.chunks.size()) - count_chunks_with_data(t);
    });
    fill.lossless = false;
    plan.operations.push_back(std::move(fill));
  }
}

}  // namespace

void describe_operations(const Checkpoint& checkpoint, const Finding& finding,
                         const std::vector<std::size_t>& tensors, Plan& plan) {
  TensorGroup relabelled, permuted, transposed, renamed, repointed, relisted, retiled, from_side,
      lossy;
  std::map<TensorId, const Diagnosis*> diagnoses;
  for (const Diagnosis& diagnosis : finding.diagnoses)
    diagnoses.emplace(tensor_of(diagnosis), &diagnosis);
  for (std::size_t index : tensors) {
    const PlannedTensor& tensor = plan.tensors[index];
    auto found = diagnoses.find(tensor.tensor);
    const Diagnosis* asked = found == diagnoses.end() ? nullptr : found->second;
    bool blocks = asked != nullptr && std::holds_alternative<BlocksPermuted>(*asked);
    if (asked != nullptr && std::holds_alternative<Renamed>(*asked)) {
      renamed.tensors.push_back(&tensor);
      continue;
    }
    if (asked != nullptr && std::holds_alternative<WrongItemRecords>(*asked)) {
      repointed.tensors.push_back(&tensor);
      continue;
    }
    if (asked != nullptr && std::holds_alternative<UnlistedChunks>(*asked)) {
      relisted.tensors.push_back(&tensor);
      continue;
    }
    if (asked != nullptr && std::holds_alternative<Transposed>(*asked)) {
      transposed.tensors.push_back(&tensor);
      continue;
    }
    bool survivors_move = !is_pure_relabel(tensor) && tensor.lost_elements != 0;
    // A permutation of whole tiles moves no bytes but still counts as a permutation.
    TensorGroup& group = blocks                        ? permuted
                         : is_pure_relabel(tensor)     ? relabelled
                         : has_external_chunks(tensor) ? from_side
                                                       : retiled;
    group.tensors.push_back(&tensor);
    if (survivors_move) lossy.tensors.push_back(&tensor);
  }
  add_relabel(checkpoint, finding, relabelled, plan);
  add_move(checkpoint, OperationKind::kPermuteBlocks, "reorder the blocks of", finding, permuted,
           plan);
  add_move(checkpoint, OperationKind::kTranspose, "transpose", finding, transposed, plan);
  add_rename(checkpoint, finding, renamed, plan);
  add_repoint(checkpoint, finding, repointed, true, plan);
  add_repoint(checkpoint, finding, relisted, false, plan);
  add_move(checkpoint, OperationKind::kRetile, "put back", finding, retiled, plan);
  add_move(checkpoint, OperationKind::kRetile, "restore from side files", finding, from_side, plan);
  add_loss(checkpoint, finding, lossy, plan);
}

namespace {

bool is_repaired_by_rewriting(const Rule& rule) {
  return rule.repaired_by == RepairedBy::kNewIndex || rule.repaired_by == RepairedBy::kNewFile;
}

}  // namespace

bool is_repaired_by_rewriting(const Finding& finding) {
  return finding.remedy && is_repaired_by_rewriting(rule_of(finding));
}

bool repairs_anything(const Plan& plan) {
  return std::any_of(plan.operations.begin(), plan.operations.end(), [](const Operation& one) {
    const Rule* rule = find_rule(one.rule);
    return one.kind != OperationKind::kRewriteMetadata ||
           (rule != nullptr && is_repaired_by_rewriting(*rule));
  });
}

void describe_new_index(const CheckReport& report, Plan& plan) {
  for (const Finding& finding : report.findings) {
    if (!is_repaired_by_rewriting(finding)) continue;
    Operation rewrite;
    rewrite.kind = OperationKind::kRewriteMetadata;
    rewrite.rule = finding.rule;
    rewrite.subjects = finding.subjects;
    rewrite.text = rule_of(finding).repaired_by == RepairedBy::kNewIndex
                       ? "rewrite the index from what each file holds; no tensor byte moves"
                       : fmt::format("rewrite {} without the bytes that belong to no tensor",
                                     short_list_text(finding.subjects));
    plan.operations.push_back(std::move(rewrite));
  }
}

void describe_rewrite(const Checkpoint& checkpoint, const CheckReport& report, Plan& plan) {
  if (checkpoint.format().rewrite != Rewrite::kIndex) return;
  Operation rewrite;
  rewrite.kind = OperationKind::kRewriteMetadata;
  rewrite.text =
      "rewrite .metadata so that every torch since 2.6 opens it under every Python; no tensor byte "
      "is touched";
  for (const Finding& finding : report.findings) {
    // Rewriting does not help against a dtype that old versions do not know.
    if (rule_of(finding).repaired_by != RepairedBy::kNewMetadata || !finding.remedy) continue;
    rewrite.rule = finding.rule;
    rewrite.subjects.insert(rewrite.subjects.end(), finding.subjects.begin(),
                            finding.subjects.end());
  }
  // Attributes that are not plain data could only be written by the program that made them.
  std::vector<std::string> extras = checkpoint.provenance().extra_attributes;
  for (const auto& [plain, value] : checkpoint.provenance().plain_attributes)
    std::erase(extras, plain);
  for (std::size_t i = 0; i < extras.size(); ++i)
    rewrite.text += (i == 0 ? "; not carried over: " : ", ") + extras[i];
  bool wanted = !rewrite.rule.empty() ||
                ((!plan.tensors.empty() || !plan.entries.empty()) && !extras.empty());
  if (wanted) plan.operations.push_back(std::move(rewrite));
}

}  // namespace shw

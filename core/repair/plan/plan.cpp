#include "core/repair/plan/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>

#include "core/base/cancellable_range.h"
#include "core/facts/values/added_tensor.h"
#include "core/repair/lower/lower.h"
#include "core/repair/plan/check_names.h"
#include "core/repair/plan/entries.h"
#include "core/repair/plan/operations.h"
#include "core/repair/plan/planned_states.h"
#include "core/rules/rules.h"
#include "core/spec/spec_from_checkpoint.h"
#include "core/tensor/cast.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

// Tensors that a blocking finding affects, by name or through one of their files.
struct BlockingFindings {
  std::unordered_map<std::string_view, const Rule*> by_subject;  // FQN or path
  std::vector<std::string_view> by_file;                         // rule or empty, by FileId
  // Set if a metadata file is untrusted: that affects every tensor in it.
  std::string_view whole_file = {};  // rule or empty

  // `least`: rules below this blocking level are ignored.
  BlockingFindings(const Checkpoint& checkpoint, const CheckReport& report, Blocking least)
      : by_file(checkpoint.file_count()) {
    for (const Finding& finding : report.findings) {
      const Rule& rule = rule_of(finding);
      if (rule.blocks < least || finding.severity == Severity::kInfo) continue;
      for (const std::string& subject : finding.subjects) {
        bool added = by_subject.emplace(subject, &rule).second;
        if (added && rule.blocks == Blocking::kWholeFile && subject.ends_with(".metadata"))
          whole_file = rule.id;
      }
    }
    for (std::size_t i = 0; i < by_file.size(); ++i) {
      auto found = by_subject.find(checkpoint.files()[i].path);
      if (found != by_subject.end()) by_file[i] = found->second->id;
    }
  }

  std::string_view tensor(const Checkpoint& checkpoint, TensorId tensor) const {
    if (by_subject.empty()) return {};
    if (!whole_file.empty()) return whole_file;
    auto found = by_subject.find(checkpoint.fqn(tensor));
    if (found != by_subject.end()) return found->second->id;
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      if (auto rule = this->chunk(checkpoint, chunk); !rule.empty()) return rule;
    }
    return {};
  }
  // True if an entry that the finding wants to use is affected by a blocking finding.
  bool entries(const Checkpoint& checkpoint, const Finding& finding) const {
    if (by_subject.empty()) return false;
    for (const auto& [subject, rule] : by_subject) {
      if (rule->blocks == Blocking::kWholeFile) return true;
    }
    for (const NonTensorEntry& row : checkpoint.objects()) {
      bool used = std::any_of(finding.entries.begin(), finding.entries.end(),
                              [&](const auto& e) { return e.fqn == row.fqn || e.from == row.fqn; });
      if (!used) continue;
      bool damaged =
          row.item && row.item->file != FileId::kNone && !by_file[index_of(row.item->file)].empty();
      if (damaged || by_subject.contains(row.fqn)) return true;
    }
    return false;
  }
  std::string_view chunk(const Checkpoint& checkpoint, ChunkId chunk) const {
    auto item = checkpoint.item(chunk);
    return item ? by_file[index_of(item->file)] : std::string_view{};
  }
};

struct Draft {
  const Checkpoint& checkpoint;
  const PlanOptions& options;
  const Progress* progress;
  BlockingFindings blocked;
  BlockingFindings damaged;  // without missing files: metadata alone can still be planned for
  std::unordered_map<std::uint32_t, std::size_t> planned;  // tensor -> index in plan.tensors
  Plan plan;
  std::map<TensorId, const Diagnosis*> diagnoses;  // diagnoses that the planned tensors follow
  std::map<TensorId, std::string> refused;  // states that conflict with the plan, with the reason
  std::set<TensorId> named = {};            // subjects that their findings diagnose
};

Result<PlannedTensor> plan_tensor(const Draft& draft, const Diagnosis& diagnosis) {
  const Checkpoint& checkpoint = draft.checkpoint;
  TensorId tensor = tensor_of(diagnosis);
  if (index_of(tensor) >= checkpoint.tensor_count())
    return cannot_lower(checkpoint, tensor, "there is no such tensor");
  auto blocked_by = [&](std::string_view rule) {
    return cannot_lower(checkpoint, tensor, std::string(rule) + " was found in its sources");
  };
  if (auto found = draft.refused.find(tensor); found != draft.refused.end())
    return cannot_lower(checkpoint, tensor, found->second);
  if (auto rule = draft.damaged.tensor(checkpoint, tensor); !rule.empty()) return blocked_by(rule);
  SHW_TRY(PlannedTensor planned, lower(checkpoint, diagnosis));
  if (auto rule = draft.blocked.tensor(checkpoint, tensor);
      !rule.empty() && !is_pure_relabel(planned))
    return blocked_by(rule);
  for (const PlannedChunk& chunk : planned.chunks) {
    for (const Piece& piece : chunk.pieces) {
      auto rule = draft.blocked.chunk(checkpoint, piece.chunk);
      if (!rule.empty()) return blocked_by(rule);
    }
  }
  const SpecEntry* expected = draft.options.spec == nullptr
                                  ? nullptr
                                  : draft.options.spec->find(fqn_after(checkpoint, planned));
  if (expected != nullptr && !same(expected->shape, planned.shape)) {
    return cannot_lower(checkpoint, tensor,
                        "it would become " + to_text(planned.shape) + ", but the spec expects " +
                            to_text(expected->shape));
  }
  return planned;
}

constexpr const char* kFoundOnRemoteHost =
    "it was found on the other machine, and its plan needs the bytes: run `shardwright plan` on "
    "that machine";

void add_undecided_finding(Plan& plan, const Finding& finding, const std::string& why) {
  plan.undecided.push_back(finding);
  if (!why.empty()) plan.undecided.back().evidence.emplace_back("not_repaired_because", why);
}

// Names change together or not at all: half of the changes would give one name to two tensors. A
// tensor that an earlier finding repairs keeps that plan and also gets its new name.
void plan_renames(Draft& draft, const Finding& finding, std::vector<std::size_t>& made) {
  Plan planned = draft.plan;
  auto by_tensor = draft.planned;
  std::vector<std::size_t> named;
  for (const Diagnosis& diagnosis : cancellable_range(finding.diagnoses, draft.progress)) {
    const auto* renamed = std::get_if<Renamed>(&diagnosis);
    if (renamed == nullptr) continue;
    auto lowered = plan_tensor(draft, diagnosis);
    if (!lowered) {
      return add_undecided_finding(draft.plan, finding,
                                   lowered.error().place.tensor + ": " + lowered.error().message);
    }
    auto [found, added] = by_tensor.try_emplace(
        static_cast<std::uint32_t>(index_of(renamed->tensor)), planned.tensors.size());
    if (added)
      planned.tensors.push_back(std::move(*lowered));
    else
      planned.tensors[found->second].fqn = renamed->fqn;
    named.push_back(found->second);
    for (const auto& [object, fqn] : renamed->objects) planned.objects.push_back({object, fqn});
  }
  if (auto unique = check_names(draft.checkpoint, planned); !unique) {
    return add_undecided_finding(draft.plan, finding,
                                 unique.error().place.tensor + ": " + unique.error().message);
  }
  draft.plan = std::move(planned);
  draft.planned = std::move(by_tensor);
  made = std::move(named);
}

std::set<std::string_view> subjects_of(const Finding& finding) {
  return {finding.subjects.begin(), finding.subjects.end()};
}

std::set<TensorId> subjects_as_tensors(const Checkpoint& c, const std::vector<Finding>& findings) {
  std::set<TensorId> named;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kInfo) continue;
    const std::set<std::string_view> subjects = subjects_of(finding);
    for (const Diagnosis& diagnosis : finding.diagnoses) {
      TensorId tensor = tensor_of(diagnosis);
      if (index_of(tensor) < c.tensor_count() && subjects.contains(c.fqn(tensor)))
        named.insert(tensor);
    }
  }
  return named;
}

// Plans the finding's diagnoses, except for tensors that an earlier finding explains. An optimizer
// moment that follows a damaged moment of the same parameter, and has a finding of its own, is
// planned by that finding: it knows where the rows belong (keep_rows_of_all_moments).
void plan_finding(Draft& draft, const Finding& finding, std::vector<std::size_t>& made) {
  if (!finding.diagnoses.empty() && std::holds_alternative<Renamed>(finding.diagnoses.front()))
    return plan_renames(draft, finding, made);
  std::string why;
  std::size_t refused = 0;
  const std::set<std::string_view> subjects = subjects_of(finding);
  for (const Diagnosis& diagnosis : cancellable_range(finding.diagnoses, draft.progress)) {
    auto tensor = static_cast<std::uint32_t>(index_of(tensor_of(diagnosis)));
    if (draft.planned.contains(tensor)) continue;
    if (draft.named.contains(TensorId{tensor}) &&
        !subjects.contains(draft.checkpoint.fqn(TensorId{tensor})))
      continue;
    auto planned = plan_tensor(draft, diagnosis);
    if (!planned) {
      if (++refused == 1) why = planned.error().place.tensor + ": " + planned.error().message;
      continue;
    }
    draft.planned.emplace(tensor, draft.plan.tensors.size());
    draft.diagnoses.emplace(TensorId{tensor}, &diagnosis);
    made.push_back(draft.plan.tensors.size());
    draft.plan.tensors.push_back(std::move(*planned));
  }
  if (refused > 1) why += fmt::format(" (and {} more)", refused - 1);
  if (refused != 0) add_undecided_finding(draft.plan, finding, why);
}

using PlannedByFinding =
    std::vector<std::vector<std::size_t>>;  // by finding: indices in plan.tensors

// Causes come first in a report, so the first finding that can repair a tensor is the right one.
PlannedByFinding plan_findings(Draft& draft, const CheckReport& report) {
  PlannedByFinding made(report.findings.size());
  draft.named = subjects_as_tensors(draft.checkpoint, report.findings);
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    if (report.findings[i].severity != Severity::kInfo)
      plan_finding(draft, report.findings[i], made[i]);
  }
  return made;
}

// Plans everything except states that cannot be placed together with the other planned tensors.
PlannedByFinding plan_except_conflicting_states(Draft& draft, const CheckReport& report) {
  PlannedByFinding made = plan_findings(draft, report);
  draft.refused = states_of_moved_parameters(draft.checkpoint, draft.options.spec.get(),
                                             draft.diagnoses, draft.progress);
  if (draft.refused.empty()) return made;
  draft.plan.tensors.clear();
  draft.plan.objects.clear();
  draft.plan.undecided.clear();
  draft.planned.clear();
  draft.diagnoses.clear();
  return plan_findings(draft, report);
}

// Index of the first finding with planned tensors that loses elements.
std::optional<std::size_t> first_lossy_finding(const Draft& draft, const PlannedByFinding& made) {
  for (std::size_t i = 0; i < made.size(); ++i) {
    for (std::size_t at : made[i]) {
      if (draft.plan.tensors[at].lost_elements != 0) return i;
    }
  }
  return std::nullopt;
}

// Keeps only rows that all moments of a parameter still have: two findings may each have lost rows.
void keep_rows_of_all_moments(Draft& draft, const CheckReport& report, PlannedByFinding& made) {
  auto with = first_lossy_finding(draft, made);  // moments without a finding are reported with it
  if (!with) return;
  for (const PartlyLost& part :
       plan_common_moment_rows(draft.checkpoint, draft.diagnoses, draft.named)) {
    auto planned = plan_tensor(draft, part);
    if (!planned) {
      add_undecided_finding(draft.plan, report.findings[*with],
                            planned.error().place.tensor + ": " + planned.error().message);
      continue;
    }
    auto [found, added] = draft.planned.try_emplace(
        static_cast<std::uint32_t>(index_of(part.tensor)), draft.plan.tensors.size());
    if (added) {
      made[*with].push_back(draft.plan.tensors.size());
      draft.plan.tensors.push_back(std::move(*planned));
    } else {
      planned->fqn = draft.plan.tensors[found->second].fqn;
      draft.plan.tensors[found->second] = std::move(*planned);
    }
  }
}

// The tensor of the other checkpoint that can fill this one: same name and shape, without holes.
std::optional<TensorId> fill_source_tensor(const Draft& draft, const NameMap& names,
                                           const PlannedTensor& planned) {
  const Checkpoint& source = *draft.options.fill_source;
  auto other = names.in_reference[index_of(planned.tensor)];
  // Found by its current name: for a renamed tensor that is another layer.
  if (!other || !planned.fqn.empty() || !same(source.shape(*other), planned.shape) ||
      !can_cast(source.dtype(*other), draft.checkpoint.dtype(planned.tensor)) ||
      !check_chunks_are_boxes(source, *other))
    return std::nullopt;
  return tiles_exactly(chunk_boxes(source, *other), planned.shape) ? other : std::nullopt;
}

// Applies the user's choice of what fills lost elements.
void choose_fills(Draft& draft) {
  if (draft.options.fill == FillChoice::kZero) {
    for (PlannedTensor& planned : draft.plan.tensors) {
      planned.fill = Fill::kZero;
      planned.fill_from.clear();
    }
  }
  if (draft.options.fill != FillChoice::kReference || draft.options.fill_source == nullptr) return;
  NameMap names = match_names(draft.checkpoint, *draft.options.fill_source, draft.progress);
  for (PlannedTensor& planned : cancellable_range(draft.plan.tensors, draft.progress)) {
    auto other =
        planned.lost_elements == 0 ? std::nullopt : fill_source_tensor(draft, names, planned);
    if (!other) continue;
    planned.fill = Fill::kReference;
    planned.fill_from = draft.options.fill_source->fqn(*other);
    planned.fill_source = draft.options.fill_source;
  }
}

// True if the tensor has no hole, so that a cast reads only saved elements.
bool is_whole(const Checkpoint& checkpoint, TensorId tensor) {
  if (!check_chunks_are_boxes(checkpoint, tensor)) return false;
  auto holes = complement(chunk_boxes(checkpoint, tensor), checkpoint.shape(tensor));
  return holes && holes->empty();
}

// Fill by cast reads the checkpoint as it is, so a source that is itself wrong cannot fill
// anything.
void resolve_fills(Draft& draft) {
  for (PlannedTensor& planned : cancellable_range(draft.plan.tensors, draft.progress)) {
    if (planned.fill != Fill::kCast) continue;
    auto source = draft.checkpoint.find(planned.fill_from);
    bool usable = source &&
                  !draft.planned.contains(static_cast<std::uint32_t>(index_of(*source))) &&
                  draft.blocked.tensor(draft.checkpoint, *source).empty() &&
                  is_whole(draft.checkpoint, *source);
    if (usable) continue;
    planned.fill = Fill::kZero;
    planned.fill_from.clear();
  }
}

// True if a chunk gets another size than recorded, or the tensor uses none of its old items.
bool changes_chunk_shapes(const Draft& draft, const PlannedTensor& planned) {
  bool uses_old =
      std::any_of(planned.chunks.begin(), planned.chunks.end(),
                  [](const PlannedChunk& chunk) { return chunk.item || !chunk.pieces.empty(); });
  if (!uses_old) return true;
  return std::any_of(planned.chunks.begin(), planned.chunks.end(), [&](const PlannedChunk& chunk) {
    return (chunk.item && !chunk.external.empty()) ||
           (chunk.item && !same(chunk.box.sizes, draft.checkpoint.sizes(*chunk.item)));
  });
}

// Adds a step that adds the finding's number to its subjects. Steps run after all operations, so a
// subject that an operation changes, or that another finding blocks, makes the finding undecided
// instead.
void add_addition_steps(Draft& draft, const Finding& finding) {
  const int value = number_added_by_remedy(finding);
  if (value == 0) return;
  if (!draft.plan.undecided.empty() && draft.plan.steps.empty())
    return add_undecided_finding(draft.plan, finding, "other findings block a repair of it");
  AddStep step{{}, static_cast<double>(value)};
  for (const std::string& fqn : finding.subjects) {
    const auto tensor = draft.checkpoint.find(fqn);
    const bool is_planned =
        tensor && draft.planned.contains(static_cast<std::uint32_t>(index_of(*tensor)));
    const std::string_view rule =
        tensor ? draft.damaged.tensor(draft.checkpoint, *tensor) : std::string_view();
    const bool is_blocked = !rule.empty() && rule != finding.rule;
    if (!tensor || is_planned || is_blocked)
      return add_undecided_finding(
          draft.plan, finding,
          fqn + ": another finding affects its elements; repair that one first");
    step.tensors.push_back(fqn);
  }
  draft.plan.steps.emplace_back(std::move(step));
}

// A finding without a diagnosis is repaired if it concerns metadata only and every tensor that it
// names is planned.
bool is_repaired_by_metadata(const Draft& draft, const Finding& finding) {
  RepairedBy by = rule_of(finding).repaired_by;
  bool labels = by == RepairedBy::kTiles || by == RepairedBy::kTilesOfItems;
  if (finding.subjects.empty() || !labels) return false;
  return std::all_of(finding.subjects.begin(), finding.subjects.end(), [&](const auto& subject) {
    auto tensor = draft.checkpoint.find(subject);
    auto found = tensor ? draft.planned.find(static_cast<std::uint32_t>(index_of(*tensor)))
                        : draft.planned.end();
    if (found == draft.planned.end()) return false;
    return by == RepairedBy::kTiles ||
           changes_chunk_shapes(draft, draft.plan.tensors[found->second]);
  });
}

}  // namespace

Result<Plan> make_plan(const Checkpoint& checkpoint, const CheckReport& report,
                       const PlanOptions& options, const Progress* progress) {
  Draft draft{checkpoint,
              options,
              progress,
              BlockingFindings(checkpoint, report, Blocking::kReading),
              BlockingFindings(checkpoint, report, Blocking::kNamed),
              {},
              {},
              {},
              {}};
  Plan& plan = draft.plan;
  if (checkpoint.directory() != nullptr) plan.checkpoint = checkpoint.directory()->name();

  PlannedByFinding made = plan_except_conflicting_states(draft, report);
  keep_rows_of_all_moments(draft, report, made);
  choose_fills(draft);
  resolve_fills(draft);
  if (is_cancelled(progress)) return cancelled_error();

  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    const Finding& finding = report.findings[i];
    describe_operations(checkpoint, finding, made[i], plan);
    if (finding.severity == Severity::kInfo || finding.entries.empty()) continue;
    Status planned =
        plan_entries(checkpoint, finding, draft.blocked.entries(checkpoint, finding), plan);
    if (!planned) add_undecided_finding(plan, finding, planned.error().message);
  }
  describe_rewrite(checkpoint, report, plan);
  describe_new_index(report, plan);

  for (const Finding& finding : report.findings) {
    if (is_cancelled(progress)) return cancelled_error();
    bool above_info = finding.severity != Severity::kInfo;
    bool is_planned = !finding.diagnoses.empty() || !finding.entries.empty() ||
                      is_repaired_by_rewriting(finding) || number_added_by_remedy(finding) != 0;
    if (above_info && !is_planned && !is_repaired_by_metadata(draft, finding))
      add_undecided_finding(plan, finding,
                            report.lacks_diagnoses && finding.remedy ? kFoundOnRemoteHost : "");
  }
  for (const Finding& finding : report.findings) add_addition_steps(draft, finding);
  if (is_cancelled(progress)) return cancelled_error();
  plan.lossless = keeps_every_entry(plan) &&
                  std::all_of(plan.tensors.begin(), plan.tensors.end(),
                              [](const PlannedTensor& t) { return t.lost_elements == 0; });
  return std::move(draft.plan);
}

}  // namespace shw

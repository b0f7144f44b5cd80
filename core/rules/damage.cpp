#include "core/rules/damage.h"

#include <algorithm>
#include <set>

#include "core/base/words.h"
#include "core/model/index_only_tensors.h"
#include "core/rules/consequence.h"
#include "core/rules/rules.h"
#include "core/rules/unjudged.h"

namespace shw {
namespace {

template <class Id>
void sort_unique(std::vector<Id>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

template <class Id>
void append_unless_last(std::vector<Id>& ids, Id id) {
  if (ids.empty() || ids.back() != id) ids.push_back(id);
}

bool is_above_info(const Finding& finding) {
  return finding.severity != Severity::kInfo;
}

template <class Id>
void raise_severity_marks(const std::vector<Id>& ids, Severity severity,
                          std::vector<std::uint8_t>& marks) {
  const auto mark = static_cast<std::uint8_t>(static_cast<int>(severity) + 1);
  for (Id id : ids) marks[index_of(id)] = std::max(marks[index_of(id)], mark);
}

std::set<std::string_view> names_of_objects(const Checkpoint& checkpoint) {
  std::set<std::string_view> names;
  for (const NonTensorEntry& object : checkpoint.objects()) names.insert(object.fqn);
  return names;
}

// Names of tensors that are not in the checkpoint.
std::set<std::string_view> absent_tensors(const Checkpoint& checkpoint,
                                          const std::vector<Finding>& findings) {
  std::set<std::string_view> named, absent;
  for (const UnclaimedStorageRecord& tensor : index_only_tensors(checkpoint))
    named.insert(tensor.fqn);
  for (const Finding& finding : findings) {
    if (!is_above_info(finding)) continue;
    const bool not_here = rule_of(finding).subjects == SubjectKind::kAbsentTensors;
    for (const std::string& subject : finding.subjects) {
      if ((not_here || named.contains(subject)) && !checkpoint.find(subject))
        absent.insert(subject);
    }
  }
  return absent;
}

}  // namespace

FindingPlaces::FindingPlaces(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
  for (std::uint32_t f = 0; f < checkpoint.file_count(); ++f)
    by_path_.emplace(checkpoint.file(FileId{f}).path, FileId{f});
}

void FindingPlaces::index_contents() {
  if (is_indexed_) return;
  is_indexed_ = true;
  in_file_.resize(checkpoint_.file_count());
  unreadable_in_.resize(checkpoint_.file_count());
  unreadable_files_.resize(checkpoint_.tensor_count());
  const bool has_files = checkpoint_.directory() != nullptr;
  for (TensorId tensor : checkpoint_.tensors()) {
    for (ChunkId chunk : checkpoint_.chunks(tensor)) {
      auto item = checkpoint_.item(chunk);
      if (!item || item->file == FileId::kNone) continue;
      append_unless_last(in_file_[index_of(item->file)], tensor);
      if (!has_files || is_reachable(checkpoint_, *item)) continue;
      append_unless_last(unreadable_in_[index_of(item->file)], tensor);
      append_unless_last(unreadable_files_[index_of(tensor)], item->file);
    }
  }
}

std::vector<TensorId> FindingPlaces::tensors(const Finding& finding) {
  std::vector<TensorId> out;
  for (const std::string& subject : finding.subjects) {
    if (auto tensor = checkpoint_.find(subject)) {
      out.push_back(*tensor);
      continue;
    }
    auto file = by_path_.find(subject);
    if (file == by_path_.end()) continue;
    index_contents();
    const auto& unreadable = unreadable_in_[index_of(file->second)];
    const bool all = unreadable.empty() && finding.severity == Severity::kError;
    const auto& named = all ? in_file_[index_of(file->second)] : unreadable;
    out.insert(out.end(), named.begin(), named.end());
  }
  sort_unique(out);
  return out;
}

std::vector<FileId> FindingPlaces::files(const Finding& finding) {
  std::vector<FileId> out;
  for (const std::string& subject : finding.subjects) {
    if (auto file = by_path_.find(subject); file != by_path_.end()) out.push_back(file->second);
    auto tensor = checkpoint_.find(subject);
    if (!tensor || !is_above_info(finding)) continue;
    index_contents();
    const auto& unreadable = unreadable_files_[index_of(*tensor)];
    out.insert(out.end(), unreadable.begin(), unreadable.end());
  }
  sort_unique(out);
  return out;
}

DamageMarks damage_marks(const Checkpoint& checkpoint, const std::vector<Finding>& findings) {
  DamageMarks marks;
  marks.tensors.resize(checkpoint.tensor_count());
  marks.files.resize(checkpoint.file_count());
  FindingPlaces places(checkpoint);
  for (const Finding& finding : findings) {
    raise_severity_marks(places.tensors(finding), finding.severity, marks.tensors);
    raise_severity_marks(places.files(finding), finding.severity, marks.files);
  }
  return marks;
}

AffectedCounts count_affected_by_findings(const Checkpoint& checkpoint,
                                          const std::vector<Finding>& findings) {
  AffectedCounts counts;
  std::set<std::string_view> objects;
  const std::set<std::string_view> known_objects = names_of_objects(checkpoint);
  for (const Finding& finding : findings) {
    if (!is_above_info(finding)) continue;
    ++counts.causes;
    for (const std::string& subject : finding.subjects) {
      if (known_objects.contains(subject)) objects.insert(subject);
    }
  }
  const DamageMarks marks = damage_marks(checkpoint, findings);
  auto marked = [](const std::vector<std::uint8_t>& all) {
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [](std::uint8_t mark) { return mark > 1; }));
  };
  counts.tensors = marked(marks.tensors) + absent_tensors(checkpoint, findings).size();
  counts.files = marked(marks.files);
  counts.objects = objects.size();
  return counts;
}

std::string affected_counts_text(const AffectedCounts& counts) {
  if (counts.causes == 0) return "";
  std::string text = plural(counts.causes, "cause");
  if (counts.tensors != 0) text += ", " + plural(counts.tensors, "tensor");
  if (counts.objects != 0) text += ", " + plural(counts.objects, "other entry");
  if (counts.files != 0) text += ", " + plural(counts.files, "file");
  return text;
}

std::string check_headline(const Checkpoint& checkpoint, const CheckReport& report,
                           const AffectedCounts& counts) {
  if (counts.causes != 0) return title_of(report.findings) + ": " + affected_counts_text(counts);
  if (report.verdict == Verdict::kUndecided) return "Undecided: not everything could be checked";
  if (auto hints = rules_with_hints(report.unjudged); !hints.empty())
    return "No finding, but a hint: " + short_list_text(hints);
  return "No finding: " + plural(checkpoint.tensor_count(), "tensor");
}

Unreadable unreadable_in(const Checkpoint& checkpoint, const std::vector<Finding>& findings) {
  Unreadable out = unreadable_in(findings);
  std::vector<TensorId> tensors;
  std::vector<Finding> counted;
  FindingPlaces places(checkpoint);
  for (const Finding& finding : findings) {
    if (!is_above_info(finding) || !has_unreadable_counts(finding)) continue;
    const auto more = places.tensors(finding);
    tensors.insert(tensors.end(), more.begin(), more.end());
    counted.push_back(finding);
  }
  if (counted.size() < 2) return out;
  sort_unique(tensors);
  // A finding about unreadable and damaged tensors names both, so its own count may be lower.
  const std::size_t all = tensors.size() + absent_tensors(checkpoint, counted).size();
  out.tensors = std::min(out.tensors, static_cast<std::int64_t>(all));
  return out;
}

}  // namespace shw

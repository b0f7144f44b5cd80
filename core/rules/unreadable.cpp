#include "core/rules/unreadable.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/model/evidence.h"

namespace shw {
namespace {

constexpr std::string_view kElements = "unreadable_elements", kTensors = "unreadable_tensors",
                           kDamagedElements = "damaged_elements",
                           kDamagedTensors = "damaged_tensors";

void add_evidence(const Finding& finding, std::string_view key, std::int64_t& to) {
  if (const auto* count = find_evidence<std::int64_t>(finding, key))
    to = checked_add(to, *count).value_or(std::numeric_limits<std::int64_t>::max());
}

std::string damaged_elements_text(std::int64_t elements, std::int64_t tensors,
                                  const std::string& what, const std::string& whats) {
  const std::string of_tensors = plural(static_cast<std::uint64_t>(tensors), "tensor");
  if (elements == 0) return of_tensors + (tensors == 1 ? what : whats);
  return plural(static_cast<std::uint64_t>(elements), "element") + " of " + of_tensors +
         (elements == 1 ? what : whats);
}

}  // namespace

bool has_unreadable_counts(const Finding& finding) {
  std::int64_t tensors = 0;
  add_evidence(finding, kTensors, tensors);
  return tensors != 0;
}

Unreadable unreadable_in(const std::vector<Finding>& findings) {
  Unreadable out;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kInfo) continue;
    add_evidence(finding, kElements, out.elements);
    add_evidence(finding, kTensors, out.tensors);
    add_evidence(finding, kDamagedElements, out.damaged_elements);
    add_evidence(finding, kDamagedTensors, out.damaged_tensors);
  }
  return out;
}

std::string unreadable_text(const Unreadable& unreadable) {
  std::string text;
  if (unreadable.tensors != 0)
    text = damaged_elements_text(unreadable.elements, unreadable.tensors, " cannot be read",
                                 " cannot be read");
  if (unreadable.damaged_tensors != 0)
    text += (text.empty() ? "" : ", ") + damaged_elements_text(unreadable.damaged_elements,
                                                               unreadable.damaged_tensors,
                                                               " is damaged", " are damaged");
  return text;
}

void UnreadableCount::add(const Checkpoint& checkpoint, TensorId tensor, ChunkId chunk) {
  elements_ = checked_add(elements_, volume(checkpoint.sizes(chunk)).value_or(0))
                  .value_or(std::numeric_limits<std::int64_t>::max());
  tensors_ += last_ == tensor ? 0 : 1;
  last_ = tensor;
}

void UnreadableCount::write(Finding& finding) const {
  write_unreadable(elements_, tensors_, finding);
}

void UnreadableCount::add_damage_evidence(Finding& finding) const {
  if (tensors_ == 0) return;
  finding.evidence.emplace_back(std::string(kDamagedElements), elements_);
  finding.evidence.emplace_back(std::string(kDamagedTensors), tensors_);
}

void write_unreadable(std::int64_t elements, std::int64_t tensors, Finding& finding) {
  if (tensors == 0) return;
  finding.evidence.emplace_back(std::string(kElements), elements);
  finding.evidence.emplace_back(std::string(kTensors), tensors);
}

bool can_abandon_missing_files(const Finding& finding) {
  std::int64_t files = 0;
  add_evidence(finding, "file_count", files);
  return has_unreadable_counts(finding) && files != 0 && !finding.remedy;
}

std::string lost_data_text(const std::vector<Finding>& findings, const Unreadable& unreadable) {
  std::uint64_t without = 0, above_info = 0, losing = 0;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kInfo) continue;
    ++above_info;
    without += finding.remedy ? 0 : 1;
    losing += finding.remedy && !finding.remedy->lossless ? 1 : 0;
  }
  std::string text = unreadable_text(unreadable);
  if (!text.empty()) text += ". ";
  if (losing != 0)
    text += "Some data is lost; see the remedy.";
  else if (without == above_info && above_info != 0)
    text += "There is no safe remedy in this checkpoint.";
  else if (without == 0 && text.empty())
    text += "Nothing is lost.";
  if (without != 0 && without != above_info)
    text += std::string(text.empty() || text.back() == ' ' ? "" : " ") +
            plural(without, "finding") + (without == 1 ? " has" : " have") + " no safe remedy.";
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string lost_data_text(const std::vector<Finding>& findings) {
  return lost_data_text(findings, unreadable_in(findings));
}

}  // namespace shw

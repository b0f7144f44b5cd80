// Counts unreadable elements according to findings. Every summary (banner, plan, report) states
// them first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/model/finding.h"

namespace shw {

struct Unreadable {
  std::int64_t elements = 0, tensors = 0;                  // no byte is available
  std::int64_t damaged_elements = 0, damaged_tensors = 0;  // in items with a wrong checksum
  bool is_none() const { return tensors == 0 && damaged_tensors == 0; }
};

// True if the finding counts elements that cannot be read.
bool has_unreadable_counts(const Finding& finding);

// Uses findings above info. A tensor in two findings counts twice; see damage.h.
Unreadable unreadable_in(const std::vector<Finding>& findings);

// "1,024 elements of 3 tensors cannot be read"; empty if there are none.
std::string unreadable_text(const Unreadable& unreadable);

// Collects counts per tensor, chunk by chunk, and writes them to the evidence of a finding.
class UnreadableCount {
 public:
  void add(const Checkpoint& checkpoint, TensorId tensor, ChunkId chunk);
  // Adds the evidence keys for unreadable elements and tensors
  void write(Finding& finding) const;
  // Adds the evidence keys for damaged elements and tensors
  void add_damage_evidence(Finding& finding) const;

 private:
  std::int64_t elements_ = 0, tensors_ = 0;
  std::optional<TensorId> last_ = {};
};
void write_unreadable(std::int64_t elements, std::int64_t tensors, Finding& finding);

// True for missing or truncated files: their contents can be abandoned and the rest kept (`--fill
// zero`).
bool can_abandon_missing_files(const Finding& finding);

// Summarises the losses of findings above info, worst case. "Nothing is lost." only if every remedy
// is lossless. `unreadable`: of these findings.
std::string lost_data_text(const std::vector<Finding>& findings, const Unreadable& unreadable);
std::string lost_data_text(const std::vector<Finding>& findings);

}  // namespace shw

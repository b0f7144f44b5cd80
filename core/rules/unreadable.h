// What findings say of elements that cannot be read: how many, of how many tensors. Whatever sums
// findings up (a banner, a plan, a report) says it before anything else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/model/finding.h"

namespace shw {

struct Unreadable {
  std::int64_t elements = 0, tensors = 0;                  // no byte of them can be had
  std::int64_t damaged_elements = 0, damaged_tensors = 0;  // of items whose checksum differs
  bool is_none() const { return tensors == 0 && damaged_tensors == 0; }
};

// Of findings above info. A tensor that two findings name counts twice.
Unreadable unreadable_in(const std::vector<Finding>& findings);

// "1,024 elements of 3 tensors cannot be read"; empty where all can.
std::string unreadable_words(const Unreadable& unreadable);

// What a rule writes into the evidence of its finding, chunk by chunk. An order by tensors.
class UnreadableCount {
 public:
  void add(const Checkpoint& checkpoint, TensorId tensor, ChunkId chunk);
  void write(Finding& finding) const;          // as unreadable
  void write_damaged(Finding& finding) const;  // as damaged

 private:
  std::int64_t elements_ = 0, tensors_ = 0;
  std::optional<TensorId> last_ = {};
};
void write_unreadable(std::int64_t elements, std::int64_t tensors, Finding& finding);

// Of a file that is missing or cut off: what lay in it can be given up, and all else kept
// (`--fill zero`).
bool can_be_dropped(const Finding& finding);

// What is lost, as far as the findings above info say: never more hopeful than one of them.
// "Nothing is lost." only where each has a remedy that loses nothing.
std::string lost_data_text(const std::vector<Finding>& findings);

}  // namespace shw

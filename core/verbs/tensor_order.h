// The list of a checkpoint while somebody types: names are folded once, a text that was typed on
// looks at what the shorter one let through, and an order is made once for each way to sort.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/verbs/filter.h"
#include "core/verbs/sort.h"

namespace shw {

struct ListOptions {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<const CheckReport> report;  // may be null
  std::string_view filter;
  SortKey sort = SortKey::kRecorded;
  bool descending = false;
};

// Of one thread.
class TensorOrder {
 public:
  // What filter_tensors() and sort_tensors() give, one after the other; nothing if cancelled.
  Result<std::vector<std::uint32_t>> list(const ListOptions& options, Progress* progress);

 private:
  void begin(const ListOptions& options);
  const std::vector<std::uint32_t>& sorted(const ListOptions& options);

  std::shared_ptr<const Checkpoint> checkpoint_;
  std::shared_ptr<const CheckReport> report_;
  FoldedNames names_;
  std::optional<std::string> text_;    // of `passed_`
  std::vector<std::uint32_t> passed_;  // in recorded order
  std::optional<SortKey> sorted_by_;
  bool sorted_down_ = false;
  std::vector<std::uint32_t> sorted_;  // all tensors
};

}  // namespace shw

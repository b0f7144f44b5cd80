// The list of tensors while the user types a filter: names are folded to lower case once, an
// extended text searches only earlier matches, and each sort order is computed once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/verbs/names/filter.h"
#include "core/verbs/names/sort.h"

namespace shw {

struct ListOptions {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<const CheckReport> report;  // may be null
  std::string_view filter;
  SortKey sort = SortKey::kRecorded;
  bool descending = false;
};

// Not thread-safe.
class TensorOrder {
 public:
  // Result of filter_tensors() followed by sort_tensors(); an error only if cancelled.
  Result<std::vector<std::uint32_t>> list(const ListOptions& options, Progress* progress);

 private:
  void begin(const ListOptions& options);
  const std::vector<std::uint32_t>& sorted(const ListOptions& options);

  std::shared_ptr<const Checkpoint> checkpoint_;
  std::shared_ptr<const CheckReport> report_;
  FoldedNames names_;
  std::optional<std::string> text_;    // filter that gave `passed_`
  std::vector<std::uint32_t> passed_;  // in recorded order
  std::optional<SortKey> sorted_by_;
  bool sorted_down_ = false;
  std::vector<std::uint32_t> sorted_;  // all tensors
};

}  // namespace shw

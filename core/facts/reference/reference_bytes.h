// Reads tensors of the checkpoint and of the reference together.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/values/tensor_pieces.h"

namespace shw {

// Cost of one comparison in bytes.
struct ComparisonCost {
  std::uint64_t reads = 0;
  std::uint64_t holds = 0;  // memory
};

// Runs comparisons in parallel within CheckInput::memory, divided among the ranks of a team
// (map_across_ranks): one answer per item, equal on all ranks.
Result<std::vector<std::string>> map_comparisons(
    const CheckInput& input, const std::string& step, const std::vector<ComparisonCost>& costs,
    const std::function<Result<std::string>(std::size_t)>& find);

// Like map_comparisons(), for answers that are numbers.
Result<std::vector<std::vector<std::uint64_t>>> map_numeric_comparisons(
    const CheckInput& input, const std::string& step, const std::vector<ComparisonCost>& costs,
    const std::function<std::vector<std::uint64_t>(std::size_t)>& find);

// Bytes of the tensor's elements; a huge number for invalid shapes.
std::uint64_t bytes_of_elements(const Checkpoint& checkpoint, TensorId tensor);
// Memory for the pieces of a tensor (pieces_of).
std::uint64_t memory_to_read_in_pieces(const Checkpoint& checkpoint, TensorId tensor);

// True if all bytes are compared even without --data: for tensors where orders go wrong, which are
// fused weights, square ones, and those split by several ranks.
bool is_read_whole(const CheckInput& input, TensorId tensor);

// Optimizer states of the `mended` parameters that have the parameter's shape but no repair of
// their own, without those in `right`, which are known to be correct.
std::vector<std::string> states_not_repaired_with(const CheckInput& input,
                                                  const std::set<TensorId>& mended,
                                                  const std::set<TensorId>& right);

// True if the tensor is damaged in the reference and has another shape there, so that positions
// cannot be compared.
bool is_incomparable(const CheckInput& input, TensorId tensor, TensorId other);

// The counterpart of a tensor in the reference; nullopt if missing, not comparable, or of another
// dtype.
std::optional<TensorId> comparable_counterpart(const CheckInput& input, TensorId tensor);

// First evidence row of differs-from-reference for subjects that were not compared.
inline constexpr std::string_view kNotCompared = "not_compared";

// Subjects of findings above info that have a repair: their cause is known already.
std::unordered_set<std::string_view> subjects_with_diagnosis(const std::vector<Finding>& findings);

}  // namespace shw

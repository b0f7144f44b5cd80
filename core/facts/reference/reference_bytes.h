// Reading tensors of the checkpoint and of the reference side by side.
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

// What one comparison takes, in bytes.
struct ComparisonCost {
  std::uint64_t reads = 0;
  std::uint64_t holds = 0;  // of memory
};

// What several threads compare, as many at once as CheckInput::memory has room for, is begun and
// found by all who look (find_each): one answer a thing, the same for all of them.
Result<std::vector<std::string>> find_together(
    const CheckInput& input, const std::string& step, const std::vector<ComparisonCost>& costs,
    const std::function<Result<std::string>(std::size_t)>& find);

// Of its elements; far too many where its shape was made up.
std::uint64_t bytes_of_elements(const Checkpoint& checkpoint, TensorId tensor);
// What pieces of it take on their way (pieces_of).
std::uint64_t held_of_pieces(const Checkpoint& checkpoint, TensorId tensor);

// Without --data every byte is compared only of tensors in which an order goes wrong: fused
// weights, squares, what its writers cut.
bool is_read_whole(const CheckInput& input, TensorId tensor);

// States of the shape of the `mended` tensors that belong to them, are not mended with them and are
// not known to be `right`.
std::vector<std::string> states_left(const CheckInput& input, const std::set<TensorId>& mended,
                                     const std::set<TensorId>& right);

// The reference is in doubt of its own and has it in another shape: what lies where in it says
// nothing of this one.
bool is_beyond_comparison(const CheckInput& input, TensorId tensor, TensorId other);

// The same tensor in the reference; nothing where there is none, or they are beyond comparison, or
// the dtypes differ.
std::optional<TensorId> counterpart(const CheckInput& input, TensorId tensor);

// First in the evidence of differs-from-reference where its subjects were compared with nothing.
inline constexpr std::string_view kNotCompared = "not compared";

// Subjects of findings above info that bring a repair: a cause that is known already.
std::unordered_set<std::string_view> with_diagnosis(const std::vector<Finding>& findings);

}  // namespace shw

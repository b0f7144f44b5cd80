// Reading tensors of the checkpoint and of the reference side by side.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/facts/check_input.h"
#include "core/formats/items.h"

namespace shw {

// A tensor larger than this is not put together in memory for a comparison.
inline constexpr std::uint64_t kComparedUpTo = std::uint64_t{8} << 30;

// What is held together where several threads compare.
inline constexpr std::uint64_t kComparedTogether = std::uint64_t{4} << 30;

// The tensor whole, if every element of it is there and can be read.
std::optional<TensorValues> whole_values(const Checkpoint& checkpoint, TensorId tensor,
                                         Progress* progress = nullptr);

// What several threads compare at once, each thing holding so many bytes and reading half of that,
// is begun and found by all who look (find_each): one answer a thing, the same for all of them.
Result<std::vector<std::string>> find_together(
    const CheckInput& input, const std::string& step, const std::vector<std::uint64_t>& held,
    const std::function<Result<std::string>(std::size_t)>& find);

// What it takes to hold a tensor of both sides whole, each with the tile that is read.
std::uint64_t bytes_to_compare(const Checkpoint& checkpoint, TensorId tensor);

// Without --data every byte is compared only of tensors in which an order goes wrong: fused
// weights, squares, what its writers cut.
bool is_read_whole(const CheckInput& input, TensorId tensor);

// States of the shape of the `mended` tensors that belong to them, are not mended with them and are
// not known to be `right`.
std::vector<std::string> states_left(const CheckInput& input, const std::set<TensorId>& mended,
                                     const std::set<TensorId>& right);

// The same tensor in the reference; nothing where there is none or the dtypes differ.
std::optional<TensorId> counterpart(const CheckInput& input, TensorId tensor);

// Subjects of findings above info that bring a repair: a cause that is known already.
std::unordered_set<std::string_view> with_diagnosis(const std::vector<Finding>& findings);

}  // namespace shw

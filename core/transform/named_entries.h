// Finds and changes the entries that a step names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/transform/steps.h"

namespace shw {

// Built on the first call.
EntryNames& entry_names_of(TargetState& all);
// Removes dropped entries and sorts the others: call it before visiting all of them, and after the
// last step.
void sort_and_remove_dropped(TargetState& all);

// Indices in all.tensors of the matching tensors, in their order. kUsage with similar names if a
// pattern matches nothing.
Result<std::vector<std::size_t>> entries_named(TargetState& all, const Patterns& patterns);
Result<std::size_t> entry_named(TargetState& all, const std::string& fqn);

// A copy of the current tensor with its current tiles, to be changed.
Result<TargetTensor> copy_of_entry(const TargetState& all, std::size_t entry);
void replace_entry_tensor(TargetState& all, std::size_t entry, TargetTensor tensor);
// Adds an entry after all others.
void add_entry(TargetState& all, TargetTensor tensor);
void add_object(TargetState& all, TargetNonTensorEntry object);
void rename_object(TargetState& all, std::size_t object, std::string name);
// Removes an entry, which `instead` replaces; other entries keep their indices.
void remove_entry(TargetState& all, std::size_t entry, std::vector<TargetEntry> instead = {});
void remove_object(TargetState& all, std::size_t object);
// Applies `change` to every matching tensor, in parallel. Returns the error of the first tensor
// that fails.
Status change_matching_tensors(TargetState& all, const Patterns& patterns,
                               const std::function<Status(TargetTensor&)>& change);

// A dim that may count from the end. kUsage if it is out of range.
Result<std::size_t> dim_of(const TargetTensor& tensor, std::int64_t dim);
// The number as an element of the dtype. kUsage if the dtype cannot represent it.
Result<FromConstant> constant_of(Dtype dtype, double value);
// Checks that the boxes are in the tensor.
Status check_boxes(const TargetTensor& tensor, const std::vector<Box>& boxes);

tl::unexpected<Error> step_error(std::string_view fqn, std::string why);

}  // namespace shw

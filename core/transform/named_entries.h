// The entries that a step names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/transform/steps.h"

namespace shw {

// Made where they are not there yet.
EntryNames& names_of(TargetState& all);
// Takes out the entries that are gone and puts the others in their order: before all of them are
// looked at, and after the last step.
void in_order(TargetState& all);

// Indices in all.tensors of what the patterns match, in their order. kUsage where one matches
// nothing, with names that are near.
Result<std::vector<std::size_t>> entries_named(TargetState& all, const Patterns& patterns);
Result<std::size_t> entry_named(TargetState& all, const std::string& fqn);

// A tensor as it stands, to be changed. Its tiles are those that it has now.
Result<TargetTensor> copy_of_entry(const TargetState& all, std::size_t entry);
void put_entry(TargetState& all, std::size_t entry, TargetTensor tensor);
void rename_object(TargetState& all, std::size_t object, std::string name);
// Other entries keep their indices; `instead` stands where it stood.
void remove_entry(TargetState& all, std::size_t entry, std::vector<TargetEntry> instead = {});
void remove_object(TargetState& all, std::size_t object);
// Every tensor that the patterns match, changed by `change`: by all threads, each tensor by one.
// The error is that of the first that has one.
Status change_each(TargetState& all, const Patterns& patterns,
                   const std::function<Status(TargetTensor&)>& change);

// A dim that may count from the end. kUsage where the tensor does not have it.
Result<std::size_t> dim_of(const TargetTensor& tensor, std::int64_t dim);
// The element of that value, as the dtype has it. kUsage where the dtype has no such number.
Result<FromConstant> constant_of(Dtype dtype, double value);
// `boxes` are boxes of the tensor.
Status check_boxes(const TargetTensor& tensor, const std::vector<Box>& boxes);

tl::unexpected<Error> bad_step(std::string_view fqn, std::string why);

}  // namespace shw

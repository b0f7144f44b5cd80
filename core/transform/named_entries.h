// The entries that a step names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/transform/steps.h"

namespace shw {

// Indices in all.tensors of what the patterns match, in their order. kUsage where one matches
// nothing, with names that are near.
Result<std::vector<std::size_t>> entries_named(const Arrangement& all, const Patterns& patterns);
Result<std::size_t> entry_named(const Arrangement& all, const std::string& fqn);

// A tensor as it stands, to be changed. Its tiles are those that it has now.
Result<ArrangedTensor> copy_of_entry(const Arrangement& all, std::size_t entry);
void put_entry(Arrangement& all, std::size_t entry, ArrangedTensor tensor);
// Every tensor that the patterns match, changed by `change`: by all threads, each tensor by one.
// The error is that of the first that has one.
Status change_each(Arrangement& all, const Patterns& patterns,
                   const std::function<Status(ArrangedTensor&)>& change);

// A dim that may count from the end. kUsage where the tensor does not have it.
Result<std::size_t> dim_of(const ArrangedTensor& tensor, std::int64_t dim);
// The element of that value, as the dtype has it. kUsage where the dtype has no such number.
Result<FromConstant> constant_of(Dtype dtype, double value);
// `boxes` are boxes of the tensor.
Status check_boxes(const ArrangedTensor& tensor, const std::vector<Box>& boxes);

tl::unexpected<Error> bad_step(std::string_view fqn, std::string why);

}  // namespace shw

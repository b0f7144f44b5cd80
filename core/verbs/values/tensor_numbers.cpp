#include "core/verbs/values/tensor_numbers.h"

#include <algorithm>

#include "core/facts/values/tensor_statistics.h"

namespace shw::verbs {

std::vector<TensorId> float_tensors(const Checkpoint& checkpoint) {
  std::vector<TensorId> tensors;
  for (TensorId tensor : checkpoint.tensors()) {
    if (number_kind(checkpoint.dtype(tensor)) == NumberKind::kFloat) tensors.push_back(tensor);
  }
  return tensors;
}

double sum_of_squares(const Statistics& statistics) {
  if (!statistics.mean || !statistics.std) return 0;
  return static_cast<double>(statistics.elements - statistics.nan - statistics.infinite) *
         (*statistics.mean * *statistics.mean + *statistics.std * *statistics.std);
}

Result<CheckpointNumbers> compute_tensor_numbers(const Checkpoint& checkpoint, Progress* progress) {
  const std::vector<TensorId> tensors = float_tensors(checkpoint);
  SHW_TRY(const auto counted, statistics_of(checkpoint, tensors, progress));
  CheckpointNumbers numbers;
  numbers.tensors.resize(checkpoint.tensor_count());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Statistics& s = counted[i].statistics;
    const auto count = [](auto elements) {
      return static_cast<std::uint64_t>(
          std::max<std::int64_t>(static_cast<std::int64_t>(elements), 0));
    };
    const std::uint64_t absent = count(counted[i].unread) + count(counted[i].missing);
    numbers.tensors[index_of(tensors[i])] = {s.elements > 0, s.elements,        s.nan, s.infinite,
                                             s.zero,         sum_of_squares(s), absent};
    if (absent > 0) ++numbers.partly_read_tensors;
  }
  return numbers;
}

}  // namespace shw::verbs

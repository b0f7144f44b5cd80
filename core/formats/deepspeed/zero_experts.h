// Parameters of experts in a ZeRO step of stages 1 and 2. Every expert-parallel rank numbers its
// own experts from 0, and only the data-parallel ranks with the same experts share a flat group.
#pragma once

#include "core/formats/deepspeed/zero_layout.h"

namespace shw {

// The experts of one expert-parallel rank.
struct ZeroExperts {
  PartitionRanks ranks;           // that hold them
  std::vector<ZeroShape> shapes;  // with the experts' numbers in the whole model
};

// One item per expert-parallel rank. `ranks`: of the step; `count`: ranks that share a group
// (partition_count). Empty if a name has no expert number, or if `count` does not divide `ranks`.
// `is_data_before_expert`: DeepSpeed's use_data_before_expert_parallelism, by which the ranks with
// the same experts are neighbours.
std::vector<ZeroExperts> split_experts(const std::vector<ZeroShape>& shapes, std::int64_t ranks,
                                       std::int64_t count, bool is_data_before_expert);

}  // namespace shw

// Matches whole tensors with tensors of the reference if training continued after the reference was
// saved; see match.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/reference/match.h"

namespace shw {

// For tensors of one shape: `there` are the counterparts of `here`. The leading elements of each
// are compared with all others, and parts of the rest with the best match. nullopt unless all have
// one shape, are floats and can be read.
std::optional<Matching> match_tensors_by_correlation(const CheckInput& input,
                                                     const std::vector<TensorId>& here,
                                                     const std::vector<TensorId>& there);

// Maximum bytes read and held for this number of tensors per side.
std::uint64_t tensor_match_bytes(std::size_t tensors);

}  // namespace shw

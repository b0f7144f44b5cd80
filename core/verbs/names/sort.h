// The order of the list of tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/rules/check.h"

namespace shw {

enum class SortKey : std::uint8_t {
  kRecorded,
  kName,
  kBytes,
  kChunks,
  kFindings,
  kShape,  // by the first extent, then the next
  kDtype   // by its name
};

// Stable sort. `report` may be null; kFindings puts tensors with the most severe finding first.
void sort_tensors(const Checkpoint& checkpoint, const CheckReport* report, SortKey key,
                  bool descending, std::vector<std::uint32_t>& order);

}  // namespace shw

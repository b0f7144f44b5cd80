// Text that finds a tile and a finding again after a checkpoint was opened again, when ids and
// indices can have changed.
//
//   tile      = box [ " copy " N ]            "[0:4096, 0:32]": N counts chunks of one box from 2
//   finding   = rule [ " " first subject ]    "chunk-overlap model.layers.0.mlp.weight"
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/model/checkpoint.h"
#include "core/model/finding.h"

namespace shw {

std::string tile_mark(const Checkpoint& checkpoint, ChunkId chunk);
std::optional<ChunkId> tile_of_mark(const Checkpoint& checkpoint, TensorId tensor,
                                    std::string_view mark);

std::string finding_mark(const Finding& finding);
// The finding with this rule and subject, otherwise the first of the rule.
std::optional<std::size_t> finding_of_mark(std::span<const Finding> findings,
                                           std::string_view mark);

}  // namespace shw

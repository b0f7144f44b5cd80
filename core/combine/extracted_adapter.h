// What a model learned beside its base, as a LoRA adapter of PEFT: the product of two thin matrices
// that is nearest to the difference of each weight.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

// The adapter's own tensors with its adapter_config.json. Two-dimensional weights that differ
// become pairs of matrices in float32 with scale 1; other tensors that differ are in it whole
// (modules_to_save, biases). All are computed at once, and kept. kUnsupported, with the tensor,
// where a difference has no place in an adapter.
//
// Beside it lies extraction.json, which says for each pair how much of the change its product
// leaves out: {"schema", "rank", "whole": [NAME, ...], "rest": {NAME: share, ...}}.
Result<std::shared_ptr<const Checkpoint>> extracted_adapter(std::shared_ptr<const Checkpoint> tuned,
                                                            std::shared_ptr<const Checkpoint> base,
                                                            std::int64_t rank, Progress* progress);

inline constexpr const char* kExtractionFile = "extraction.json";
// That file in words; empty where there is none.
std::string extraction_in_words(const Directory& folder);

}  // namespace shw

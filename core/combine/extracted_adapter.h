// The difference between a tuned model and its base as a LoRA adapter of PEFT: for each weight the
// nearest product of two thin matrices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

// Returns the adapter's tensors with its adapter_config.json. Changed two-dimensional weights
// become pairs of float32 matrices with scale 1; other changed tensors are included whole
// (modules_to_save, biases). All are computed at once and kept in memory. kUnsupported, with the
// tensor, if a change cannot be represented in an adapter.
//
// The folder also has extraction.json, with the share of the change that each pair loses:
// {"schema", "rank", "whole": [NAME, ...], "rest": {NAME: share, ...}}.
Result<std::shared_ptr<const Checkpoint>> extract_adapter(std::shared_ptr<const Checkpoint> tuned,
                                                          std::shared_ptr<const Checkpoint> base,
                                                          std::int64_t rank, Progress* progress);

inline constexpr const char* kExtractionFile = "extraction.json";
// A summary of extraction.json in words; empty if the file is missing.
std::string extraction_text(const Directory& folder);

}  // namespace shw

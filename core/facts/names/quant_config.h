// What config.json says of how weights are quantised.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/source.h"

namespace shw {

struct QuantConfig {
  std::string method;  // "fp8", "gptq", "awq", "compressed-tensors", "bitsandbytes", "mxfp4", "mlx"
  std::optional<std::int64_t> bits, group;           // group: -1 is all of a row
  std::optional<std::array<std::int64_t, 2>> block;  // "weight_block_size"
  std::vector<std::string> unconverted;  // modules that stay as they are, by literal names
  bool has_overrides = false;            // modules with bits or groups of their own
};

// Nothing where none is said, or where nothing of it can be read.
std::optional<QuantConfig> read_quant_config(const Directory& directory);

}  // namespace shw

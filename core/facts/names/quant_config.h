// Reads the quantisation settings of config.json, or of a separate file that quantisers write.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/source.h"

namespace shw {

// What says how the numbers of a module are stored.
struct QuantSettings {
  // "fp8", "gptq", "awq", "compressed-tensors", "bitsandbytes", "mxfp4", "mlx", "modelopt", "hqq",
  // "bitnet".
  // AutoRound's is that of its packing_format.
  std::string method;
  std::string mode;                         // MLX: "affine", "mxfp4", "mxfp8", "nvfp4"
  std::optional<std::int64_t> bits, group;  // group -1: a whole row
  // Set for bitsandbytes (load_in_8bit), compressed-tensors (config_groups) and HQQ
  // (weight_quant_params) if all modules share the value.
  std::optional<std::int64_t> weight_bits, weight_group;
  std::optional<bool> has_float_weights;  // compressed-tensors and Model Optimizer: of all groups
  bool has_scale_per_row = false;         // compressed-tensors ("channel") and FBGEMM
  std::optional<std::array<std::int64_t, 2>> block;  // "weight_block_size"
  bool has_overrides = false;           // some modules have bits or groups that are not known
  std::optional<bool> has_zero_points;  // compressed-tensors: weights are not symmetric
  std::optional<bool> is_symmetric;     // GPTQ: the zero points are those in the middle
  // Groups follow an order that is stored (desc_act of GPTQ, actorder of compressed-tensors).
  std::optional<bool> has_group_order;
  bool has_whole_zeros = false;  // GPTQ: stored zero points are not decremented by one
  // GPTQ: parts of a code's bits are stored apart (gptq_p). Not set: as GPTQ always did, which
  // says nothing of 5 to 7 bits.
  std::optional<bool> has_bit_planes;
  std::int64_t word_bits = 32;    // GPTQ: of the words that codes are packed in ("pack_dtype")
  bool divides_by_scale = false;  // BitNet: weight_scale is a divisor ("linear_class": "bitlinear")
  bool has_other_layout = false;  // GPTQ and AWQ: packed in the order of one kernel
};

struct QuantConfig : QuantSettings {
  static constexpr std::size_t kMaxPatterns = 64;  // each is compared with each weight

  // What a module has instead of the shared settings.
  struct ModuleOverride {
    std::string mode;
    std::optional<std::int64_t> bits, group;
  };

  std::string file = "config.json";      // the file with these settings
  std::vector<std::string> unconverted;  // modules that are not quantised, by literal name
  bool has_patterns = false;             // patterns also exclude modules
  std::vector<std::string> patterns;     // those of the lists of names, at most kMaxPatterns
  bool has_static_inputs = false;        // scales of the inputs are stored, not computed
  std::map<std::string, ModuleOverride, std::less<>> modules;  // by literal name
};

QuantSettings settings_of(const QuantConfig& config, std::string_view module);

// Files of TensorRT Model Optimizer, AutoGPTQ and AutoAWQ, which do not change config.json.
inline constexpr std::array<const char*, 3> kQuantisationFiles{
    "hf_quant_config.json", "quantize_config.json", "quant_config.json"};

// nullopt if there are no settings or they cannot be read.
std::optional<QuantConfig> read_quant_config(const Directory& directory);
// The file of kQuantisationFiles that declares quantised weights.
std::optional<std::string> quantisation_file(const Directory& directory);

}  // namespace shw

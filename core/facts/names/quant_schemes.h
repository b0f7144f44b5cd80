// Quantisation schemes: quantised weights and the companion tensors that each needs.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/names/quant_config.h"
#include "core/model/checkpoint.h"

namespace shw {

enum class CompanionNeed {
  kAlways,    // always needed: the weight cannot be decoded without it
  kAsOthers,  // expected if nearly all other weights have it
  kOfBytes,   // needed if the first companion is itself quantised to bytes
};

// A companion tensor of a quantised weight. `endings` are alternatives separated by '|'.
struct QuantCompanion {
  std::string_view endings;
  CompanionNeed need = CompanionNeed::kAlways;
  bool is_scale = false;  // factors of the elements
  // The expected shape; nullopt if the config does not tell. Null: any shape.
  std::optional<Extents> (*shape)(const QuantConfig& config, ExtentsView weight,
                                  ExtentsView companion) = nullptr;
};

// How the numbers of a weight are made of what is stored (core/facts/values/quant_forms.h).
enum class QuantForm {
  kScaled,            // times the scale of its block, row or tensor
  kInt8Rows,          // times the scale of its row, divided by 127
  kMx,                // FP4 with a power of two per group, stacked as gpt-oss has it
  kMxRows,            // the same row by row
  kTwoLevels,         // FP4 with a float8 scale per group, times one number
  kTwoLevelsDivided,  // divided by it
  kGrouped,           // GPTQ and AWQ
  kNf,                // bitsandbytes, codes into a table
  kMlx,               // a scale and a bias per group
  kPacked,            // compressed-tensors, in words of 32 bits
  kMx8,               // FP8 with a power of two per group
  kMxSwizzled,        // the same as kMx8, with scales in the order of a GPU kernel
  kScaledBytes,       // as kScaled, with elements of FP8 that are stored as uint8
  kAffine,            // torchao: less its zero point, times its scale
};

// Columns that share a scale.
inline constexpr std::int64_t kMxGroup = 32, kNvGroup = 16;
// `elements` is the shape of the decoded weight.
Extents shape_of_groups(ExtentsView elements, std::int64_t group);

struct QuantScheme {
  std::string_view title;    // "FP8"
  std::string_view methods;  // names in config.json, separated by '|'
  std::string_view weight;   // suffix of quantised weights: ".qweight"
  bool (*is_weight)(Dtype dtype, ExtentsView shape);
  std::span<const QuantCompanion> companions;
  std::string_view marker = {};  // a companion that identifies the scheme; empty: the dtype does
  QuantForm form = QuantForm::kScaled;
  // Whether the first companion tells that a weight is of this scheme, where others have weights of
  // such names and dtypes too. Null: every weight is.
  bool (*is_of_scale)(const Checkpoint& checkpoint, TensorId weight, TensorId scale) = nullptr;
};

struct QuantPair {
  TensorId weight{};
  std::string stem;                             // the part of the name before the endings
  std::vector<std::optional<TensorId>> beside;  // one per companion of the scheme
  std::vector<std::string_view> ending;         // ending under which it was found
};

// The weights of a scheme in use, and companions without a weight.
struct QuantFamily {
  const QuantScheme* scheme = nullptr;
  bool is_said = false;  // named in config.json
  std::vector<QuantPair> pairs;
  struct Orphan {
    TensorId companion{};
    std::string weight;                   // name that the missing weight would have
    std::optional<TensorId> unquantised;  // the weight exists, but as a float
  };
  std::vector<Orphan> orphans;
};

std::vector<QuantFamily> quant_families(const CheckInput& input,
                                        const std::optional<QuantConfig>& config);

std::vector<std::string_view> alternatives_of(std::string_view text);

}  // namespace shw

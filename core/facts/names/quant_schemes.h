// Quantisation schemes: quantised weights and the companion tensors that each needs.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/facts/names/quant_config.h"
#include "core/facts/names/quant_shapes.h"
#include "core/model/checkpoint.h"

namespace shw {

enum class CompanionNeed {
  kAlways,    // always needed: the weight cannot be decoded without it
  kAsOthers,  // expected if nearly all other weights have it
  kOfBytes,   // needed if the first companion is itself quantised to bytes
  kOfFloats,  // needed if the first companion holds floats
  kOptional,  // some weights have it, and loaders do without it
};

// Sets of dtypes that a companion may have.
enum class CompanionDtypes : unsigned {
  kFloats = 1,     // of 16 and 32 bits
  kExponents = 2,  // F8_E8M0, or its bytes
  kFloat8s = 4,    // F8_E4M3, or its bytes
  kInt8s = 8,
  kInt32s = 16,
  kInt64s = 32,
  kBytes = 64,  // without a sign
  kInt16s = 128,
  kAny = ~0U,
};
constexpr CompanionDtypes operator|(CompanionDtypes a, CompanionDtypes b) {
  return static_cast<CompanionDtypes>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
bool is_allowed_dtype(Dtype dtype, CompanionDtypes dtypes);

// A companion tensor of a quantised weight. `endings` are alternatives separated by '|'.
struct QuantCompanion {
  std::string_view endings;
  CompanionNeed need = CompanionNeed::kAlways;
  bool is_scale = false;  // factors of the elements
  // The expected shape; nullopt if the config does not tell. Null: any shape.
  CompanionShape (*shape)(const QuantSettings& config, ExtentsView weight,
                          ExtentsView companion) = nullptr;
  CompanionDtypes dtypes = CompanionDtypes::kAny;
};

// How a quantised weight is decoded (core/facts/values/quant_forms.h).
enum class QuantForm {
  kScaled,            // code * scale of its block, row or tensor
  kInt8Rows,          // code * scale of its row / 127
  kMx,                // FP4 with a power of two per group, stacked as in gpt-oss
  kMxRows,            // as kMx, in rows of a matrix
  kTwoLevels,         // FP4 with a float8 scale per group, multiplied by one number per tensor
  kTwoLevelsDivided,  // as kTwoLevels, divided by that number
  kGrouped,           // GPTQ and AWQ: words of packed codes, scales and zero points per group
  kNf,                // bitsandbytes: codes into a table
  kMlx,               // a scale and a bias per group
  kPacked,            // compressed-tensors: packed in 32-bit words
  kMx8,               // FP8 with a power of two per group
  kScaledBytes,       // as kScaled, with FP8 elements stored as uint8
  kAffine,            // torchao: (code - zero point) * scale
  kInt4,              // torchao: two codes per byte or eight per word, a scale per group of a row
  kInt4Tiles,         // torchao: as kInt4, in the order of a GPU kernel's tiles
  kMxOfTorchao,       // FP8 or FP4 with a power of two per group, which may be swizzled
  kNvOfTorchao,       // as kTwoLevels, with scales that may be swizzled
  kHqq,               // (code - zero point) * scale, packed along the rows of a matrix of groups
  kTernary,           // BitNet: -1, 0 or 1, four to a byte, with one factor per tensor
};

struct QuantScheme {
  std::string_view title;    // "FP8"
  std::string_view methods;  // names in config.json, separated by '|'
  std::string_view weight;   // suffix of quantised weights: ".qweight"
  bool (*is_weight)(Dtype dtype, ExtentsView shape);
  std::span<const QuantCompanion> companions;
  std::string_view marker = {};  // a companion that identifies the scheme; empty: the dtype does
  QuantForm form = QuantForm::kScaled;
  // True if the first companion shows that a weight belongs to this scheme, when other schemes have
  // weights of the same names and dtypes. Null: all weights belong.
  bool (*is_of_scale)(const Checkpoint& checkpoint, TensorId weight, TensorId scale) = nullptr;
  // True if weights without the marker are plain ones.
  bool needs_marker = false;
  // True if names and dtypes do not tell it from other schemes: only the config does.
  bool needs_config = false;
  // The codec that stores the weights, if decoded blocks are the weights; else empty.
  std::string_view codec = {};
};

// All known schemes; the first one that fits a weight owns it.
std::span<const QuantScheme> quant_schemes();

}  // namespace shw

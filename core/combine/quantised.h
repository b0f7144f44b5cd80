// Quantises weights to 8 or 4 bits with scales, in the forms that inference engines read.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

enum class QuantiseScheme : std::uint8_t {
  // float8_e4m3fn with a float32 scale per block of rows x columns (weight_scale_inv):
  // DeepSeek-V3's form, computed as in transformers' Fp8Quantize.
  kFp8Block,
  // As kFp8Block, with scales that are powers of two, in float8_e8m0fnu.
  kFp8BlockPowers,
  // FP4 (e2m1) with a power of two per 32 elements of the inputs, for experts stacked as [experts,
  // inputs, outputs]: gpt-oss's form (NAME_blocks, NAME_scales), computed as in
  // downcast_to_mxfp_torch of triton_kernels, which transformers uses.
  kMxfp4,
};

struct QuantiseOptions {
  QuantiseScheme scheme = QuantiseScheme::kFp8Block;
  std::int64_t block_rows = 128, block_columns = 128;  // for FP8
};
// Parses "fp8-block", "fp8-block,64x64", "fp8-block-ue8m0", "mxfp4"; kUsage for other text.
Result<QuantiseOptions> parse_quantise_options(const std::string& text);

// Weights of linear modules (FP8), or stacked experts (MXFP4), become pairs; config.json gets the
// matching quantization_config. Embeddings, heads, routers, norms and weights whose sizes the
// blocks do not divide stay unquantised and are listed there, as are tensors named by `aside`.
// kUnsupported if nothing can be quantised or a weight is quantised already.
Result<std::shared_ptr<const Checkpoint>> quantised(std::shared_ptr<const Checkpoint> checkpoint,
                                                    const QuantiseOptions& wanted,
                                                    const std::set<std::string, std::less<>>& aside,
                                                    Progress* progress);

}  // namespace shw

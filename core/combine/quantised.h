// Weights stored in 8 or 4 bits with scales beside them, as inference engines take them.
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
  // float8_e4m3fn and a float32 scale for each block of rows x columns (weight_scale_inv):
  // DeepSeek-V3's form, computed as transformers' Fp8Quantize does.
  kFp8Block,
  // The same with scales that are powers of two, in float8_e8m0fnu.
  kFp8BlockPowers,
  // FP4 (e2m1) with a power of two for each 32 elements of the inputs, for experts that are stacked
  // as [experts, inputs, outputs]: gpt-oss's form (NAME_blocks, NAME_scales), computed as the
  // downcast_to_mxfp_torch of triton_kernels, to which transformers hands it.
  kMxfp4,
};

struct Quantising {
  QuantiseScheme scheme = QuantiseScheme::kFp8Block;
  std::int64_t block_rows = 128, block_columns = 128;  // of FP8
};
// "fp8-block", "fp8-block,64x64", "fp8-block-ue8m0", "mxfp4"; kUsage for others.
Result<Quantising> quantising_of(const std::string& text);

// Weights of linear modules (FP8), or stacked experts (MXFP4), become pairs; config.json gets the
// quantization_config that says so. Embeddings, heads, routers, norms and what the blocks do not
// divide stay, and are named there; so does what `aside` names. kUnsupported where nothing can be
// quantised or some is already.
Result<std::shared_ptr<const Checkpoint>> quantised(std::shared_ptr<const Checkpoint> checkpoint,
                                                    const Quantising& wanted,
                                                    const std::set<std::string, std::less<>>& aside,
                                                    Progress* progress);

}  // namespace shw

#include "core/formats/common/safetensors_dtypes.h"

#include <algorithm>
#include <array>

namespace shw {
namespace {

// Order of the dtype enum in safetensors 0.8 (tensor.rs).
constexpr auto kOrder = std::to_array<std::string_view>(
    {"BOOL",    "F4",          "F6_E2M3",     "F6_E3M2", "U8",  "I8",  "F8_E5M2", "F8_E4M3",
     "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16",     "U16", "F16", "BF16",    "I32",
     "U32",     "F32",         "C64",         "F64",     "I64", "U64"});

}  // namespace

std::string_view safetensors_dtype_name(Dtype dtype) {
  // safetensors counts single elements of F4, of which torch packs two into one.
  return dtype == Dtype::kFloat4E2m1fnX2 ? "F4" : info(dtype).safetensors;
}

std::size_t safetensors_dtype_rank(std::string_view dtype_text) {
  auto found = std::find(kOrder.begin(), kOrder.end(), dtype_text);
  return found == kOrder.end() ? 0 : static_cast<std::size_t>(found - kOrder.begin());
}

}  // namespace shw

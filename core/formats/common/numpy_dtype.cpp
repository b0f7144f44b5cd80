#include "core/formats/common/numpy_dtype.h"

#include <utility>

namespace shw {

NumpyDtype numpy_dtype(std::string_view code) {
  constexpr std::pair<std::string_view, Dtype> kCodes[] = {
      {"f2", Dtype::kFloat16},   {"f4", Dtype::kFloat32},    {"f8", Dtype::kFloat64},
      {"i1", Dtype::kInt8},      {"i2", Dtype::kInt16},      {"i4", Dtype::kInt32},
      {"i8", Dtype::kInt64},     {"u1", Dtype::kUint8},      {"u2", Dtype::kUint16},
      {"u4", Dtype::kUint32},    {"u8", Dtype::kUint64},     {"b1", Dtype::kBool},
      {"c8", Dtype::kComplex64}, {"c16", Dtype::kComplex128}};
  NumpyDtype found;
  if (code.empty() || std::string_view("<>|=").find(code.front()) == std::string_view::npos)
    return found;
  for (const auto& [name, dtype] : kCodes)
    if (code.substr(1) == name) found.dtype = dtype;
  found.is_big_endian = code.front() == '>' && size_of(found.dtype) > 1;
  return found;
}

}  // namespace shw

// The element types that torch can store, with the names that torch and safetensors give them.
// Source: torch 2.15 `torch/csrc/utils/tensor_dtypes.cpp` and `torch/storage.py`; safetensors 0.8
// `tensor.rs`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shw {

enum class Dtype : std::uint8_t {
  kUnknown,
  kFloat64,
  kFloat32,
  kFloat16,
  kBfloat16,
  kFloat8E4m3fn,
  kFloat8E5m2,
  kFloat8E4m3fnuz,
  kFloat8E5m2fnuz,
  kFloat8E8m0fnu,
  kFloat4E2m1fnX2,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kBool,
  kComplex32,
  kComplex64,
  kComplex128,
  kBcomplex32,
  kBits8,
  kBits16,
  kBits1x8,
  kBits2x4,
  kBits4x2,
  kQint8,
  kQuint8,
  kQint32,
  kQuint4x2,
  kQuint2x4,
  kCount
};

struct DtypeInfo {
  Dtype dtype;
  std::string_view name;           // "bfloat16": the name in torch, in specs and in our JSON
  std::uint32_t size;              // bytes per stored element
  std::string_view safetensors;    // "BF16"; empty if safetensors lacks the type
  std::string_view storage_class;  // legacy class of _rebuild_tensor_v2; empty if there is none
};

const DtypeInfo& info(Dtype dtype);
inline std::string_view name(Dtype dtype) {
  return info(dtype).name;
}
inline std::uint32_t size_of(Dtype dtype) {
  return info(dtype).size;
}  // 0 for kUnknown
inline bool is_complex(Dtype dtype) {
  return dtype == Dtype::kComplex32 || dtype == Dtype::kComplex64 || dtype == Dtype::kComplex128 ||
         dtype == Dtype::kBcomplex32;
}

// Parses "bfloat16" or "torch.bfloat16" and torch's aliases float, half, double, long, int, short.
std::optional<Dtype> dtype_from_torch(std::string_view text);
std::optional<Dtype> dtype_from_safetensors(std::string_view text);
std::optional<Dtype> dtype_from_storage_class(std::string_view text);
// Parses user input: names of torch and safetensors, and fp32, bf16, in any case.
std::optional<Dtype> dtype_from_user_text(std::string_view text);

}  // namespace shw

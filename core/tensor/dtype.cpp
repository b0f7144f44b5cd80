#include "core/tensor/dtype.h"

#include <array>
#include <cassert>
#include <string>

#include "core/base/letter_case.h"

namespace shw {
namespace {

using D = Dtype;
constexpr std::array<DtypeInfo, static_cast<std::size_t>(D::kCount)> kTable{{
    {D::kUnknown, "unknown", 0, "", ""},
    {D::kFloat64, "float64", 8, "F64", "DoubleStorage"},
    {D::kFloat32, "float32", 4, "F32", "FloatStorage"},
    {D::kFloat16, "float16", 2, "F16", "HalfStorage"},
    {D::kBfloat16, "bfloat16", 2, "BF16", "BFloat16Storage"},
    {D::kFloat8E4m3fn, "float8_e4m3fn", 1, "F8_E4M3", ""},
    {D::kFloat8E5m2, "float8_e5m2", 1, "F8_E5M2", ""},
    {D::kFloat8E4m3fnuz, "float8_e4m3fnuz", 1, "F8_E4M3FNUZ", ""},
    {D::kFloat8E5m2fnuz, "float8_e5m2fnuz", 1, "F8_E5M2FNUZ", ""},
    {D::kFloat8E8m0fnu, "float8_e8m0fnu", 1, "F8_E8M0", ""},
    {D::kFloat4E2m1fnX2, "float4_e2m1fn_x2", 1, "", ""},
    {D::kInt8, "int8", 1, "I8", "CharStorage"},
    {D::kInt16, "int16", 2, "I16", "ShortStorage"},
    {D::kInt32, "int32", 4, "I32", "IntStorage"},
    {D::kInt64, "int64", 8, "I64", "LongStorage"},
    {D::kUint8, "uint8", 1, "U8", "ByteStorage"},
    {D::kUint16, "uint16", 2, "U16", ""},
    {D::kUint32, "uint32", 4, "U32", ""},
    {D::kUint64, "uint64", 8, "U64", ""},
    {D::kBool, "bool", 1, "BOOL", "BoolStorage"},
    {D::kComplex32, "complex32", 4, "", ""},
    {D::kComplex64, "complex64", 8, "C64", "ComplexFloatStorage"},
    {D::kComplex128, "complex128", 16, "", "ComplexDoubleStorage"},
    {D::kBcomplex32, "bcomplex32", 4, "", ""},
    {D::kBits8, "bits8", 1, "", ""},
    {D::kBits16, "bits16", 2, "", ""},
    {D::kBits1x8, "bits1x8", 1, "", ""},
    {D::kBits2x4, "bits2x4", 1, "", ""},
    {D::kBits4x2, "bits4x2", 1, "", ""},
    {D::kQint8, "qint8", 1, "", "QInt8Storage"},
    {D::kQuint8, "quint8", 1, "", "QUInt8Storage"},
    {D::kQint32, "qint32", 4, "", "QInt32Storage"},
    {D::kQuint4x2, "quint4x2", 1, "", "QUInt4x2Storage"},
    {D::kQuint2x4, "quint2x4", 1, "", "QUInt2x4Storage"},
}};

constexpr bool table_is_in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].dtype != static_cast<Dtype>(i)) return false;
  }
  return true;
}
static_assert(table_is_in_order());

struct Alias {
  std::string_view name;
  Dtype dtype;
};
constexpr Alias kAliases[] = {
    {"float", D::kFloat32},   {"double", D::kFloat64},   {"half", D::kFloat16},
    {"long", D::kInt64},      {"int", D::kInt32},        {"short", D::kInt16},
    {"chalf", D::kComplex32}, {"cfloat", D::kComplex64}, {"cdouble", D::kComplex128}};

template <class Field>
std::optional<Dtype> find_dtype_by_field(Field field, std::string_view text) {
  if (text.empty()) return std::nullopt;
  for (std::size_t i = 1; i < kTable.size(); ++i) {
    if (kTable[i].*field == text) return kTable[i].dtype;
  }
  return std::nullopt;
}

}  // namespace

const DtypeInfo& info(Dtype dtype) {
  assert(dtype < Dtype::kCount);
  return kTable[static_cast<std::size_t>(dtype)];
}

std::optional<Dtype> dtype_from_torch(std::string_view text) {
  constexpr std::string_view kPrefix = "torch.";
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  if (text == "unknown") return std::nullopt;
  if (auto found = find_dtype_by_field(&DtypeInfo::name, text)) return found;
  for (const Alias& alias : kAliases) {
    if (alias.name == text) return alias.dtype;
  }
  return std::nullopt;
}

std::optional<Dtype> dtype_from_safetensors(std::string_view text) {
  return find_dtype_by_field(&DtypeInfo::safetensors, text);
}
std::optional<Dtype> dtype_from_storage_class(std::string_view text) {
  return find_dtype_by_field(&DtypeInfo::storage_class, text);
}

std::optional<Dtype> dtype_from_user_text(std::string_view text) {
  if (auto dtype = dtype_from_torch(lowered(text))) return dtype;
  std::string code = uppered(text);
  if (code.starts_with("FP")) code.erase(1, 1);
  return dtype_from_safetensors(code);
}

}  // namespace shw

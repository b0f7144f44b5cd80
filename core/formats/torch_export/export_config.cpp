#include "core/formats/torch_export/export_config.h"

#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/json.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

using Json = nlohmann::ordered_json;

struct NumberedDtype {
  std::int64_t number;
  Dtype dtype;
};
// ScalarType of torch/_export/serde/schema.py.
constexpr auto kNumbers = std::to_array<NumberedDtype>({
    {1, Dtype::kUint8},           {2, Dtype::kInt8},
    {3, Dtype::kInt16},           {4, Dtype::kInt32},
    {5, Dtype::kInt64},           {6, Dtype::kFloat16},
    {7, Dtype::kFloat32},         {8, Dtype::kFloat64},
    {9, Dtype::kComplex32},       {10, Dtype::kComplex64},
    {11, Dtype::kComplex128},     {12, Dtype::kBool},
    {13, Dtype::kBfloat16},       {28, Dtype::kUint16},
    {29, Dtype::kFloat8E4m3fn},   {30, Dtype::kFloat8E5m2},
    {31, Dtype::kFloat8E4m3fnuz}, {32, Dtype::kFloat8E5m2fnuz},
    {33, Dtype::kFloat8E8m0fnu},  {34, Dtype::kUint32},
    {35, Dtype::kUint64},
});

// nullopt if it is missing, negative, or a size that is only known at run time.
std::optional<std::int64_t> fixed_number(const Json* value) {
  const Json* number = value == nullptr ? nullptr : find_member(*value, "as_int");
  if (number == nullptr || !number->is_number_integer()) return std::nullopt;
  const auto known = number->get<std::int64_t>();
  return known < 0 ? std::nullopt : std::optional(known);
}

std::optional<Extents> fixed_numbers(const Json* values) {
  if (values == nullptr || !values->is_array() || values->size() > kMaxDims) return std::nullopt;
  Extents numbers;
  for (const Json& value : *values) {
    const auto number = fixed_number(&value);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

Dtype dtype_of_number(const Json* value) {
  if (value == nullptr || !value->is_number_integer()) return Dtype::kUnknown;
  for (const NumberedDtype& one : kNumbers) {
    if (one.number == value->get<std::int64_t>()) return one.dtype;
  }
  return Dtype::kUnknown;
}

bool is_true(const Json* value) {
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

// Why the tensor is not read; empty if it is.
std::string parse_exported_tensor_meta(const Json* meta, ExportedTensor& tensor) {
  if (meta == nullptr || !meta->is_object()) return "is not a tensor";
  tensor.dtype = dtype_of_number(find_member(*meta, "dtype"));
  if (tensor.dtype == Dtype::kUnknown) return "has an unknown dtype";
  const auto sizes = fixed_numbers(find_member(*meta, "sizes")),
             strides = fixed_numbers(find_member(*meta, "strides"));
  const auto offset = fixed_number(find_member(*meta, "storage_offset"));
  if (!sizes || !strides || !offset || sizes->size() != strides->size())
    return "has no fixed sizes and strides";
  if (!storage_needed(*sizes, *strides, *offset)) return "has impossible sizes";
  tensor.sizes = *sizes;
  tensor.strides = *strides;
  tensor.offset = *offset;
  tensor.requires_grad = is_true(find_member(*meta, "requires_grad"));
  return "";
}

}  // namespace

Result<std::vector<ExportedTensor>> parse_export_config(std::string_view text,
                                                        const std::string& file) {
  const ParsedJson<Json> parsed = parse_json<Json>(text);
  if (!parsed.problem.empty())
    return fail(ErrorKind::kDamaged, "is " + json_error_text(parsed),
                {file, json_error_offset(parsed)});
  const Json* config = find_member(parsed.tree, "config");
  if (config == nullptr || !config->is_object())
    return fail(ErrorKind::kDamaged, "has no object \"config\" with the tensors", {file});
  std::vector<ExportedTensor> tensors;
  for (const auto& [fqn, payload] : config->items()) {
    const Json* record = find_member(payload, "path_name");
    if (record == nullptr || !record->is_string())
      return fail(ErrorKind::kDamaged, fmt::format("names no record of {}", fqn), {file});
    ExportedTensor tensor{fqn, record->get<std::string>()};
    tensor.not_read = is_true(find_member(payload, "use_pickle"))
                          ? "is pickled, like tensor subclasses and program objects"
                          : parse_exported_tensor_meta(find_member(payload, "tensor_meta"), tensor);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace shw

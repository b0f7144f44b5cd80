#include "core/facts/values/quant_torchao.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/base/printable.h"
#include "core/facts/values/quant_scaled.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

// One element per byte. quanto has the same form, without classes.
Result<DecodedWeight> affine_decoder(const QuantSource& from) {
  const std::size_t part = from.pair.stem.rfind('.') + 1;
  const Dtype dtype = from.c().dtype(from.pair.weight);
  const bool is_byte_each = dtype != Dtype::kUint8 && dtype != Dtype::kInt32;
  const std::string_view fqn = from.c().fqn(from.pair.weight);
  const bool is_attribute = fqn.ends_with(".qdata") || fqn.ends_with(".int_data");
  const bool is_named =
      is_attribute || (part < from.pair.stem.size() && from.pair.stem[part] == '_');
  const std::string type = from.of_class == nullptr ? std::string() : from.of_class->type;
  const bool is_of_ints = type == "Int8Tensor" || type == "IntxUnpackedToInt8Tensor";
  const bool is_of_floats = type == "Float8Tensor" || type == "PrototypeFloat8Tensor";
  if ((is_of_ints && dtype != Dtype::kInt8) ||
      (is_of_floats && (!is_byte_each || dtype == Dtype::kInt8)))
    return from.unfit(fmt::format("is {}, which its class, {}, does not have", name(dtype), type));
  if (!is_byte_each || !is_named)
    return from.unreadable_error("is packed in a way that is not decoded");
  const auto scale = from.companion(0);
  const bool is_of_torchao = !fqn.ends_with("._data");
  if (is_of_torchao && from.of_class == nullptr && dtype == Dtype::kInt8 && !from.companion(1))
    return from.unreadable_error(
        "has no zero_point next to it, and no file says that its class has none");
  if (from.of_class != nullptr && from.of_class->shape &&
      !same(*from.of_class->shape, from.weight()))
    return from.unfit(fmt::format("is {}, and its class says {}", to_text(from.weight()),
                                  to_text(*from.of_class->shape)));
  // Scales [n, n] for a weight of n rows fit int4 and int8: only the class tells.
  const ExtentsView weight = from.weight();
  const ExtentsView scales = scale ? from.c().shape(*scale) : ExtentsView();
  if (from.of_class == nullptr && dtype == Dtype::kInt8 && scales.size() == weight.size() &&
      scales.back() > 1 && scales.back() == weight[weight.size() - 2] && from.companion(1))
    return from.unreadable_error("is int8 or two int4 per byte, and no file names its class");
  return scaled_decoder(from, from.companion(1), 1.0f);
}

// The first companion tensor that the file lists for the weight's class but does not contain;
// nullopt if all exist.
std::optional<std::string> lost_part(const QuantSource& from) {
  if (from.of_class == nullptr) return std::nullopt;
  const auto& parts = from.of_class->parts;
  const auto lost =
      std::ranges::find_if(parts, [&](const std::string& part) { return !from.c().find(part); });
  return lost == parts.end() ? std::nullopt : std::optional(*lost);
}

constexpr auto kFormOfClass = std::to_array<std::pair<std::string_view, QuantForm>>(
    {{"Int8Tensor", QuantForm::kAffine},
     {"IntxUnpackedToInt8Tensor", QuantForm::kAffine},
     {"Float8Tensor", QuantForm::kAffine},
     {"PrototypeFloat8Tensor", QuantForm::kAffine},
     {"Int4Tensor", QuantForm::kInt4},
     {"Int4PlainInt32Tensor", QuantForm::kInt4},
     {"Int4TilePackedTo4dTensor", QuantForm::kInt4Tiles},
     {"MXTensor", QuantForm::kMxOfTorchao},
     {"NVFP4Tensor", QuantForm::kNvOfTorchao}});

std::optional<QuantForm> quant_form_of_torchao_class(std::string_view type, QuantForm found) {
  // These two wrapper classes hold an inner layout class, whose tensors have other names, so
  // `found` decides.
  const bool is_outer =
      type == "AffineQuantizedTensor" || type == "LinearActivationQuantizedTensor";
  if (type.empty() || is_outer) return found;
  const auto* known =
      std::ranges::find(kFormOfClass, type, &std::pair<std::string_view, QuantForm>::first);
  return known == kFormOfClass.end() ? std::nullopt : std::optional(known->second);
}

}  // namespace

bool is_decoded_class(std::string_view type) {
  return std::ranges::find(kFormOfClass, type, &std::pair<std::string_view, QuantForm>::first) !=
         kFormOfClass.end();
}

Result<DecodedWeight> torchao_decoder(const QuantSource& from, QuantForm form) {
  // The model multiplies its inputs too, so that the weight alone is not what it computes with.
  if (from.c().find(from.pair.stem + "_act_pre_scale") ||
      from.c().find(from.pair.stem + ".act_pre_scale"))
    return from.unreadable_error(
        "has an act_pre_scale, with which the model multiplies its inputs");
  if (const auto lost = lost_part(from))
    return from.unfit(
        fmt::format("is a {} that lacks {}", printable(from.of_class->type), printable(*lost)));
  const std::string type = from.of_class == nullptr ? std::string() : from.of_class->type;
  const auto of_class = quant_form_of_torchao_class(type, form);
  if (!of_class)
    return from.unreadable_error(
        fmt::format("has the class {}, which is not decoded", printable(type)));
  // The companions were found for `form`; int4 and int8 have the same ones.
  const bool fits = *of_class == form ||
                    (form == QuantForm::kAffine && *of_class == QuantForm::kInt4) ||
                    (form == QuantForm::kInt4 && *of_class == QuantForm::kAffine);
  if (!fits)
    return from.unfit(fmt::format("has parts that do not fit its class, {}", printable(type)));
  switch (*of_class) {
    case QuantForm::kInt4:
      return int4_decoder(from);
    case QuantForm::kInt4Tiles:
      return int4_tiles_decoder(from);
    case QuantForm::kMxOfTorchao:
      return torchao_mx_decoder(from);
    case QuantForm::kNvOfTorchao:
      return torchao_nvfp4_decoder(from);
    default:
      return affine_decoder(from);
  }
}

}  // namespace shw

#include <string_view>
#include <unordered_set>

#include "core/base/version.h"
#include "core/report/json.h"
#include "core/report/statistics_report.h"
#include "core/tensor/cast.h"
#include "core/tensor/element_numbers.h"

namespace shw {
namespace {

Json number_json(std::optional<double> number) {
  return number ? Json(*number) : Json(nullptr);
}

// The exact number: float8's 448 would be shortened to the text 450, which is above
// every element and inconsistent with the exact mean. For dtypes without a cast, the
// text.
Json bound_json(Dtype dtype, const std::string& text) {
  const Json told = element_json(text);
  if (!told.is_number() || dtype == Dtype::kFloat64 || !can_cast(Dtype::kFloat64, dtype))
    return told;
  const auto number = told.get<double>();
  auto element = cast_elements(Dtype::kFloat64, std::as_bytes(std::span(&number, 1)), dtype);
  const ToNumbers read = to_numbers(dtype);
  if (!element || read == nullptr) return told;
  double exact = 0;
  read(element->data(), 1, &exact);
  return exact;
}

Json histogram_json(const Statistics& statistics) {
  Json buckets = Json::array();
  for (const PowerBucket& bucket : statistics.histogram)
    buckets.push_back(
        {{"sign", bucket.sign}, {"exponent", bucket.exponent}, {"count", bucket.count}});
  return buckets;
}

Json tensor_json(const TensorStatistics& tensor) {
  const Statistics& statistics = tensor.statistics;
  const bool has_numbers = statistics.kind != NumberKind::kOpaque;
  auto count = [&](std::uint64_t number) { return has_numbers ? Json(number) : Json(nullptr); };
  Json out = {{"dtype", name(tensor.dtype)},
              {"shape", json_of(ExtentsView(tensor.shape))},
              {"elements", statistics.elements},
              {"nan", count(statistics.nan)},
              {"inf", count(statistics.infinite)},
              {"zero", statistics.zero},
              {"denormal", count(statistics.denormal)},
              {"min", bound_json(tensor.dtype, statistics.least)},
              {"max", bound_json(tensor.dtype, statistics.greatest)},
              {"mean", number_json(statistics.mean)},
              {"std", number_json(statistics.std)},
              {"histogram", has_numbers ? histogram_json(statistics) : Json(nullptr)}};
  if (tensor.missing != 0) out["missing"] = tensor.missing;
  if (tensor.unread != 0) out["unread"] = tensor.unread;
  if (tensor.repeated != 0) out["repeated"] = tensor.repeated;
  if (tensor.at_least) out["at_least"] = true;
  if (tensor.error) out["error"] = error_json(*tensor.error);
  if (!has_numbers && tensor.dtype != Dtype::kUnknown)
    out["note"] = "of " + std::string(name(tensor.dtype)) + " only elements and zeros are counted";
  return out;
}

}  // namespace

std::string statistics_to_json(std::span<const TensorStatistics> tensors, const DeviceUse* device,
                               std::span<const std::string> unread) {
  Json told = Json::object();
  auto& names = told.get_ref<Json::object_t&>();
  std::unordered_set<std::string_view> seen;
  for (const TensorStatistics& tensor : tensors) {
    // operator[] would search linearly: 2 of 3 s for 40,000 tensors.
    if (seen.insert(tensor.fqn).second) names.emplace_back(tensor.fqn, tensor_json(tensor));
  }
  Json out = {{"schema", kJsonSchema}, {"tensors", std::move(told)}};
  if (device != nullptr) out["device"] = device_json(*device);
  if (!unread.empty()) out["unread"] = unread;
  return pretty_json_line(out);
}

}  // namespace shw

#include <array>
#include <cmath>

#include "core/base/version.h"
#include "core/report/difference_report.h"
#include "core/report/json.h"
#include "core/tensor/statistics.h"

namespace shw {
namespace {

Json side_json(const std::optional<TensorSide>& side) {
  if (!side) return nullptr;
  Json out = {{"dtype", name(side->dtype)},
              {"shape", json_of(ExtentsView(side->shape))},
              {"tiles", side->tiles}};
  if (side->missing != 0) out["missing"] = side->missing;
  if (side->filled != 0) out["filled"] = side->filled;
  return out;
}

Json distance_json(double distance) {
  return std::isinf(distance) ? Json("Infinity") : Json(distance);
}

// Integers are exact; no difference exists for values that are not numbers.
Json max_abs_json(const ValueDifference& values, Dtype dtype) {
  NumberKind kind = number_kind(dtype);
  if (kind == NumberKind::kOpaque) return nullptr;
  if (kind == NumberKind::kInteger && !values.by_value) return values.elements.max_whole;
  return distance_json(values.elements.max_abs);
}

void add_values(const ValueDifference& values, Dtype dtype, Json& out) {
  out["compared"] = values.compared;
  if (values.unread != 0) out["unread"] = values.unread;
  out["differing"] = values.elements.differing;
  if (values.elements.beyond != 0) out["beyond"] = values.elements.beyond;
  if (values.by_value) out["by_value"] = true;
  if (values.elements.differing == 0) return;
  bool has_ulp = number_kind(dtype) == NumberKind::kFloat && !values.by_value;
  out["bits_only"] = values.elements.bits_only;
  out["nan"] = values.elements.nan;
  out["max_abs"] = max_abs_json(values, dtype);
  out["max_ulp"] = has_ulp ? Json(values.elements.max_ulp) : Json(nullptr);
  out["cosine"] = values.cosine ? Json(*values.cosine) : Json(nullptr);
  if (values.first) {
    out["first"] = {{"index", json_of(ExtentsView(values.first->index))},
                    {"a", element_json(values.first->a)},
                    {"b", element_json(values.first->b)}};
  }
}

Json tensor_difference_json(const TensorDifference& tensor) {
  Json out = {{"kind", name(tensor.kind)}, {"a", side_json(tensor.a)}, {"b", side_json(tensor.b)}};
  if (tensor.within) out["within"] = true;
  if (tensor.retiled) out["retiled"] = true;
  if (tensor.same_elements) out["same_elements"] = *tensor.same_elements;
  if (tensor.values) add_values(*tensor.values, tensor.a ? tensor.a->dtype : tensor.b->dtype, out);
  if (!tensor.why.empty()) out["why"] = tensor.why;
  if (tensor.error) {
    out["error"] = error_json(*tensor.error);
    out["error"]["in"] = std::string(1, tensor.error_in);
  }
  return out;
}

// Ordered objects search linearly, so pairs are appended.
Json tensors_json(const CheckpointDifference& difference) {
  Json tensors = Json::object();
  auto& pairs = tensors.get_ref<Json::object_t&>();
  for (const TensorDifference& tensor : difference.tensors) {
    Json told = tensor_difference_json(tensor);
    if (tensor.kind == DifferenceKind::kRenamed) {
      Json other = told;
      other["from"] = tensor.fqn;
      pairs.push_back({tensor.other, std::move(other)});
      told["to"] = tensor.other;
    }
    pairs.push_back({tensor.fqn, std::move(told)});
  }
  return tensors;
}

Json entries_json(const CheckpointDifference& difference) {
  Json entries = Json::object();
  auto& pairs = entries.get_ref<Json::object_t&>();
  for (const EntryDifference& entry : difference.entries) {
    Json told = {{"kind", name(entry.kind)}};
    if (!entry.a.empty()) told["a"] = entry.a;
    if (!entry.b.empty()) told["b"] = entry.b;
    if (!entry.why.empty()) told["why"] = entry.why;
    pairs.push_back({entry.fqn, std::move(told)});
  }
  return entries;
}

Json counts_json(const CheckpointDifference& difference) {
  std::array<std::uint64_t, kDifferenceKinds> counts{};
  for (const TensorDifference& tensor : difference.tensors)
    ++counts[static_cast<std::size_t>(tensor.kind)];
  Json out = Json::object();
  for (std::size_t kind = 0; kind < kDifferenceKinds; ++kind)
    out[std::string(name(static_cast<DifferenceKind>(kind)))] = counts[kind];
  return out;
}

}  // namespace

std::string difference_to_json(const CheckpointDifference& difference, const ComparedPaths& paths) {
  Json unjudged = Json::array();
  for (const Unjudged& one : difference.unjudged)
    unjudged.push_back({{"what", one.what}, {"needs", one.needs}});
  Json out = {{"schema", kJsonSchema},
              {"verdict", name(difference.verdict)},
              {"data", difference.data},
              {"a", {{"checkpoint", paths.a}, {"tensors", difference.tensors_a}}},
              {"b", {{"checkpoint", paths.b}, {"tensors", difference.tensors_b}}},
              {"in_both", difference.in_both},
              {"compared", difference.compared},
              {"same", difference.same},
              {"counts", counts_json(difference)},
              {"tensors", tensors_json(difference)},
              {"entries", entries_json(difference)},
              {"unjudged", std::move(unjudged)},
              {"doubts", difference.doubts}};
  if (difference.tolerance) {
    out["tolerance"] = {{"atol", difference.tolerance->absolute},
                        {"rtol", difference.tolerance->relative}};
    out["within"] = difference.within;
  }
  return pretty_json_line(out);
}

}  // namespace shw

#include "core/repair/lost.h"

#include <map>
#include <nlohmann/json.hpp>

namespace shw {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const TensorCertificate& tensor, const PlannedTensor* planned) {
  Json boxes = Json::array();
  for (const Box& box : tensor.lost_boxes)
    boxes.push_back({{"offsets", box.offsets}, {"sizes", box.sizes}});
  Json out = {{"shape", tensor.shape},
              {"total", tensor.kept + tensor.lost},
              {"kept", tensor.kept},
              {"lost", tensor.lost}};
  if (planned != nullptr) {  // otherwise a hole that was there before and that nothing mends
    out["fill"] = name(planned->fill);
    if (planned->fill != Fill::kZero) out["fill_from"] = planned->fill_from;
  }
  out["lost_boxes"] = std::move(boxes);
  return out;
}

}  // namespace

std::string lost_to_json(const Certificate& certificate, const Checkpoint& source,
                         const Plan& plan) {
  std::map<std::string_view, const PlannedTensor*> planned;
  for (const PlannedTensor& tensor : plan.tensors) planned[fqn_after(source, tensor)] = &tensor;
  std::int64_t kept = 0, lost = 0;
  Json tensors = Json::object();
  auto& entries = tensors.get_ref<Json::object_t&>();
  for (const TensorCertificate& tensor : certificate.tensors) {
    if (tensor.lost == 0) continue;
    auto found = planned.find(tensor.fqn);
    entries.push_back(
        {tensor.fqn, json_of(tensor, found == planned.end() ? nullptr : found->second)});
    kept += tensor.kept;
    lost += tensor.lost;
  }
  Json out = {{"schema", "shardwright/1"}, {"total", kept + lost}, {"kept", kept}, {"lost", lost}};
  out["tensors"] = std::move(tensors);
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace shw

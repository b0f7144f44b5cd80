#include "core/repair/lost.h"

#include <nlohmann/json.hpp>

namespace shw {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const TensorCertificate& tensor) {
  Json boxes = Json::array();
  for (const Box& box : tensor.lost_boxes)
    boxes.push_back({{"offsets", box.offsets}, {"sizes", box.sizes}});
  Json out = {{"shape", tensor.shape},
              {"total", tensor.kept + tensor.lost},
              {"kept", tensor.kept},
              {"lost", tensor.lost}};
  // Without one it is a hole that was there before and that nothing mends.
  if (!tensor.fill.empty()) out["fill"] = tensor.fill;
  if (!tensor.fill_from.empty()) out["fill_from"] = tensor.fill_from;
  if (!tensor.fill_checkpoint.empty()) out["fill_checkpoint"] = tensor.fill_checkpoint;
  out["lost_boxes"] = std::move(boxes);
  return out;
}

}  // namespace

std::string lost_to_json(const Certificate& certificate) {
  std::int64_t kept = 0, lost = 0;
  Json tensors = Json::object();
  auto& entries = tensors.get_ref<Json::object_t&>();
  for (const TensorCertificate& tensor : certificate.tensors) {
    if (tensor.lost == 0) continue;
    entries.push_back({tensor.fqn, json_of(tensor)});
    kept += tensor.kept;
    lost += tensor.lost;
  }
  Json out = {{"schema", "shardwright/1"}, {"total", kept + lost}, {"kept", kept}, {"lost", lost}};
  out["tensors"] = std::move(tensors);
  for (const EntryCertificate& entry : certificate.entries)
    out["entries"].push_back({{"fqn", entry.fqn}, {"from", entry.from}});
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace shw

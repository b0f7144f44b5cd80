// Helpers for JSON answers. Only included by .cpp files of core/report, because it includes
// nlohmann_json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/model/finding.h"
#include "core/tensor/shape.h"

namespace shw {

struct DeviceUse;

using Json = nlohmann::ordered_json;

inline Json json_of(ExtentsView extents) {
  Json list = Json::array();
  for (std::int64_t extent : extents) list.push_back(extent);
  return list;
}
inline Json json_of(const Box& box) {
  return {{"offsets", json_of(ExtentsView(box.offsets))},
          {"sizes", json_of(ExtentsView(box.sizes))}};
}

// An element as in `show --values`: NaN and infinities as strings; null for an empty text.
inline Json element_json(const std::string& text) {
  if (text.empty()) return nullptr;
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

Json finding_json(const Finding& finding);
Json error_json(const Error& error);     // without "schema"
Json device_json(const DeviceUse& use);  // in json_repair.cpp
using Evidence = std::vector<std::pair<std::string, EvidenceValue>>;
Json json_of(const Evidence& evidence);  // in json_check.cpp

// Names from files may be invalid UTF-8, which is replaced.
inline std::string pretty_json_line(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace shw

// Operations as JSON, the same in plan.json and in certificate.json; for .cpp files only.
#pragma once

#include <nlohmann/json.hpp>

#include "core/repair/plan_types.h"

namespace shw {

inline nlohmann::ordered_json json_of(const Operation& operation) {
  return {{"kind", name(operation.kind)},
          {"rule", operation.rule},
          {"subjects", operation.subjects},
          {"text", operation.text},
          {"tiles", operation.tiles},
          {"bytes_moved", operation.bytes_moved},
          {"elements_lost", operation.elements_lost},
          {"lossless", operation.lossless}};
}

}  // namespace shw

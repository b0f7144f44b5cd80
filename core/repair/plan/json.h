// JSON of operations, which is the same in plan.json and in certificate.json. For .cpp files only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/repair/plan/plan_types.h"

namespace shw {

// Version that plan_to_json() writes. Version 1 had only repairs, version 2 only steps.
inline constexpr int kPlanVersion = 3;

// JSON values of a finding's Severity in a plan.
inline constexpr std::string_view kSeverities[] = {"info", "warning", "error"};

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

// Like plan_to_json(), with another indentation; -1 writes one line.
std::string plan_text(const Checkpoint& checkpoint, const Plan& plan, int indent);

}  // namespace shw

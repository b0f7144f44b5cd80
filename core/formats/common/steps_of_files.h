// The step that each file of one save records. Files that record different steps come from
// different saves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/finding.h"

namespace shw {

class MixedStepsCheck {
 public:
  void add(const std::string& path, std::optional<std::int64_t> step);
  // Finding of the rule "mixed-saves"; nullopt if all files agree. `noun`: "iteration".
  std::optional<Finding> finding(std::string_view noun) const;

 private:
  std::map<std::int64_t, std::vector<std::string>> files_;  // by step
};

}  // namespace shw

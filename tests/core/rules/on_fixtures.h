// Fixtures by name, and the findings of check() for them.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/formats/open.h"
#include "core/rules/check.h"

namespace shw::test {

inline std::string folder(const std::string& fixture) {
  return std::string(SHW_TEST_DATA) + "/" + fixture;
}

inline std::shared_ptr<const Checkpoint> opened_fixture(const std::string& fixture) {
  auto checkpoint = open_checkpoint(folder(fixture) + "/ckpt");
  REQUIRE(checkpoint.has_value());
  return *checkpoint;
}

inline CheckReport looked(const Checkpoint& checkpoint, const CheckOptions& options) {
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  return *report;
}

// Rules of findings above info, in the report's order.
inline std::vector<std::string> rules_above_info(const CheckReport& report) {
  std::vector<std::string> rules;
  for (const Finding& finding : report.findings) {
    if (finding.severity > Severity::kInfo) rules.push_back(finding.rule);
  }
  return rules;
}

// The number in the finding's evidence under `key`; -1 if there is none.
inline std::int64_t number(const Finding& finding, std::string_view key) {
  for (const auto& [name, value] : finding.evidence) {
    if (name == key && std::holds_alternative<std::int64_t>(value))
      return std::get<std::int64_t>(value);
  }
  return -1;
}

inline const Finding* find(const CheckReport& report, std::string_view rule) {
  for (const Finding& finding : report.findings) {
    if (finding.rule == rule) return &finding;
  }
  return nullptr;
}

}  // namespace shw::test

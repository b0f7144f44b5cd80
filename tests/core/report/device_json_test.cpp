// JSON about the device that computed elements.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/report/report.h"

using namespace shw;

TEST_CASE("an answer tells what each stage of a GPU moved, and which one took longest") {
  RepairResult result;
  result.device = {"cuda:0", "it was asked for", {}, {{{4000, 2.0}, {6000, 0.5}, {2000, 1.0}}}};
  const auto device = nlohmann::json::parse(repair_to_json(result, {}, nullptr))["device"];
  CHECK(device["used"] == "cuda:0");
  CHECK_FALSE(device.contains("failed"));
  CHECK(device["stages"]["longest"] == "send");
  CHECK(device["stages"]["send"]["bytes"] == 4000);
  CHECK(device["stages"]["kernels"]["seconds"] == 0.5);
  CHECK(device["stages"]["fetch"]["bytes"] == 2000);
  CHECK(device["stages"].size() == 4);
}

TEST_CASE("an answer of the CPU has no stages of a device") {
  RepairResult result;
  const auto device = nlohmann::json::parse(repair_to_json(result, {}, nullptr))["device"];
  CHECK(device["used"] == "cpu");
  CHECK_FALSE(device.contains("stages"));
  CHECK_FALSE(slowest(result.device.works).has_value());
}

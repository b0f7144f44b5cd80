// Names in a file of torch.save that belong to a library.
#include <algorithm>

#include "core/formats/torch_file/torch_file_support.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("a name of torch's own is not told as another program's") {
  for (const char* value : {"ctorch.distributed.tensor._dtensor_spec\nTensorMeta\n)\x81",
                            "ctorch._utils\n_rebuild_nested_tensor\n)R"}) {
    CAPTURE(value);
    auto opened = open_model(state_dict_file(pickled_dict({{"x", value}})));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    const auto findings = (*opened)->opening_findings();
    auto told = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.rule == "unsafe-pickle";
    });
    REQUIRE(told != findings.end());
    CHECK(told->severity == Severity::kInfo);
    CHECK(told->cause.find("torch's own") != std::string::npos);
    CHECK(told->cause.find("another program") == std::string::npos);
  }
}

TEST_CASE("harmless names of one owner are one finding") {
  const std::string first = "ctorch.distributed.tensor._dtensor_spec\nTensorMeta\n)\x81";
  const std::string second = "ctorch._utils\n_rebuild_nested_tensor\n)R";
  const std::string third = "cmylib.things\nThing\n)\x81";
  auto opened =
      open_model(state_dict_file(pickled_dict({{"x", first}, {"y", second}, {"z", third}})));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  std::vector<std::string> causes;
  for (const Finding& finding : (*opened)->opening_findings()) {
    if (finding.rule == "unsafe-pickle") causes.push_back(finding.cause);
  }
  REQUIRE(causes.size() == 2);
  CHECK(causes[0].find("TensorMeta") != std::string::npos);
  CHECK(causes[0].find("_rebuild_nested_tensor") != std::string::npos);
  CHECK(causes[1].find("mylib.things.Thing") != std::string::npos);
}

// Names in a file of torch.save that belong to a library.
#include <algorithm>

#include "core/formats/common/unsafe_file.h"
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
    CHECK(told->cause.find("of torch: with") != std::string::npos);
    CHECK(told->cause.find("another program") == std::string::npos);
  }
}

TEST_CASE("a file of joblib names its arrays, and dangerous names behind them are found") {
  const std::string wrapper = "cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81";
  auto findings_of = [&](const std::string& behind) {
    const std::string elements("\xff\xfe\xfd\xfc\xff\xff", 6);
    const Bytes bytes = to_bytes("\x80\x04(" + wrapper + elements + behind);
    return unsafe_findings_of_file(*memory_directory("m", {{"a.joblib", bytes}}), "a.joblib");
  };
  CHECK(findings_of("q\1.").empty());
  CHECK(findings_of("csklearn.tree\nTree\n)R.").empty());
  REQUIRE(findings_of("cposix\nsystem\n)R.").size() == 1);
  CHECK(findings_of("cposix\nsystem\n)R.")[0].severity == Severity::kError);
  CHECK(findings_of("\x8c\x05posix\x94\x8c\x06system\x94\x93)R.").size() == 1);
}

TEST_CASE("a tensor in a file of joblib is harmless where its storage is plain") {
  const std::string load = "ctorch.storage\n_load_from_bytes\n";
  const auto findings_of_pickle = [&](const std::string& opcodes) {
    const Bytes bytes = to_bytes("\x80\x04" + opcodes + ".");
    return unsafe_findings_of_file(*memory_directory("m", {{"a.joblib", bytes}}), "a.joblib");
  };
  const auto in_bytes = [](const std::string& nested) {
    return "C" + std::string(1, static_cast<char>(nested.size())) + nested;
  };
  const auto nested = [&](const std::string& object) {  // magic, protocol, system, object, keys
    return in_bytes(
        "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02K\1."
        "\x80\x02}.\x80\x02" +
        object + "Q.\x80\x02].");
  };
  const auto findings_of = [&](const std::string& object) {
    return findings_of_pickle(load + nested(object) + "\x85R");
  };
  CHECK(findings_of("ctorch\nFloatStorage\n").empty());
  CHECK_FALSE(findings_of("cposix\nsystem\n(K\1tR").empty());
  CHECK_FALSE(findings_of("ctorch\nload\n").empty());
  // Handed to a function that calls it, and bytes that torch opens as a zip archive.
  CHECK_FALSE(findings_of_pickle("ctorch._tensor\n_rebuild_from_type_v2\n(" + load +
                                 "ctorch\nTensor\n" + nested("cposix\nsystem\n(K\1tR") + "\x85NtR")
                  .empty());
  CHECK_FALSE(findings_of_pickle(load + in_bytes("PK\x03\x04\n.N.N.N.N.") + "\x85R").empty());
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

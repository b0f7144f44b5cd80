// Pickles that are next to a checkpoint, and pickles for which a folder is refused: what Python
// would run on loading them is reported, and nothing runs.
#include <doctest/doctest.h>

#include "core/formats/torch_file/torch_file_support.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

using Files = std::vector<std::pair<std::string, Bytes>>;

// os.system('id'), as pickle writes it, without the opcode that ends a pickle.
const std::string kCall(
    "\x80\x02"
    "cposix\nsystem\nX\x02\x00\x00\x00id\x85R",
    25);
const std::string kHostile = kCall + ".";

std::string zipped(const std::string& pickle) {
  return make_zip({{"m/data.pkl", pickle}, {"m/version", "3\n"}});
}

const std::string kMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);

// The checkpoint's own file, next to which the others are.
Bytes weights() {
  return to_bytes(state_dict_file(
      pickled_dict({{"w", tensor_call({.count = 2, .sizes = {2}, .strides = {1}, .key = "0"})}}),
      {{"m/data/0", std::string(8, '\1')}}));
}

std::vector<Finding> unsafe_beside(const std::string& name, const std::string& file) {
  auto opened = open_checkpoint(
      memory_directory("ckpt", Files{{"pytorch_model.bin", weights()}, {name, to_bytes(file)}}));
  REQUIRE(opened.has_value());
  auto report = check(**opened, {});
  REQUIRE(report.has_value());
  std::erase_if(report->findings, [](const Finding& f) { return f.rule != "unsafe-pickle"; });
  return report->findings;
}

}  // namespace

TEST_CASE("unsafe pickle: a call in a file next to the weights is an error with file and byte") {
  for (const char* name : {"optimizer.pt", "scheduler.pt", "common.pt", "extra.pkl"}) {
    for (const std::string& file : {kHostile, zipped(kHostile), kMagic + kHostile}) {
      CAPTURE(name);
      auto findings = unsafe_beside(name, file);
      REQUIRE(findings.size() == 1);
      CHECK(findings[0].severity == Severity::kError);
      CHECK(findings[0].subjects == std::vector<std::string>{name});
      CHECK(findings[0].cause.find("call posix.system") != std::string::npos);
    }
  }
}

TEST_CASE("unsafe pickle: what Python runs before the damage of a pickle is reported") {
  CHECK(unsafe_beside("scheduler.pt", kCall).size() == 1);
  CHECK(unsafe_beside("scheduler.pt", kCall + "\xff").size() == 1);
  CHECK(unsafe_beside("scheduler.pt", as_pickle("}") + kHostile).size() == 1);
}

TEST_CASE("unsafe pickle: files next to the weights that only hold data are not reported") {
  const std::string plain = state_dict_file(pickled_dict({{"step", "K\x01"}}));
  CHECK(unsafe_beside("scheduler.pt", plain).empty());
  CHECK(unsafe_beside("notes.bin", "posix\nsystem\n").empty());
  CHECK(unsafe_beside("notes.txt", kHostile).empty());
}

TEST_CASE("unsafe pickle: an error about a pickle that does not open names what it would call") {
  for (const char* name : {"model.pt", "model.pkl", ".metadata", "metadata.pkl"}) {
    for (const std::string& file : {kHostile, zipped(kHostile), kMagic + kHostile}) {
      auto opened = open_checkpoint(memory_directory("ckpt", Files{{name, to_bytes(file)}}));
      if (opened) continue;  // reported by a finding
      CAPTURE(name);
      CAPTURE(opened.error().message);
      CHECK(opened.error().advice.find("call posix.system") != std::string::npos);
    }
  }
}

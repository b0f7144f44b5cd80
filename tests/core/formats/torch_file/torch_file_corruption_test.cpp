// Files of torch.save, bent byte by byte: whatever comes of it is an answer, and no changed value
// passes unnoticed.
#include "core/formats/torch_file/torch_file_support.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

Bytes bytes_of_file(const std::string& name) {
  auto source = open_file(torch_file_path(name), name);
  REQUIRE(source.has_value());
  return *read_bytes(**source, 0, (*source)->size());
}

OpenedCheckpoint open_bytes_as_model(const Bytes& bytes) {
  return open_checkpoint(memory_directory("ckpt", {{"model.pt", bytes}}));
}

bool is_told(const Checkpoint& checkpoint) {
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings) {
    if (finding.severity != Severity::kInfo || finding.rule == "not-looked-at") return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a file of torch.save cut off at any byte is an error with a place") {
  for (const char* name : {"model.pt", "training.pt"}) {
    Bytes whole = bytes_of_file(name);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      auto opened = open_bytes_as_model({whole.begin(), whole.begin() + static_cast<long>(length)});
      REQUIRE_FALSE(opened.has_value());
      CHECK_FALSE(opened.error().message.empty());
      CHECK_FALSE(opened.error().place.file.empty());
    }
  }
}

TEST_CASE("no byte of a file of torch.save can be wrong with other values and no word about it") {
  for (const char* name : {"model.pt", "training.pt"}) {
    Bytes whole = bytes_of_file(name);
    auto untouched = open_bytes_as_model(whole);
    REQUIRE(untouched.has_value());
    CHECK_FALSE(is_told(**untouched));
    auto values = values_by_name(**untouched);
    std::string names = names_of(**untouched);
    std::size_t harmless = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      Bytes bent = whole;
      bent[at] ^= std::byte{0x41};
      auto opened = open_bytes_as_model(bent);
      if (!opened || is_told(**opened)) continue;
      CAPTURE(at);
      CHECK(names_of(**opened) == names);
      CHECK(values_by_name(**opened) == values);
      ++harmless;
    }
    CHECK(harmless < whole.size() * 2 / 3);  // padding, dates, attributes
  }
}

TEST_CASE("bytes of a tensor that is no tensor of the checkpoint are looked at too") {
  // torch takes a tuple for one value, and a conjugate is not read: no tile views either.
  const std::string payload(24, '\7');
  const std::string held = "(" + tensor_call({.key = "1"}) + "K\1t";
  const std::string file = state_dict_file(
      pickled_dict({{"a", tensor_call({})},
                    {"in a tuple", held},
                    {"again", "(" + held + "t"},
                    {"conjugate", tensor_call({.more = flags("conj"), .key = "2"})},
                    {"plain", "K\1"}}),
      {{"m/data/0", std::string(24, '\1')}, {"m/data/1", payload}, {"m/data/2", payload}});
  struct Case {
    std::size_t storage;
    std::vector<std::string> told;
  };
  const Case cases[] = {{0, {}}, {1, {"again", "in a tuple"}}, {2, {"conjugate"}}};
  for (const Case& one : cases) {
    CAPTURE(one.storage);
    std::string bent = file;
    std::size_t first = file.find(payload);
    if (one.storage != 0) bent[one.storage == 1 ? first : file.find(payload, first + 24)] ^= 1;
    auto opened = open_model(bent);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CheckOptions options;
    options.depth = Depth::kData;
    auto report = check(**opened, options);
    REQUIRE(report.has_value());
    std::vector<std::string> told;
    for (const Finding& finding : report->findings) {
      if (finding.severity != Severity::kError) continue;
      CHECK(finding.rule == "bad-record");
      CHECK(finding.cause.find("does not match its checksum") != std::string::npos);
      told = finding.subjects;
    }
    std::sort(told.begin(), told.end());
    CHECK(told == one.told);
  }
}

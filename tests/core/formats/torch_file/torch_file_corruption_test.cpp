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

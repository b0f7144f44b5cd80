// Files of torch.save with changed bytes: they never crash, and no changed value passes unnoticed.
#include "core/base/little_endian.h"
#include "core/formats/torch_file/torch_file_support.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

Bytes bytes_of_file(const std::string& name) {
  return whole_file(torch_file_path(name));
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

TEST_CASE("without checksums no local header moves where a record begins and nothing says so") {
  // torch.serialization.set_crc32_options(False): every CRC is zero, the descriptors stay.
  const Bytes crc_kept = bytes_of_file("model.pt");
  std::string text(reinterpret_cast<const char*>(crc_kept.data()), crc_kept.size());
  std::vector<std::size_t> headers;
  for (std::size_t at = 0; at + 46 <= text.size(); ++at) {
    const std::string mark = text.substr(at, 4);
    if (mark == "PK\3\4") headers.push_back(at);
    if (mark == std::string("PK\7\x08")) text.replace(at + 4, 4, 4, '\0');
    if (mark == "PK\1\2") text.replace(at + 16, 4, 4, '\0');
  }
  REQUIRE(headers.size() > 5);
  auto untouched = open_bytes_as_model(to_bytes(text));
  REQUIRE(untouched.has_value());
  REQUIRE_FALSE(is_told(**untouched));
  const auto values = values_by_name(**untouched);
  std::size_t told = 0, tried = 0;
  for (std::size_t header : headers) {
    const int extra = load_little<std::uint16_t>(to_bytes(text.substr(header + 28, 2)));
    for (int wrong : {0, 1, extra - 8, extra - 4, extra - 1, extra + 1, extra + 4, extra + 8,
                      extra + 16, extra + 24, 2 * extra, extra / 2, 0x7FFF, 0xFFFF}) {
      if (wrong == extra || wrong < 0) continue;
      std::string bent = text;
      bent.replace(header + 28, 2, little(static_cast<std::uint64_t>(wrong), 2));
      CAPTURE(header);
      CAPTURE(wrong);
      auto opened = open_bytes_as_model(to_bytes(bent));
      ++tried;
      if (!opened || is_told(**opened)) {
        ++told;
        continue;
      }
      CHECK(values_by_name(**opened) == values);
    }
  }
  CHECK(told > tried / 2);
}

TEST_CASE("bytes of a tensor that is not a tensor of the checkpoint are read too") {
  // torch takes a tuple for one value, and a conjugate is not read: no tile views either.
  const std::string payload(24, '\7');
  const std::string held = "(" + tensor_call({.key = "1"}) + "K\1t";
  const std::string file = state_dict_file(
      pickled_dict({{"a", tensor_call({})},
                    {"in a tuple", held},
                    {"again", "(" + held + "t"},
                    {"conjugate", tensor_call({.storage_class = "torch\nComplexFloatStorage\n",
                                               .count = 3,
                                               .sizes = {3},
                                               .strides = {1},
                                               .more = flags("conj"),
                                               .key = "2"})},
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

// Sharded and consolidated safetensors with changed bytes: all results except crashes are fine.
#include <doctest/doctest.h>

#include "core/formats/common/safetensors_header.h"
#include "core/formats/open.h"
#include "core/formats/safetensors/assembled.h"
#include "core/make_zip.h"
#include "core/report/text.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

using Files = std::vector<std::pair<std::string, Bytes>>;

std::string file_with(std::string header, std::size_t data) {
  return little(header.size(), 8) + header + std::string(data, '\1');
}

// Two ranks, one of which has a whole tensor next to its shard.
Files sharded() {
  auto shard = [](const std::string& at, const std::string& more, std::size_t bytes) {
    return file_with(R"({"__metadata__":{"DCP_SHARDING_INFO":"{\"w\": {\"saved_offsets\": [)" + at +
                         R"(, 0]}}","format":"pt"},"w":{"dtype":"F32","shape":[2,3],)" +
                         R"("data_offsets":[0,24]})" + more + "}",
                     bytes);
  };
  std::string b = R"(,"b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]})";
  return {{"shard-00001-model-00001-of-00001.safetensors", to_bytes(shard("0", b, 32))},
          {"shard-00002-model-00001-of-00001.safetensors", to_bytes(shard("2", "", 24))}};
}

Files consolidated() {
  return {
      {"model-00001-of-00001.safetensors",
       to_bytes(file_with(R"({"w":{"dtype":"F32","shape":[4,3],"data_offsets":[0,48]}})", 48))},
      {"model.safetensors.index.json", to_bytes(R"({"metadata":{"total_size":48},"weight_map":)"
                                                R"({"w":"model-00001-of-00001.safetensors"}})")}};
}

// Opens, checks at every depth, and writes the first file again. Any answer but a crash is fine.
void must_answer(const Files& files) {
  auto opened = open_checkpoint(memory_directory("ckpt", files));
  if (!opened) {
    CHECK_FALSE(opened.error().message.empty());
    return;
  }
  for (Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
    CheckOptions options;
    options.depth = depth;
    CHECK(check(**opened, options).has_value());
  }
  auto source = memory_source(files[0].first, files[0].second);
  SafetensorsChange change;
  change.written["w"] = {"F32", {1}, 4};
  auto anew = assembled(*source, change);
  if (!anew) return;
  auto header = read_safetensors_header(*memory_source("new", std::move(*anew)));
  REQUIRE(header.has_value());
  CHECK(header->problems.empty());
}

}  // namespace

TEST_CASE("safetensors files cut off at any byte give an answer") {
  for (const Files& whole : {sharded(), consolidated()}) {
    must_answer(whole);
    for (std::size_t f = 0; f < whole.size(); ++f) {
      for (std::size_t length = 0; length < whole[f].second.size(); ++length) {
        Files cut = whole;
        cut[f].second.resize(length);
        must_answer(cut);
      }
    }
  }
}

TEST_CASE("safetensors files with any byte bent give an answer") {
  for (const Files& whole : {sharded(), consolidated()}) {
    for (std::size_t f = 0; f < whole.size(); ++f) {
      for (std::size_t at = 0; at < whole[f].second.size(); ++at) {
        for (char value : {'\0', '\xFF', '9', '-', '"', '{'}) {
          Files bent = whole;
          bent[f].second[at] = static_cast<std::byte>(value);
          must_answer(bent);
        }
      }
    }
  }
}

TEST_CASE("a dtype that nobody knows ends no check, not even of a tensor of nothing") {
  for (const char* shape : {"[0,3]", "[3]", "[]"}) {
    CAPTURE(shape);
    const std::size_t bytes = shape[1] == '0' ? 0 : 12;
    const std::string header = std::string(R"({"w":{"dtype":"f32","shape":)") + shape +
                               R"(,"data_offsets":[0,)" + std::to_string(bytes) + "]}}";
    auto opened = open_checkpoint(
        memory_directory("ckpt", {{"model.safetensors", to_bytes(file_with(header, bytes))}}));
    REQUIRE(opened.has_value());
    CheckOptions options;
    options.depth = Depth::kData;
    auto report = check(**opened, options);
    REQUIRE(report.has_value());
    CHECK(report->verdict == Verdict::kFindings);
  }
}

TEST_CASE("an entry without a dtype and without bytes is told as a name without a tensor") {
  const auto cause_of = [](const std::string& entry) {
    const std::string header =
        R"({"w":{"dtype":"F32","shape":[4,3],"data_offsets":[0,48]},"head":)" + entry + "}";
    auto opened = open_checkpoint(
        memory_directory("ckpt", {{"model.safetensors", to_bytes(file_with(header, 48))}}));
    REQUIRE(opened.has_value());
    auto report = check(**opened, {});
    REQUIRE(report.has_value());
    for (const Finding& finding : report->findings)
      if (finding.severity == Severity::kError) return finding.cause;
    return std::string();
  };
  CHECK(cause_of(R"({"dtype":"","shape":[],"data_offsets":[0,0]})").find("had no tensor for it") !=
        std::string::npos);
  CHECK(cause_of(R"({"dtype":"F9","shape":[],"data_offsets":[0,0]})")
            .find("\"F9\" is not supported") != std::string::npos);
}

TEST_CASE("report: a tensor and its file are counted as such") {
  const std::string header = R"({"w":{"dtype":"F32","shape":[4,3],"data_offsets":[0,48]},)"
                             R"("head":{"dtype":"","shape":[],"data_offsets":[0,0]}})";
  auto opened = open_checkpoint(
      memory_directory("ckpt", {{"model.safetensors", to_bytes(file_with(header, 48))}}));
  REQUIRE(opened.has_value());
  auto report = check(**opened, {});
  REQUIRE(report.has_value());
  CHECK(check_to_text(**opened, *report, {}).find("1 tensor, 1 file") != std::string::npos);
}

TEST_CASE("a dtype of the format that torch has none for is not checked, and is not damage") {
  struct Case {
    const char *dtype, *shape;
    std::size_t bytes;
    Verdict verdict;
  };
  for (const Case& c :
       {Case{"F6_E2M3", "[4,8]", 24, Verdict::kUndecided},
        Case{"F6_E3M2", "[4]", 3, Verdict::kUndecided}, Case{"F4", "[4,3]", 6, Verdict::kUndecided},
        Case{"F4", "[3,3]", 5, Verdict::kFindings},
        Case{"F6_E2M3", "[4,8]", 32, Verdict::kFindings}}) {
    CAPTURE(c.dtype);
    CAPTURE(c.shape);
    const std::string end = std::to_string(c.bytes);
    const std::string header = std::string(R"({"w":{"dtype":")") + c.dtype + R"(","shape":)" +
                               c.shape + R"(,"data_offsets":[0,)" + end + "]}}";
    auto opened = open_checkpoint(
        memory_directory("ckpt", {{"model.safetensors", to_bytes(file_with(header, c.bytes))}}));
    REQUIRE(opened.has_value());
    CheckOptions options;
    options.depth = Depth::kData;
    auto report = check(**opened, options);
    REQUIRE(report.has_value());
    CHECK(report->verdict == c.verdict);
    CHECK(report->findings.front().cause.find(c.dtype) != std::string::npos);
  }
}

TEST_CASE("a shard that is left behind is named by the numbers of the others") {
  Files files = sharded();
  files.push_back({"shard-00004-model-00001-of-00001.safetensors", files[1].second});
  auto opened = open_checkpoint(memory_directory("ckpt", files));
  REQUIRE(opened.has_value());
  CheckOptions options;
  auto report = check(**opened, options);
  REQUIRE(report.has_value());
  std::vector<std::string> missing;
  for (const Finding& finding : report->findings) {
    if (finding.rule != "rank-hole") continue;
    // No file of that rank is left.
    CHECK(finding.severity == Severity::kWarning);
    missing = finding.subjects;
  }
  CHECK(missing == std::vector<std::string>{"shard-00003-model-00001-of-00001.safetensors"});
}

TEST_CASE(
    "rank-hole: a part of the model without any file is a warning, a pattern of replicas is not") {
  auto severity = [](const std::vector<std::string>& names) -> std::optional<Severity> {
    Files files;
    for (const std::string& name : names)
      files.push_back({"shard-" + name + ".safetensors", sharded()[files.empty() ? 0 : 1].second});
    auto opened = open_checkpoint(memory_directory("ckpt", files));
    REQUIRE(opened.has_value());
    auto report = check(**opened, CheckOptions{});
    REQUIRE(report.has_value());
    for (const Finding& finding : report->findings)
      if (finding.rule == "rank-hole") return finding.severity;
    return std::nullopt;
  };
  CHECK(severity({"00001-model-00001-of-00002", "00002-model-00001-of-00002"}) ==
        Severity::kWarning);
  CHECK(severity({"00001-model-00002-of-00003", "00002-model-00003-of-00003"}) ==
        Severity::kWarning);
  CHECK(severity({"00001-model-00001-of-00001", "00003-model-00001-of-00001"}) == Severity::kInfo);
  CHECK(severity({"00001-model-00001-of-00001", "00002-model-00001-of-00001"}) == std::nullopt);
}

TEST_CASE("a zero byte does not end a header or an index") {
  using namespace std::string_literals;
  const std::string entry = R"({"w":{"dtype":"F32","shape":[4,3],"data_offsets":[0,48]}})";
  for (const std::string& behind : {" \0"s, "\0 {"s}) {
    auto header = read_safetensors_header(
        *memory_source("model.safetensors", to_bytes(file_with(entry + behind, 48))));
    REQUIRE_FALSE(header.has_value());
    CHECK(header.error().kind == ErrorKind::kDamaged);
    CHECK(header.error().place.offset == 8 + entry.size() + behind.find('\0'));

    Files files = consolidated();
    std::string index(reinterpret_cast<const char*>(files[1].second.data()),
                      files[1].second.size());
    files[1].second = to_bytes(index + behind);
    auto opened = open_checkpoint(memory_directory("ckpt", files));
    REQUIRE(opened.has_value());
    REQUIRE_FALSE((*opened)->opening_findings().empty());
    CHECK((*opened)->opening_findings()[0].rule == "bad-record");
  }
}

TEST_CASE("a shape whose extents cannot be multiplied is damage, also where one of them is 0") {
  auto problems_of = [](const std::string& shape) {
    const std::string header =
        R"({"w":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,0]}})";
    auto read = read_safetensors_header(*memory_source("m", to_bytes(file_with(header, 0))));
    REQUIRE(read.has_value());
    return read->problems.size();
  };
  // Readers multiply from front to back, so nothing grows after a 0.
  CHECK(problems_of("[1099511627776,1099511627776,0]") == 1);
  CHECK(problems_of("[0,1099511627776,1099511627776]") == 0);
  CHECK(problems_of("[4294967296,4294967295,0]") == 0);
}

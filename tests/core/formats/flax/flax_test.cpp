// Trees that flax 0.12 wrote (tests/data/flax), intact and with wrong bytes.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/read_all.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kFlaxData = std::string(SHW_TEST_DATA) + "/flax/";

Bytes flax_bytes() {
  auto source = open_file(kFlaxData + "flax_model.msgpack", "flax_model.msgpack");
  REQUIRE(source.has_value());
  return *read_bytes(**source, 0, (*source)->size());
}

OpenedCheckpoint open_flax_bytes(const std::string& name, Bytes bytes) {
  return open_checkpoint(memory_directory("memory", {{name, std::move(bytes)}}));
}

Bytes of_text(std::string_view text) {
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("flax: arrays read as flax saved them, in chunks or not") {
  auto truth = read_truth(kFlaxData + "truth.safetensors");
  REQUIRE(truth.has_value());
  auto opened = open_checkpoint(kFlaxData + "flax_model.msgpack");
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->tensor_count() == truth->size());
  CHECK((*opened)->objects().size() == 4);
  check_elements(**opened, *truth);
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(**opened, options);
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings) {
    CAPTURE(finding.cause);
    CHECK(finding.severity == Severity::kInfo);
  }
}

TEST_CASE("flax: the newest of steps without an ending is opened") {
  auto opened = open_checkpoint(
      memory_directory("run", {{"checkpoint_20", flax_bytes()}, {"checkpoint_100", flax_bytes()}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  REQUIRE((*opened)->opening_findings().size() == 1);
  CHECK((*opened)->opening_findings()[0].subjects == std::vector<std::string>{"checkpoint_20"});
  // A file of that name with other contents is not opened as flax.
  CHECK_FALSE(open_flax_bytes("checkpoint_3", of_text("some words, no tree")).has_value());
}

TEST_CASE("flax: a part that is missing and an index of another save are reported") {
  const auto errors_of = [](std::vector<std::pair<std::string, Bytes>> files) {
    auto opened = open_checkpoint(memory_directory("memory", std::move(files)));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    auto report = check(**opened, {});
    REQUIRE(report.has_value());
    std::string said;
    for (const Finding& finding : report->findings) {
      if (finding.severity == Severity::kError) said += finding.rule + " " + finding.cause + "\n";
    }
    return said;
  };
  const std::string first = "flax_model-00001-of-00002.msgpack";
  const std::string second = "flax_model-00002-of-00002.msgpack";
  CHECK(errors_of({{first, flax_bytes()}}).find(second) != std::string::npos);
  const auto index = [&](const std::string& name) {
    return of_text(R"({"metadata":{},"weight_map":{")" + name + R"(":"m.msgpack"}})");
  };
  auto opened = open_flax_bytes("m.msgpack", flax_bytes());
  REQUIRE(opened.has_value());
  std::string known((*opened)->fqn(TensorId{0}));
  std::ranges::replace(known, '.', '/');
  const char* kIndex = "flax_model.msgpack.index.json";
  CHECK(errors_of({{"m.msgpack", flax_bytes()}, {kIndex, index(known)}}).empty());
  CHECK(errors_of({{"m.msgpack", flax_bytes()}, {kIndex, index("model/other")}})
            .find("model.other") != std::string::npos);
}

TEST_CASE("flax: trees that were made up are refused") {
  const char* wrong[] = {
      "\x81",  // a pair should follow
      "\xdf\xff\xff\xff\xff\xa1"
      "a",  // four billion pairs
      "\x81\xa1"
      "a\xc9\xff\xff\xff\xff\x01",  // an array of 4 GB
      "\x81\xa1"
      "a\xc1",  // a byte that msgpack does not use
      "\x81\xa1"
      "a\xc0 more",    // bytes after the tree
      "\x92\x01\x02",  // no map
      "\x81\xa1"
      "a\xc7\x03\x01\x92\x90\xa0",  // an array of two parts
  };
  for (const char* bytes : wrong)
    CHECK_FALSE(open_flax_bytes("m.msgpack", of_text(bytes)).has_value());
  // Lists within lists.
  std::string deep =
      "\x81\xa1"
      "a";
  for (int i = 0; i < 1000; ++i) deep += "\x91";
  CHECK_FALSE(open_flax_bytes("m.msgpack", of_text(deep + "\xc0")).has_value());
}

TEST_CASE("flax: an array whose bytes are not those of its shape is reported") {
  Bytes bytes = flax_bytes();
  // The shape [7] of the bias, before its dtype.
  const Bytes shape =
      of_text(std::string_view("\x93\x91\x07\xa7"
                               "float32",
                               11));
  auto at = std::search(bytes.begin(), bytes.end(), shape.begin(), shape.end());
  REQUIRE(at != bytes.end());
  at[2] = std::byte{9};
  auto opened = open_flax_bytes("m.msgpack", bytes);
  REQUIRE(opened.has_value());
  const auto& findings = (*opened)->opening_findings();
  CHECK(std::any_of(findings.begin(), findings.end(),
                    [](const Finding& one) { return one.severity == Severity::kError; }));
}

TEST_CASE("flax: every byte wrong and every length of a file are answered") {
  const Bytes all = flax_bytes();
  for (std::size_t at = 0; at < all.size(); ++at) {
    for (unsigned bits : {0x81U, 0x10U}) {
      Bytes bent = all;
      bent[at] ^= static_cast<std::byte>(bits);
      check_is_answered(open_flax_bytes("m.msgpack", std::move(bent)));
    }
    check_is_answered(open_flax_bytes(
        "m.msgpack", Bytes(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(at))));
  }
}

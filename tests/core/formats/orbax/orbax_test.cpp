// Checkpoints that Orbax 0.12.8 wrote in its four forms (tests/data/orbax, copied from the public
// fixtures) and databases of tensorstore 0.1.86, intact and with wrong bytes.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "core/data_findings.h"
#include "core/fixtures.h"
#include "core/formats/common/crc32c.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/orbax/ocdbt.h"
#include "core/make_zip.h"
#include "core/read_all.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kOrbaxData = std::string(SHW_TEST_DATA) + "/orbax/";
using OrbaxFiles = std::vector<std::pair<std::string, Bytes>>;

OrbaxFiles files_of(const std::string& folder) {
  auto directory = open_directory(kOrbaxData + folder);
  REQUIRE(directory.has_value());
  auto entries = (*directory)->list();
  REQUIRE(entries.has_value());
  OrbaxFiles files;
  for (const Entry& entry : *entries) {
    auto source = (*directory)->open(entry.path);
    REQUIRE(source.has_value());
    files.emplace_back(entry.path, *read_bytes(**source, 0, (*source)->size()));
  }
  return files;
}

void check_orbax_truth(const std::string& name) {
  CAPTURE(name);
  auto opened = open_checkpoint(kOrbaxData + name + "/ckpt");
  INFO((opened ? std::string() : opened.error().message));
  REQUIRE(opened.has_value());
  auto truth = read_truth(kOrbaxData + name + "/truth.safetensors");
  REQUIRE(truth.has_value());
  check_elements(**opened, *truth);
  for (const Finding& finding : findings_above_info(**opened)) {
    CAPTURE(finding.cause);
    CHECK(finding.rule == "none of these");
  }
}

// True if there is an answer of any kind: an error, findings, or values.
bool says_what_is_wrong(const OrbaxFiles& files) {
  auto opened = open_checkpoint(memory_directory("ckpt", files));
  if (!opened) return !opened.error().message.empty();
  bool has_error = !(*opened)->opening_findings().empty();
  for (std::uint32_t t = 0; t < (*opened)->tensor_count(); ++t) {
    auto values = read_tensor(**opened, TensorId{t}, 1 << 20);
    has_error = has_error || !values || values->uncovered != 0;
  }
  return has_error;
}

}  // namespace

TEST_CASE("orbax: every form reads as it was saved") {
  check_orbax_truth("zarr");
  check_orbax_truth("ocdbt");
  check_orbax_truth("ocdbt_zarr3");
  check_orbax_truth("manager");
}

TEST_CASE("orbax: arrays of zarr-python read with its compressors, byte orders and orders") {
  check_orbax_truth("zarr_python");
}

TEST_CASE("orbax: a tree of many nodes keeps its values in files of their own") {
  auto directory = open_directory(kOrbaxData + "tree");
  REQUIRE(directory.has_value());
  auto database = read_ocdbt(**directory, nullptr);
  INFO((database ? std::string() : database.error().message));
  REQUIRE(database.has_value());
  REQUIRE(database->values.size() == 60);
  CHECK(database->values[7].key == "params.layer_07/x7");
  CHECK(database->values[7].length == 27);
  const OcdbtValue& apart = database->values[59];
  auto source = (*directory)->open(apart.file);
  REQUIRE(source.has_value());
  auto bytes = read_bytes(**source, apart.offset, apart.length);
  REQUIRE(bytes.has_value());
  CHECK(*bytes == Bytes(79, std::byte{59}));
}

TEST_CASE("orbax: a chunk that is missing is a gap") {
  OrbaxFiles files = files_of("zarr/ckpt");
  std::erase_if(files,
                [](const auto& file) { return file.first == "params.layers_0.mlp.kernel/1.1"; });
  auto opened = open_checkpoint(memory_directory("ckpt", files));
  REQUIRE(opened.has_value());
  auto found = findings_above_info(**opened);
  REQUIRE(found.size() == 1);
  CHECK(found[0].rule == "coverage-gap");
}

TEST_CASE("orbax: an array that the tree names and nobody stored is reported") {
  OrbaxFiles files = files_of("zarr/ckpt");
  std::erase_if(files, [](const auto& file) { return file.first.starts_with("params.int/"); });
  auto opened = open_checkpoint(memory_directory("ckpt", files));
  REQUIRE(opened.has_value());
  auto found = findings_above_info(**opened);
  REQUIRE_FALSE(found.empty());
  CHECK(found[0].subjects.front() == "params.int");
}

TEST_CASE("orbax: a save that was not committed or not joined is reported") {
  OrbaxFiles files = files_of("ocdbt/ckpt");
  OrbaxFiles parts = files;
  std::erase_if(parts, [](const auto& file) { return file.first == "manifest.ocdbt"; });
  std::erase_if(parts, [](const auto& file) { return file.first.front() == '_'; });
  auto unjoined = open_checkpoint(memory_directory("ckpt", parts));
  REQUIRE_FALSE(unjoined);
  CHECK(unjoined.error().message.find("did not finish") != std::string::npos);
  for (auto& [path, bytes] : files) {
    if (path == "_CHECKPOINT_METADATA")
      bytes = to_bytes(R"({"init_timestamp_nsecs": 1, "commit_timestamp_nsecs": null})");
  }
  auto opened = open_checkpoint(memory_directory("ckpt", files));
  REQUIRE(opened.has_value());
  auto found = findings_above_info(**opened);
  REQUIRE(found.size() == 1);
  CHECK(found[0].cause.find("did not finish") != std::string::npos);
}

TEST_CASE("orbax: every byte of a database that is wrong is found by its checksum") {
  const OrbaxFiles files = files_of("manager/ckpt/7/state");
  for (std::size_t f = 0; f < files.size(); ++f) {
    const std::string& path = files[f].first;
    if (!path.starts_with("d/") && path != "manifest.ocdbt") continue;
    CAPTURE(path);
    for (std::size_t at = 0; at < files[f].second.size(); at += path == "manifest.ocdbt" ? 1 : 29) {
      OrbaxFiles bent = files;
      bent[f].second[at] ^= std::byte{0x10};
      CHECK(says_what_is_wrong(bent));
    }
    for (std::size_t length = 0; length < files[f].second.size(); length += 311) {
      OrbaxFiles bent = files;
      bent[f].second.resize(length);
      CHECK(says_what_is_wrong(bent));
    }
  }
}

TEST_CASE("orbax: a body of a node that was made up is refused and not followed") {
  const Bytes whole = [] {
    for (const auto& [path, bytes] : files_of("tree"))
      if (path == "manifest.ocdbt") return bytes;
    return Bytes();
  }();
  REQUIRE_FALSE(whole.empty());
  // Not compressed, with random bytes and a right checksum.
  std::uint32_t state = 1;
  for (int round = 0; round < 300; ++round) {
    std::string body;
    for (int i = 0; i < 60; ++i) {
      state = state * 1664525 + 1013904223;
      body += static_cast<char>(round % 3 == 0 ? state >> 24 : (state >> 24) % 4);
    }
    std::string node =
        std::string("\x0c\xdb\x3a\x2a", 4) + little(14 + body.size() + 4, 8) + little(0, 2) + body;
    node += little(crc32c_of(to_bytes(node)), 4);
    (void)read_ocdbt(*memory_directory("db", {{"manifest.ocdbt", to_bytes(node)}}), nullptr);
  }
}

TEST_CASE("orbax: what zarr says of an array is checked before it is used") {
  const char* arrays[] = {
      R"({"zarr_format":2,"shape":[9223372036854775807,2],"chunks":[1,1],"dtype":"<f4"})",
      R"({"zarr_format":2,"shape":[4],"chunks":[0],"dtype":"<f4","compressor":null})",
      R"({"zarr_format":2,"shape":[4],"chunks":[-1],"dtype":"<f4","compressor":null})",
      R"({"zarr_format":2,"shape":[4],"chunks":[2,2],"dtype":"<f4","compressor":null})",
      R"({"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<M8[s]","compressor":null})",
      R"({"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<f4","compressor":{"id":"blosc"}})",
      R"({"zarr_format":2,"shape":[1000000000000],"chunks":[1],"dtype":"<f4","compressor":null})",
      R"({"zarr_format":3})",
      "[]",
      "",
      "{"};
  for (const char* array : arrays) {
    CAPTURE(array);
    (void)says_what_is_wrong({{"a/.zarray", to_bytes(array)}, {"a/0", Bytes(8)}});
  }
  // A chunk that was not written reads as zeros, which is reported.
  auto opened = open_checkpoint(memory_directory(
      "ckpt",
      {{"a/.zarray",
        to_bytes(R"({"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<f4","compressor":null,)"
                 R"("fill_value":0})")},
       {"a/1", Bytes(8, std::byte{1})}}));
  REQUIRE(opened.has_value());
  auto values = read_tensor(**opened, TensorId{0});
  REQUIRE(values.has_value());
  CHECK(values->uncovered == 0);
  CHECK(values->bytes[0] == std::byte{0});
  CHECK(values->bytes[8] == std::byte{1});
  CHECK(findings_above_info(**opened).empty());
  CHECK((*opened)->opening_findings().size() == 1);
}

TEST_CASE("orbax: shardings that are cut off are reported") {
  OrbaxFiles files = files_of("zarr/ckpt");
  const auto shardings = std::find_if(files.begin(), files.end(),
                                      [](const auto& file) { return file.first == "_sharding"; });
  REQUIRE(shardings != files.end());
  shardings->second.resize(shardings->second.size() / 2);
  auto opened = open_checkpoint(memory_directory("ckpt", files));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  const std::vector<Finding> findings = findings_above_info(**opened);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule == "unreadable-json");
  CHECK(findings[0].severity == Severity::kWarning);
  CHECK(findings[0].subjects == std::vector<std::string>{"_sharding"});
}

TEST_CASE("orbax: CRC-32C is that of RFC 3720") {
  CHECK(crc32c_of(to_bytes("123456789")) == 0xE3069283u);
  CHECK(crc32c_of(Bytes(32)) == 0x8A9136AAu);
}

TEST_CASE("orbax: an item that was saved and is not there is an error") {
  auto causes_of = [](OrbaxFiles files) {
    auto opened = open_checkpoint(memory_directory("memory", std::move(files)));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    std::string said;
    for (const Finding& finding : (*opened)->opening_findings()) {
      if (finding.severity != Severity::kInfo) said += finding.cause + "\n";
    }
    return said;
  };
  const auto says = [](const std::string& said, std::string_view part) {
    return said.find(part) != std::string::npos;
  };
  OrbaxFiles step;
  for (auto& [path, bytes] : files_of("ocdbt/ckpt")) {
    if (path != "_CHECKPOINT_METADATA") step.emplace_back("state/" + path, std::move(bytes));
  }
  const auto handlers = [](const std::string& items) {
    return to_bytes(R"({"item_handlers":{)" + items +
                    R"(},"init_timestamp_nsecs":1,"commit_timestamp_nsecs":2})");
  };
  step.emplace_back("_CHECKPOINT_METADATA", handlers(R"("state":"S")"));
  CHECK(causes_of(step).empty());
  step.back().second = handlers(R"("state":"S","data":"D","../x":"E")");
  CHECK(says(causes_of(step), "says that data was saved"));
  CHECK_FALSE(says(causes_of(step), "../x"));
  step.back().second = handlers(R"("state":"S")");
  std::erase_if(step, [](const auto& file) { return file.first == "state/_METADATA"; });
  CHECK(says(causes_of(step), "state/_METADATA is missing"));
}

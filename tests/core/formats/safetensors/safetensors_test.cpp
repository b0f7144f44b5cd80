#include "core/formats/safetensors/safetensors.h"

#include <doctest/doctest.h>
#include <algorithm>

#include <cstring>

#include "core/fixtures.h"
#include "core/formats/common/safetensors_header.h"
#include "core/formats/items/items.h"
#include "core/formats/safetensors/assembled.h"
#include "core/formats/safetensors/safetensors_new.h"
#include "core/formats/safetensors_outputs.h"
#include "core/make_zip.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

using Files = std::vector<std::pair<std::string, Bytes>>;

Bytes file_of(const std::string& header, std::size_t data) {
  return to_bytes(little(header.size(), 8) + header + std::string(data, '\1'));
}

const std::string kTwo = R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                         R"("b":{"dtype":"BF16","shape":[],"data_offsets":[24,26]}})";

Result<SafetensorsHeader> header_of(const Bytes& bytes) {
  return read_safetensors_header(*memory_source("m.safetensors", bytes));
}

Result<std::shared_ptr<const Checkpoint>> open(const Files& files) {
  return open_safetensors(memory_directory("memory", files), nullptr);
}

std::string sharded(const std::string& offsets, const std::string& shape, std::size_t bytes) {
  return R"({"__metadata__":{"DCP_SHARDING_INFO":"{\"w\": {\"saved_offsets\": )" + offsets +
         R"(}}","format":"pt"},"w":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,)" +
         std::to_string(bytes) + "]}}";
}

}  // namespace

TEST_CASE("a header gives tensors with absolute places") {
  auto header = header_of(file_of(kTwo + "   ", 26));
  REQUIRE(header.has_value());
  CHECK(header->problems.empty());
  REQUIRE(header->entries.size() == 2);
  CHECK(header->entries[0].begin == 8 + kTwo.size() + 3);
  CHECK(header->entries[1].dtype == Dtype::kBfloat16);
  CHECK(header->entries[1].shape.empty());
  CHECK(header_of(file_of("{}", 0)).has_value());
  CHECK(header_of(file_of(R"({"__metadata__":null})", 0)).has_value());
}

TEST_CASE("headers that no reader takes are errors") {
  const char* bad[] = {
      "",
      "[]",
      "7",
      "{",
      R"({"a":7})",
      R"({"a":{}})",
      R"({"__metadata__":{"x":"1"},"__metadata__":{"y":"2"}})",
      R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-0,4]}})",
      R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,99999999999999999999]}})",
      R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      R"({"__metadata__":{"x":7}})",
      "\xEF\xBB\xBF{}",
      "{\"\xFF\":1}"};
  for (const char* text : bad) {
    CAPTURE(text);
    auto header = header_of(file_of(text, 4));
    REQUIRE_FALSE(header.has_value());
    CHECK(header.error().kind == ErrorKind::kDamaged);
    CHECK(header.error().place.file == "m.safetensors");
    CHECK(header.error().place.offset.has_value());
  }
  CHECK_FALSE(header_of(Bytes(7)).has_value());
  CHECK_FALSE(header_of(to_bytes(little(100'000'001, 8) + "{}")).has_value());
  CHECK_FALSE(header_of(to_bytes(little(3, 8) + "{}")).has_value());
  CHECK_FALSE(header_of(to_bytes("PK\3\4....{}")).has_value());
  std::string deep = R"({"a":{"x":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}}";
  CHECK_FALSE(header_of(file_of(deep, 0)).has_value());
}

// As in the reference reader (safetensors 0.8), earlier entries of a name are ignored, also for the
// check that every byte belongs to a tensor.
TEST_CASE("of names that are there twice the last one counts and it is reported") {
  auto entry = [](const std::string& name, int begin, int end) {
    return "\"" + name + R"(":{"dtype":"F32","shape":[)" + std::to_string((end - begin) / 4) +
           R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  auto opened = [](const std::string& header) {
    auto checkpoint = open({{"model.safetensors", file_of("{" + header + "}", 16)}});
    REQUIRE(checkpoint.has_value());
    return *checkpoint;
  };
  auto checkpoint = opened(entry("w", 0, 16) + "," + entry("x", 0, 8) + "," + entry("w", 8, 16));
  REQUIRE(checkpoint->tensor_count() == 2);
  CHECK(to_text(checkpoint->shape(*checkpoint->find("w"))) == "[2]");
  REQUIRE(checkpoint->opening_findings().size() == 1);
  CHECK(checkpoint->opening_findings()[0].severity == Severity::kWarning);
  CHECK(checkpoint->opening_findings()[0].cause.find("says w more than once") != std::string::npos);
  // The last entry leaves bytes without a tensor: the reference reader refuses the file.
  auto uncovered = opened(entry("w", 0, 16) + "," + entry("w", 0, 4));
  CHECK(uncovered->tensor_count() == 1);
  CHECK(std::any_of(uncovered->opening_findings().begin(), uncovered->opening_findings().end(),
                    [](const Finding& one) { return one.severity == Severity::kError; }));
  auto said = opened(R"("__metadata__":{"x":"1","x":"2"},)" + entry("w", 0, 16));
  CHECK(said->opening_findings().size() == 1);
  auto header = header_of(file_of(R"({"__metadata__":{"x":"1","x":"2"}})", 0));
  REQUIRE(header.has_value());
  CHECK(*header->find_metadata("x") == "2");
}

TEST_CASE(
    "overlaps, gaps, wrong lengths and bytes too many are problems next to readable tensors") {
  auto problems = [](const std::string& offsets, std::size_t data) {
    std::string text = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("b":{"dtype":"F32","shape":[2],"data_offsets":)" +
                       offsets + "}}";
    auto header = header_of(file_of(text, data));
    REQUIRE(header.has_value());
    return header->problems.size();
  };
  CHECK(problems("[8,16]", 16) == 0);
  CHECK(problems("[4,12]", 12) == 1);
  CHECK(problems("[12,20]", 20) == 1);
  CHECK(problems("[8,12]", 12) == 1);
  CHECK(problems("[8,16]", 15) == 1);
  CHECK(problems("[8,16]", 17) == 1);
  CHECK(problems("[8,9223372036854775807]", 16) == 2);
}

TEST_CASE("shards say where they begin, and the shape is inferred") {
  auto checkpoint = open({{"shard-00001-model-00001-of-00001.safetensors",
                           file_of(sharded("[0, 0]", "[2,3]", 24), 24)},
                          {"shard-00003-model-00001-of-00001.safetensors",
                           file_of(sharded("[2, 0]", "[1,3]", 12), 12)}});
  REQUIRE(checkpoint.has_value());
  CHECK((*checkpoint)->format().name == "hf-sharded");
  REQUIRE((*checkpoint)->tensor_count() == 1);
  CHECK(same((*checkpoint)->shape(TensorId{0}), Extents{3, 3}));
  CHECK((*checkpoint)->writer(ChunkId{1}) == 2u);
  CHECK(read_tensor(**checkpoint, TensorId{0})->uncovered == 0);
  CHECK((*checkpoint)->opening_findings().empty());
}

TEST_CASE("a tensor that the sharding info of its file leaves out is reported: torch stops at it") {
  auto found = [](const std::string& names) {
    auto checkpoint =
        open({{"shard-00001-model-00001-of-00001.safetensors",
               file_of(R"({"__metadata__":{"DCP_SHARDING_INFO":"{)" + names +
                           R"(}"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                           R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                       8)}});
    REQUIRE(checkpoint.has_value());
    auto findings = (*checkpoint)->opening_findings();
    return findings.empty() ? std::vector<std::string>() : findings[0].subjects;
  };
  const std::string a = R"(\"a\":{\"saved_offsets\":[0]})", b = R"(\"b\":{\"saved_offsets\":[0]})";
  const std::string file = "shard-00001-model-00001-of-00001.safetensors";
  CHECK(found(a + "," + b).empty());
  CHECK(found(a) == std::vector<std::string>{"b", file});
  CHECK(found("") == std::vector<std::string>{"a", "b", file});
}

TEST_CASE("one file that cannot be read is a finding, and all of them are an error") {
  auto some = open({{"a.safetensors", file_of(kTwo, 26)}, {"b.safetensors", Bytes(3)}});
  REQUIRE(some.has_value());
  CHECK((*some)->tensor_count() == 2);
  REQUIRE((*some)->opening_findings().size() == 1);
  CHECK((*some)->opening_findings()[0].rule == "bad-record");
  CHECK((*some)->opening_findings()[0].subjects == std::vector<std::string>{"b.safetensors"});
  CHECK_FALSE(open({{"a.safetensors", Bytes(3)}, {"b.safetensors", Bytes(3)}}).has_value());
  for (const char* offsets : {"7", "[[0]]", "{}", "[\\\"x\\\"]"}) {
    CAPTURE(offsets);
    CHECK_FALSE(open({{"a.safetensors", file_of(sharded(offsets, "[2,3]", 24), 24)}}).has_value());
  }
}

TEST_CASE("an index names the files that count, and what they lack is found") {
  auto checkpoint = open({{"a.safetensors", file_of(kTwo, 26)},
                          {"other.safetensors", file_of(kTwo, 26)},
                          {"model.safetensors.index.json",
                           to_bytes(R"({"metadata":{},)"
                                    R"("weight_map":{"a":"a.safetensors","b":"a.safetensors",)"
                                    R"("c":"a.safetensors",)"
                                    R"("d":"lost.safetensors"}})")}});
  REQUIRE(checkpoint.has_value());
  CHECK((*checkpoint)->format().name == "safetensors");
  CHECK((*checkpoint)->chunk_count() == 2);
  REQUIRE((*checkpoint)->opening_findings().size() == 1);
  CHECK((*checkpoint)->opening_findings()[0].subjects == std::vector<std::string>{"c"});
  bool lost = false;
  for (const FileRow& file : (*checkpoint)->files())
    lost = lost ||
           (file.path == "lost.safetensors" && file.referenced && file.kind == EntryKind::kMissing);
  CHECK(lost);
}

TEST_CASE("an index without metadata, at which transformers stops, is reported") {
  auto findings_of = [](const std::string& begin) {
    auto checkpoint = open(
        {{"a.safetensors", file_of(kTwo, 26)},
         {"model.safetensors.index.json", to_bytes(begin + R"("weight_map":{"a":"a.safetensors",)"
                                                           R"("b":"a.safetensors"}})")}});
    REQUIRE(checkpoint.has_value());
    CHECK((*checkpoint)->chunk_count() == 2);
    auto found = (*checkpoint)->opening_findings();
    return std::vector<Finding>(found.begin(), found.end());
  };
  CHECK(findings_of(R"({"metadata":{},)").empty());
  CHECK(findings_of(R"({"metadata":{"total_size":26},)").empty());
  for (const char* begin : {"{", R"({"other":{"metadata":{}},)", R"({"metadata":null,)",
                            R"({"metadata":{},"metadata":[{}],)"}) {
    CAPTURE(begin);
    auto found = findings_of(begin);
    REQUIRE(found.size() == 1);
    CHECK(found[0].rule == "bad-record");
    CHECK(found[0].severity == Severity::kWarning);
    CHECK(found[0].subjects == std::vector<std::string>{"model.safetensors.index.json"});
  }
}

TEST_CASE("a shard is copied with other offsets, its data in place where the header still fits") {
  auto cases = fixture_cases("s1_automodel_hf_sharded");
  REQUIRE_FALSE(cases.empty());
  std::string name = "shard-00001-model-00001-of-00001.safetensors";
  auto source = open_file(cases.front() + "/ckpt/" + name, name);
  REQUIRE(source.has_value());
  auto before = read_safetensors_header(**source);
  REQUIRE(before.has_value());
  auto info = parse_sharding_info(*before->find_metadata(kShardingInfoKey), name);
  REQUIRE(info.has_value());
  REQUIRE_FALSE(info->offsets.empty());
  std::string fqn = info->offsets.back().first;
  for (std::int64_t offset : {std::int64_t{3}, std::int64_t{1} << 62}) {
    Extents moved(info->offsets.back().second.size(), offset);
    // A long number makes the header longer than it was; the data then moves.
    SafetensorsChange change;
    for (const auto& [other, old] : info->offsets)
      change.saved_offsets[other] = Extents(old.size(), offset);
    auto anew = assembled(**source, change);
    REQUIRE(anew.has_value());
    auto after = header_of(*anew);
    REQUIRE(after.has_value());
    CHECK(after->problems.empty());
    if (offset == 3) CHECK(after->data_begin == before->data_begin);
    CHECK(*parse_sharding_info(*after->find_metadata(kShardingInfoKey), name)->find(fqn) == moved);
    REQUIRE(after->entries.size() == before->entries.size());
    for (std::size_t i = 0; i < after->entries.size(); ++i) {
      const auto& a = after->entries[i];
      const auto& b = before->entries[i];
      CHECK(a.name == b.name);
      auto old = read_bytes(**source, b.begin, b.end - b.begin);
      REQUIRE(old.has_value());
      CHECK(std::memcmp(anew->data() + a.begin, old->data(), old->size()) == 0);
    }
  }
  SafetensorsChange unknown;
  unknown.saved_offsets["no such tensor"] = {0};
  CHECK_FALSE(assembled(**source, unknown).has_value());
}

TEST_CASE("no change of a byte in a sharded file crashes the reader") {
  Bytes file = file_of(sharded("[0, 0]", "[2,3]", 24), 24);
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (unsigned value : {0x00u, 0x22u, 0x30u, 0x5Bu, 0x7Bu, 0xFFu}) {
      Bytes damaged = file;
      damaged[at] = static_cast<std::byte>(value);
      auto checkpoint = open({{"a.safetensors", damaged}});
      if (!checkpoint) {
        CHECK(checkpoint.error().place.file == "a.safetensors");
        continue;
      }
      for (std::uint32_t t = 0; t < (*checkpoint)->tensor_count(); ++t)
        (void)read_tensor(**checkpoint, TensorId{t});
    }
    Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(at));
    auto checkpoint = open({{"a.safetensors", cut}});
    if (!checkpoint) continue;
    auto report = check(**checkpoint, {});
    REQUIRE(report.has_value());
    CHECK(std::any_of(report->findings.begin(), report->findings.end(), [](const Finding& one) {
      return one.rule == "short-file" && one.severity == Severity::kError;
    }));
  }
}

// Python pickles a lone surrogate, and convert ended the program at it.
TEST_CASE("a name that is not UTF-8 is reported before a header is made of it") {
  Outputs outputs;
  outputs.tensors.push_back({.fqn = "w", .dtype = Dtype::kFloat32, .shape = {2}, .tiles = {}});
  CHECK(check_safetensors_can_store(outputs, true, "safetensors").has_value());
  outputs.tensors[0].fqn = "w\xED\xA0\x80";
  auto said = check_safetensors_can_store(outputs, true, "safetensors");
  REQUIRE_FALSE(said.has_value());
  CHECK(said.error().kind == ErrorKind::kUnsupported);
  CHECK(said.error().message.find("UTF-8") != std::string::npos);
}

TEST_CASE(
    "a checkpoint without a tensor is reported before a folder without a file is made of it") {
  auto said = check_safetensors_can_store({}, false, "safetensors");
  REQUIRE_FALSE(said.has_value());
  CHECK(said.error().message.find("there is no tensor") != std::string::npos);
}

// This mistake was noticed only after writing, as a checkpoint with another number of tensors.
TEST_CASE("a tensor that is named as a header names its metadata is reported before one is made") {
  Outputs outputs;
  outputs.tensors.push_back({.fqn = "w", .dtype = Dtype::kFloat32, .shape = {2}, .tiles = {}});
  outputs.tensors.push_back(
      {.fqn = "__metadata__", .dtype = Dtype::kFloat32, .shape = {2}, .tiles = {}});
  auto said = check_safetensors_can_store(outputs, true, "safetensors");
  REQUIRE_FALSE(said.has_value());
  CHECK(said.error().kind == ErrorKind::kUnsupported);
  CHECK(said.error().message.find("1 entry is named") != std::string::npos);
  CHECK(said.error().message.find("__metadata__") != std::string::npos);
}

// Programs that torch.export.save wrote (tests/data/torch-2.15/torch_export), intact and wrong.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/data_findings.h"
#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/torch_export/export_config.h"
#include "core/make_zip.h"
#include "core/read_all.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kExports = std::string(SHW_TEST_DATA) + "/torch-2.15/torch_export/";

Bytes export_bytes(const std::string& name) {
  return whole_file(kExports + name);
}

OpenedCheckpoint open_export(Bytes bytes) {
  return open_checkpoint(memory_directory("ckpt", {{"program.pt2", std::move(bytes)}}));
}

// An archive with one weight of four bytes and this description of it.
OpenedCheckpoint open_with_meta(const std::string& meta) {
  return open_export(to_bytes(make_zip(
      {{"m/archive_format", "pt2"},
       {"m/data/weights/weight_0", "\1\2\3\4"},
       {"m/data/weights/model_weights_config.json",
        R"({"config": {"w": {"path_name": "weight_0", "use_pickle": false, "tensor_meta": )" +
            meta + "}}}"}})));
}

}  // namespace

TEST_CASE("torch.export: the weights and constants of each form read as torch holds them") {
  auto truth = read_truth(kExports + "truth.safetensors");
  REQUIRE(truth.has_value());
  for (const char* file : {"program.pt2", "torch_2_8.pt2", "before_2_8.pt2"}) {
    CAPTURE(file);
    auto opened = open_checkpoint(kExports + file);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK((*opened)->tensor_count() == truth->size());
    check_elements(**opened, *truth);
    for (const Finding& finding : findings_above_info(**opened)) {
      CAPTURE(finding.cause);
      CHECK(finding.rule == "none of these");
    }
  }
}

TEST_CASE("torch.export: a changed element is reported by --data") {
  Bytes bytes = export_bytes("program.pt2");
  auto sound = open_checkpoint(kExports + "program.pt2");
  REQUIRE(sound.has_value());
  const ItemPlace place = (*sound)->place((*sound)->storage(ChunkId{0}));
  bytes[static_cast<std::size_t>(place.offset)] ^= std::byte{1};
  auto opened = open_export(std::move(bytes));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(findings_above_info(**opened).size() == 1);
}

TEST_CASE("torch.export: a view beyond its record, and a record that is missing, are errors") {
  const std::string sizes = R"("sizes": [{"as_int": 5}], "strides": [{"as_int": 1}])";
  auto beyond = open_with_meta(R"({"dtype": 1, "storage_offset": {"as_int": 0}, )" + sizes + "}");
  REQUIRE_MESSAGE(beyond.has_value(), beyond.error().message);
  REQUIRE_FALSE(findings_above_info(**beyond).empty());
  CHECK(findings_above_info(**beyond)[0].cause.find("beyond") != std::string::npos);
  auto unknown = open_with_meta(R"({"dtype": 99, "storage_offset": {"as_int": 0}, )" + sizes + "}");
  REQUIRE_MESSAGE(unknown.has_value(), unknown.error().message);
  CHECK((*unknown)->tensor_count() == 0);
  Bytes bytes = export_bytes("program.pt2");
  // Renames a record, in the local header and in the directory.
  const std::string name = "data/weights/weight_0";
  for (auto at = bytes.begin();;) {
    const auto text = std::as_bytes(std::span(name));
    at = std::search(at, bytes.end(), text.begin(), text.end());
    if (at == bytes.end()) break;
    at += static_cast<std::ptrdiff_t>(name.size());
    *(at - 1) = std::byte{'X'};
  }
  auto missing = open_export(std::move(bytes));
  REQUIRE_MESSAGE(missing.has_value(), missing.error().message);
  REQUIRE_FALSE(findings_above_info(**missing).empty());
}

TEST_CASE("torch.export: a package of AOTInductor is refused by name") {
  auto opened = open_export(to_bytes(make_zip({{"m/archive_format", "pt2"},
                                               {"m/data/aotinductor/model/abc.so",
                                                "\x7f"
                                                "ELF"}})));
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().message.find("AOTInductor") != std::string::npos);
  CHECK_FALSE(opened.error().advice.empty());
}

TEST_CASE("torch.export: a config that is not JSON, or not of tensors, is answered") {
  for (const char* text : {"", "{", "[]", R"({"config": [1]})", R"({"config": {"w": 3}})",
                           R"({"config": {"w": {"path_name": 3}}})"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_export_config(text, "config").has_value());
  }
  for (const char* meta : {"null", "3", R"({"dtype": 7})",
                           R"({"dtype": 7, "sizes": [{"as_int": -1}], "strides": [{"as_int": 1}],
                               "storage_offset": {"as_int": 0}})",
                           R"({"dtype": 7, "sizes": [{"as_name": "s0"}],
                               "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}})"}) {
    CAPTURE(meta);
    auto parsed = parse_export_config(
        std::string(R"({"config": {"w": {"path_name": "a", "tensor_meta": )") + meta + "}}}", "c");
    REQUIRE(parsed.has_value());
    CHECK_FALSE(parsed->front().not_read.empty());
  }
}

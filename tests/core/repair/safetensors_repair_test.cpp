// Repairs that move bytes in safetensors files: single files, several with an index, and the
// sharded form. The expected result is computed element by element.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "core/facts/storage/filled.h"
#include "core/formats/common/safetensors_header.h"
#include "core/formats/items/item_cursor.h"
#include "core/formats/items/items.h"
#include "core/repair/against_source.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/repair/run/carry_out.h"
#include "core/spec/spec.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

using Json = nlohmann::ordered_json;

struct Stored {
  std::string fqn;
  std::string dtype;
  Extents shape;
  std::string bytes;
  Extents offsets = {};  // of a shard
};

std::string text_of(const Values& values) {
  Bytes bytes = floats(values);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_file(const std::string& path, const std::vector<Stored>& tensors,
                Json metadata = {{"format", "pt"}, {"who", "a test"}}) {
  Json header = Json::object(), info = Json::object();
  std::string data;
  for (const Stored& tensor : tensors) {
    if (!tensor.offsets.empty()) info[tensor.fqn] = {{"saved_offsets", tensor.offsets}};
  }
  if (!info.empty()) metadata["DCP_SHARDING_INFO"] = info.dump();
  header["__metadata__"] = metadata;
  for (const Stored& tensor : tensors) {
    std::size_t begin = data.size();
    data += tensor.bytes;
    header[tensor.fqn] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  // torch pads its shards, and files in general need not be.
  if (!info.empty()) text.resize((text.size() + 7) / 8 * 8, ' ');
  std::uint64_t length = text.size();
  put(path, std::string(reinterpret_cast<const char*>(&length), 8) + text + data);
}

// As the reference implementation requires: no problem, the data starts at a multiple of 8, and
// every tensor at a multiple of its element size.
SafetensorsHeader sound_header(const std::string& path) {
  auto source = open_file(path, path);
  REQUIRE(source.has_value());
  auto header = read_safetensors_header(**source);
  if (!header) FAIL(header.error().message);
  CHECK(header->problems.empty());
  CHECK(header->data_begin % 8 == 0);
  for (const SafetensorsEntry& entry : header->entries)
    CHECK((entry.begin - header->data_begin) % std::max(1u, size_of(entry.dtype)) == 0);
  return std::move(*header);
}

Plan plan_for_one(const Checkpoint& checkpoint, const Diagnosis& diagnosis, FillChoice fill = {}) {
  CheckReport report;
  Finding finding;
  finding.rule = "test";
  finding.cause = "a test says so";
  finding.subjects = {std::string(checkpoint.fqn(tensor_of(diagnosis)))};
  finding.diagnoses = {diagnosis};
  report.findings = {finding};
  PlanOptions options;
  options.fill = fill;
  auto plan = make_plan(checkpoint, report, options);
  if (!plan) FAIL(plan.error().message);
  if (plan->tensors.empty()) FAIL("nothing is planned");
  return std::move(*plan);
}

Certificate apply(const Checkpoint& checkpoint, const Plan& plan, const std::string& out) {
  auto repaired = apply_plan(checkpoint, plan, {out});
  if (!repaired) FAIL(std::string(repaired.error().place.file + ": " + repaired.error().message));
  auto proof = verified_against(out, checkpoint);
  REQUIRE(proof.has_value());
  for (const std::string& reason : proof->reasons) INFO(reason);
  CHECK(proof->outcome == VerifyReport::Outcome::kProved);
  auto certificate = certificate_from_json(contents(repaired->certificate), "certificate.json");
  REQUIRE(certificate.has_value());
  CHECK(certificate->lossless == repaired->lossless);
  return std::move(*certificate);
}

const Values kBroken{0,  3,  1,  4,  2,  5,  6,  9,  7,  10, 8,  11,
                     12, 15, 13, 16, 14, 17, 18, 21, 19, 22, 20, 23};
const Values kDownValues{0,  3,  6,  9,  1,  4,  7,  10, 2,  5,  8,  11,
                         12, 15, 18, 21, 13, 16, 19, 22, 14, 17, 20, 23};

void write_f16(const std::string& folder) {
  std::filesystem::create_directory(folder);
  write_file(folder + "/model.safetensors",
             {{"odd", "U8", {3}, "abc"},
              {"layers.0.down_proj", "F32", {2, 6, 2}, text_of(kBroken)},
              {"half", "BF16", {2}, "wxyz"},
              {"empty", "F32", {0, 4}, ""}});
  put(folder + "/config.json", "{}");
}

std::shared_ptr<const Spec> spec_of(const std::string& json) {
  auto spec = parse_spec(json, "spec.json");
  REQUIRE(spec.has_value());
  return std::make_shared<const Spec>(std::move(*spec));
}

CheckReport looked_at(const Checkpoint& checkpoint, const std::shared_ptr<const Spec>& spec) {
  CheckOptions options;
  options.spec = spec;
  options.depth = Depth::kData;
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  return std::move(*report);
}

int count_of_wrong(const CheckReport& report) {
  int count = 0;
  for (const Finding& finding : report.findings) count += finding.severity != Severity::kInfo;
  return count;
}

}  // namespace

TEST_CASE("F1.6: a consolidated file is found, rewritten with its bytes in order, and proved") {
  TemporaryFolder folder;
  write_f16(folder / "ckpt");
  auto before = contents(folder / "ckpt/model.safetensors");
  auto checkpoint = opened(folder / "ckpt");
  auto spec = spec_of(R"({"layers.0.down_proj": {"shape": [2, 3, 4], "dtype": "float32"}})");
  CheckReport report = looked_at(*checkpoint, spec);
  REQUIRE(count_of_wrong(report) == 1);
  CHECK(report.findings[0].rule == "placement-axis-moved");
  CHECK(report.findings[0].remedy->kind == "retile");
  PlanOptions options;
  options.spec = spec;
  auto plan = make_plan(*checkpoint, report, options);
  REQUIRE(plan.has_value());
  REQUIRE(plan->operations.size() == 1);
  CHECK(plan->operations[0].kind == OperationKind::kRetile);
  CHECK(plan->operations[0].bytes_moved == 96);

  Certificate certificate = apply(*checkpoint, *plan, folder / "out");
  CHECK(certificate.lossless);
  auto result = opened(folder / "out");
  CHECK(values_of(*result, "layers.0.down_proj") == kDownValues);
  SafetensorsHeader header = sound_header(folder / "out/model.safetensors");
  CHECK(*header.find_metadata("format") == "pt");
  CHECK(*header.find_metadata("who") == "a test");
  CHECK(header.entries.size() == 4);
  auto bytes_of = [&](const std::string& fqn) {
    auto read = read_tensor(*result, *result->find(fqn));
    return std::string(reinterpret_cast<const char*>(read->bytes.data()), read->bytes.size());
  };
  CHECK(bytes_of("odd") == "abc");
  CHECK(bytes_of("half") == "wxyz");
  CHECK(contents(folder / "ckpt/model.safetensors") == before);
  CHECK(contents(folder / "out/config.json") == "{}");

  CheckReport again = looked_at(*result, spec);
  CHECK(count_of_wrong(again) == 0);
  CHECK(make_plan(*result, again, options)->empty());
}

TEST_CASE(
    "bytes of safetensors files move into a new directory only, and nothing is undone there") {
  TemporaryFolder folder;
  write_f16(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_for_one(*checkpoint,
                           AxisMoved{*checkpoint->find("layers.0.down_proj"), 1, 2, 2, {2, 3, 4}});
  ApplyOptions in_place;
  in_place.in_place = true;
  auto refused = apply_plan(*checkpoint, plan, in_place);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().advice == "repair into a new directory instead");
  CHECK_FALSE(undo_repair(folder / "ckpt").has_value());
}

TEST_CASE("of many files only those that change are rewritten, and the index keeps count") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "ckpt");
  std::string one = "model-00001-of-00002.safetensors", two = "model-00002-of-00002.safetensors";
  Values weight = counting({2, 3});
  write_file(folder / "ckpt/" + one, {{"a", "F32", {2}, text_of({1, 2})},
                                      {"w", "F32", {2, 3}, text_of(weight)},
                                      {"z", "F32", {1}, text_of({3})}});
  write_file(folder / "ckpt/" + two, {{"b", "F32", {4}, text_of({4, 5, 6, 7})}});
  Json index = {{"metadata", {{"total_size", 52}, {"total_parameters", 13}, {"by", "a test"}}},
                {"weight_map", {{"a", one}, {"w", one}, {"z", one}, {"b", two}}}};
  put(folder / "ckpt/model.safetensors.index.json", index.dump());
  auto checkpoint = opened(folder / "ckpt");
  TensorId w = *checkpoint->find("w");
  // Rows 1 and 2 of 4 survive.
  PartlyLost lost{w, {4, 3}, {{checkpoint->chunks(w)[0], Box{{0, 0}, {2, 3}}, {1, 0}}}, ""};
  Certificate certificate = apply(*checkpoint, plan_for_one(*checkpoint, lost), folder / "out");
  CHECK_FALSE(certificate.lossless);
  auto result = opened(folder / "out");
  CHECK(values_of(*result, "w") == Values{0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0});
  CHECK(values_of(*result, "a") == Values{1, 2});
  CHECK(values_of(*result, "z") == Values{3});
  CHECK(result->chunks(*result->find("w")).size() == 1);
  CHECK(contents(folder / "out/" + two) == contents(folder / "ckpt/" + two));
  sound_header(folder / "out/" + one);
  Json after = Json::parse(contents(folder / "out/model.safetensors.index.json"));
  CHECK(after["metadata"] == Json{{"total_size", 76}, {"total_parameters", 19}, {"by", "a test"}});
  CHECK(after["weight_map"] == index["weight_map"]);
  Json lost_list = Json::parse(contents(folder / "out/lost.json"));
  CHECK(lost_list["lost"] == 6);
  CHECK(lost_list["tensors"]["w"]["fill"] == "zero");

  // No size changes, so the index stays as it is, byte for byte.
  BlocksPermuted blocks{w, 0, 1, {1, 0}};
  apply(*checkpoint, plan_for_one(*checkpoint, blocks), folder / "swapped");
  CHECK(values_of(*opened(folder / "swapped"), "w") == Values{3, 4, 5, 0, 1, 2});
  CHECK(contents(folder / "swapped/model.safetensors.index.json") == index.dump());
}

TEST_CASE("the sharded form is relabelled, permuted and masked, whoever holds what") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "ckpt");
  auto file = [](int i) {
    return "shard-0000" + std::to_string(i) + "-model-00001-of-00001.safetensors";
  };
  // w [6, 2] in three shards of two rows; blocks of three rows are the other way round.
  Values w = counting({6, 2}), disk;
  for (int row : {3, 4, 5, 0, 1, 2}) {
    disk.push_back(w[static_cast<std::size_t>(2 * row)]);
    disk.push_back(w[static_cast<std::size_t>(2 * row + 1)]);
  }
  for (int i = 0; i < 3; ++i) {
    auto part = disk.begin() + 4 * i;
    std::vector<Stored> held{{"w", "F32", {2, 2}, text_of({part, part + 4}), {2 * i, 0}}};
    held.push_back({"only." + std::to_string(i), "F32", {1}, text_of({90 + i}), {0}});
    write_file(folder / "ckpt/" + file(i + 1), held);
  }
  auto checkpoint = opened(folder / "ckpt");
  REQUIRE(checkpoint->format().name == "hf-sharded");
  TensorId tensor = *checkpoint->find("w");

  Certificate moved = apply(
      *checkpoint, plan_for_one(*checkpoint, BlocksPermuted{tensor, 0, 3, {1, 0}}), folder / "b");
  CHECK(moved.lossless);
  CHECK(values_of(*opened(folder / "b"), "w") == w);
  for (int i = 0; i < 3; ++i) {
    sound_header(folder / "b/" + file(i + 1));
    CHECK(values_of(*opened(folder / "b"), "only." + std::to_string(i)) == Values{90 + i});
  }

  // Twelve rows, of which the shards are rows 1-2, 5-6 and 10-11: four gaps need files of their
  // own next to those of the three retained_chunks.
  PartlyLost lost{tensor, {12, 2}, {}, ""};
  auto chunks = checkpoint->chunks(tensor);
  const std::int64_t rows[] = {1, 5, 10};
  Values expected(24, 0);
  for (std::uint32_t i = 0; i < 3; ++i) {
    lost.retained_chunks.push_back({chunks[i], Box{{0, 0}, {2, 2}}, {rows[i], 0}});
    for (std::int64_t e = 0; e < 4; ++e)
      expected[static_cast<std::size_t>(2 * rows[i] + e)] =
          disk[4 * i + static_cast<std::size_t>(e)];
  }
  Certificate masked = apply(*checkpoint, plan_for_one(*checkpoint, lost), folder / "masked");
  CHECK_FALSE(masked.lossless);
  auto result = opened(folder / "masked");
  CHECK(values_of(*result, "w") == expected);
  CHECK(result->files().size() > 3);
  // Each file itself records its filled elements, even without the other records.
  for (const char* side : {"lost.json", "certificate.json"})
    std::filesystem::remove(folder / "masked/" + side);
  FilledReport filled = filled_report_of(*opened(folder / "masked"));
  REQUIRE(filled.tensors.size() == 1);
  CHECK(filled.tensors[0].fqn == "w");
  CHECK(filled.tensors[0].lost == 12);
  CHECK(filled.sources[0] == "__metadata__");
  for (const FileRow& row : result->files()) {
    if (row.path.ends_with(".safetensors")) sound_header(folder / "masked/" + row.path);
  }
}

TEST_CASE("a transposed tensor is turned in its file, whole or in shards") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "whole");
  write_file(folder / "whole/model.safetensors", {{"w", "F32", {2, 3}, text_of(counting({2, 3}))}});
  auto whole_one = opened(folder / "whole");
  apply(*whole_one, plan_for_one(*whole_one, Transposed{TensorId{0}, 0, 1, {3, 2}}),
        folder / "turned");
  CHECK(values_of(*opened(folder / "turned"), "w") == Values{0, 3, 1, 4, 2, 5});

  std::filesystem::create_directory(folder / "shards");
  for (int i = 0; i < 3; ++i) {
    write_file(
        folder / "shards/shard-0000" + std::to_string(i + 1) + "-model-00001-of-00001.safetensors",
        {{"w", "F32", {1, 2}, text_of({2 * i, 2 * i + 1}), {i, 0}}});
  }
  auto shards = opened(folder / "shards");
  REQUIRE(shards->format().name == "hf-sharded");
  Certificate certificate =
      apply(*shards, plan_for_one(*shards, Transposed{TensorId{0}, 0, 1, {2, 3}}),
            folder / "turned-shards");
  CHECK(certificate.lossless);
  CHECK(values_of(*opened(folder / "turned-shards"), "w") == Values{0, 2, 4, 1, 3, 5});
}

TEST_CASE("rows of one tensor go into another where a file knows them by name only") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "ckpt");
  write_file(folder / "ckpt/model.safetensors", {{"v", "F32", {2, 2}, text_of({5, 6, 7, 8})},
                                                 {"w", "F32", {2, 2}, text_of({1, 2, 3, 4})}});
  auto checkpoint = opened(folder / "ckpt");
  TensorId w = *checkpoint->find("w"), v = *checkpoint->find("v");
  PartlyLost lost{w, {4, 2}, {{checkpoint->chunks(v)[0], Box{{0, 0}, {2, 2}}, {2, 0}}}, ""};
  apply(*checkpoint, plan_for_one(*checkpoint, lost), folder / "out");
  CHECK(values_of(*opened(folder / "out"), "w") == Values{0, 0, 0, 0, 5, 6, 7, 8});
  CHECK(values_of(*opened(folder / "out"), "v") == Values{5, 6, 7, 8});
}

TEST_CASE("bytes after the last tensor are dropped where a file is rewritten") {
  TemporaryFolder folder;
  write_f16(folder / "ckpt");
  std::string path = folder / "ckpt/model.safetensors";
  put(path, contents(path) + "trailing");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_for_one(*checkpoint,
                           AxisMoved{*checkpoint->find("layers.0.down_proj"), 1, 2, 2, {2, 3, 4}});
  auto made = apply_plan(*checkpoint, plan, {folder / "out"});
  REQUIRE(made.has_value());
  CHECK(sound_header(folder / "out/model.safetensors").entries.size() == 4);
  CHECK(values_of(*opened(folder / "out"), "layers.0.down_proj") == kDownValues);
}

TEST_CASE("any box of a raw item reads as the whole item cut down") {
  TemporaryFolder folder;
  std::mt19937 random(6);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    Extents shape;
    for (unsigned d = 0; d < 1 + random() % 4; ++d) shape.push_back(1 + random() % 5);
    Values all = counting(shape);
    std::string name = "ckpt" + std::to_string(round);
    std::filesystem::create_directory(folder / name);
    write_file(folder / name + "/model.safetensors",
               {{"a", "F32", {1}, text_of({1})}, {"w", "F32", shape, text_of(all)}});
    auto checkpoint = opened(folder / name);
    ChunkId chunk = checkpoint->chunks(*checkpoint->find("w"))[0];
    ItemCursor reader(*checkpoint);
    for (int i = 0; i < 5; ++i) {
      Box box = whole(shape);
      for (std::size_t d = 0; d < shape.size(); ++d) {
        box.offsets[d] = static_cast<std::int64_t>(random() % static_cast<unsigned>(shape[d]));
        box.sizes[d] = 1 + static_cast<std::int64_t>(
                               random() % static_cast<unsigned>(shape[d] - box.offsets[d]));
      }
      auto read = reader.read(chunk, box);
      REQUIRE(read.has_value());
      CHECK(*read == floats(cut_out(all, shape, box)));
    }
    CHECK_FALSE(reader.read(chunk, Box{shape, shape}).has_value());
  }
}

TEST_CASE("a tensor larger than what is held at once is moved in slabs") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "ckpt");
  // 80 MiB of uint8 [2, 4, n]: the image of [2, 2, 2 n] cut in two along its last dimension.
  const std::size_t n = std::size_t{10} << 20;
  std::string bytes(8 * n, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 2654435761u >> 24);
  write_file(folder / "ckpt/model.safetensors",
             {{"w", "U8", {2, 4, static_cast<std::int64_t>(n)}, bytes}});
  auto checkpoint = opened(folder / "ckpt");
  TensorId w = *checkpoint->find("w");
  apply(*checkpoint,
        plan_for_one(*checkpoint, AxisMoved{w, 1, 2, 2, {2, 2, static_cast<std::int64_t>(2 * n)}}),
        folder / "out");
  SafetensorsHeader header = sound_header(folder / "out/model.safetensors");
  std::string made = contents(folder / "out/model.safetensors").substr(header.data_begin);
  REQUIRE(made.size() == bytes.size());
  bool equal = true;
  for (std::size_t e = 0; e < 2; ++e) {
    for (std::size_t row = 0; row < 2; ++row) {
      for (std::size_t s = 0; s < 2; ++s) {
        equal = equal && made.compare((e * 4 + row * 2 + s) * n, n, bytes,
                                      (e * 4 + s * 2 + row) * n, n) == 0;
      }
    }
  }
  CHECK(equal);
}

TEST_CASE("safetensors repair: names change places and prefixes go, index and dtypes follow") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "ckpt");
  const Values first{1, 2, 3, 4}, second{5, 6, 7, 8};
  write_file(folder / "ckpt/model-00001-of-00002.safetensors",
             {{"p.a", "F32", {2, 2}, text_of(first)}, {"p.half", "BF16", {2}, "wxyz"}});
  write_file(folder / "ckpt/model-00002-of-00002.safetensors",
             {{"p.b", "F32", {2, 2}, text_of(second)}, {"kept", "U8", {3}, "abc"}});
  put(folder / "ckpt/model.safetensors.index.json",
      R"({"metadata": {"total_size": 39}, "weight_map": {
          "p.a": "model-00001-of-00002.safetensors", "p.half": "model-00001-of-00002.safetensors",
          "p.b": "model-00002-of-00002.safetensors", "kept": "model-00002-of-00002.safetensors"}})");
  auto checkpoint = opened(folder / "ckpt");
  CheckReport report;
  Finding finding;
  finding.rule = "test";
  // "p.half" gets a name that another dtype had.
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"p.a", "p.half"}, {"p.half", "p.a"}, {"p.b", "b"}}) {
    finding.subjects.push_back(from);
    finding.diagnoses.emplace_back(Renamed{*checkpoint->find(from), to, {}});
  }
  report.findings = {finding};
  auto plan = make_plan(*checkpoint, report, {});
  REQUIRE(plan.has_value());
  CHECK(plan->undecided.empty());
  CHECK(apply(*checkpoint, *plan, folder / "out").lossless);
  auto result = opened(folder / "out");
  CHECK(result->opening_findings().empty());
  CHECK(result->tensor_count() == 4);
  CHECK(values_of(*result, "p.half") == first);
  CHECK(values_of(*result, "b") == second);
  REQUIRE(result->find("p.a").has_value());
  CHECK(result->dtype(*result->find("p.a")) == Dtype::kBfloat16);
  const Json index = Json::parse(contents(folder / "out/model.safetensors.index.json"));
  CHECK(index["weight_map"].contains("b"));
  CHECK(!index["weight_map"].contains("p.b"));
  CHECK(index["metadata"]["total_size"] == 39);
}

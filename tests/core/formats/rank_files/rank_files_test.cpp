// One torch.save file per rank, with DTensors that real torch pickled (tests/data/torch-2.15).
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/fixtures.h"
#include "core/formats/common/rank_boxes.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/rank_files/rank_names.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

std::string rank_folder() {
  return std::string(SHW_TEST_DATA) + "/torch-2.15/rank_files";
}

std::vector<std::pair<std::string, Bytes>> files_of_ranks() {
  std::vector<std::pair<std::string, Bytes>> files;
  for (const auto& entry : std::filesystem::directory_iterator(rank_folder() + "/ckpt")) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const auto bytes = std::as_bytes(std::span(text));
    files.emplace_back(entry.path().filename().string(), Bytes(bytes.begin(), bytes.end()));
  }
  return files;
}

std::string causes_of_ranks(std::vector<std::pair<std::string, Bytes>> files) {
  auto opened = open_checkpoint(memory_directory("ckpt", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  auto report = check(**opened, {.depth = Depth::kData, .spec = nullptr, .mesh = std::nullopt});
  REQUIRE(report.has_value());
  std::string causes;
  for (const Finding& finding : report->findings) {
    if (finding.severity != Severity::kInfo) causes += finding.cause + "\n";
  }
  return causes;
}

DTensorSharding cut_of(Extents shape, Extents mesh, std::vector<std::string> placements) {
  DTensorSharding sharding;
  sharding.global_shape = std::move(shape);
  sharding.mesh.shape = std::move(mesh);
  sharding.placements = std::move(placements);
  return sharding;
}

std::vector<Box> boxes_at(const DTensorSharding& sharding, std::int64_t rank) {
  auto boxes = boxes_of_sharding(sharding, rank);
  REQUIRE(boxes.has_value());
  return *boxes;
}

using Boxes = std::vector<Box>;

}  // namespace

TEST_CASE("rank files: every tensor reads as the ranks held it together") {
  auto opened = open_checkpoint(rank_folder() + "/ckpt");
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  auto truth = read_truth(rank_folder() + "/truth.safetensors");
  REQUIRE(truth.has_value());
  std::size_t compared = 0;
  for (TensorId tensor : (*opened)->tensors()) {
    std::string fqn((*opened)->fqn(tensor));
    CAPTURE(fqn);
    if (fqn.starts_with("optim.state.")) fqn = "optim." + fqn.substr(12);
    auto expected = truth->find(fqn);
    if (expected == truth->end()) continue;
    auto values = read_tensor(**opened, tensor);
    REQUIRE_MESSAGE(values.has_value(), values.error().message);
    CHECK(values->uncovered == 0);
    CHECK(values->dtype == expected->second.dtype);
    CHECK(values->shape == expected->second.shape);
    CHECK(values->bytes == expected->second.bytes);
    ++compared;
  }
  CHECK(compared == truth->size());
  CHECK(causes_of_ranks(files_of_ranks()).empty());
}

TEST_CASE("rank files: a rank whose file is missing or damaged is named") {
  auto files = files_of_ranks();
  std::erase_if(files,
                [](const auto& file) { return file.first.find("_rank_2.pt") != file.first.npos; });
  CHECK(causes_of_ranks(files).find("rank 2 of 4") != std::string::npos);
  files = files_of_ranks();
  for (auto& [name, bytes] : files) {
    if (name == "model_world_size_4_rank_1.pt") bytes.resize(bytes.size() / 2);
  }
  CHECK(causes_of_ranks(files).find("model_world_size_4_rank_1.pt cannot be read") !=
        std::string::npos);
}

// torch.load makes every storage that the pickle names, including those of the mesh.
TEST_CASE("rank files: a storage that is gone is reported, whatever it belongs to") {
  const std::string file = "model_world_size_4_rank_1.pt";
  std::size_t storages = 0;
  for (char key = '0'; key <= '9'; ++key) {
    auto files = files_of_ranks();
    auto& bytes = std::find_if(files.begin(), files.end(), [&](const auto& one) {
                    return one.first == file;
                  })->second;
    const std::string record = std::string("/data/") + key;
    const auto wanted = std::as_bytes(std::span(record));
    std::size_t renamed = 0;
    for (auto at = bytes.begin();; ++renamed) {
      at = std::search(at, bytes.end(), wanted.begin(), wanted.end());
      if (at == bytes.end()) break;
      at += static_cast<std::ptrdiff_t>(record.size());
      *std::prev(at) = std::byte{'z'};
    }
    if (renamed == 0) continue;
    ++storages;
    CAPTURE(key);
    CHECK(causes_of_ranks(files).find(std::string("no record data/") + key) != std::string::npos);
  }
  CHECK(storages >= 3);
}

TEST_CASE("rank files: files of a different number of ranks are left aside") {
  auto files = files_of_ranks();
  files.emplace_back("model_world_size_8_rank_7.pt", files.front().second);
  CHECK(causes_of_ranks(files).find("a different number of ranks") != std::string::npos);
  CHECK_FALSE(parse_rank_file("model_world_size_4_rank_4.pt").has_value());
  CHECK_FALSE(parse_rank_file("model_world_size_0_rank_0.pt").has_value());
  CHECK_FALSE(parse_rank_file("world_size_4_rank_0.pt").has_value());
}

TEST_CASE("rank files: names that give only the rank are joined where tensors have placements") {
  std::vector<std::pair<std::string, Bytes>> files, named = files_of_ranks();
  for (auto& [path, bytes] : named) {
    const auto name = parse_rank_file(path);
    if (name && name->kind == "model")
      files.emplace_back("ckpt_rank_" + std::to_string(name->rank) + ".pt", std::move(bytes));
  }
  REQUIRE(files.size() == 4);
  auto opened = open_checkpoint(memory_directory("ckpt", files));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->format().name == "rank-files");
  CHECK(causes_of_ranks(files).empty());
  auto truth = read_truth(rank_folder() + "/truth.safetensors");
  REQUIRE(truth.has_value());
  for (TensorId tensor : (*opened)->tensors()) {
    CAPTURE((*opened)->fqn(tensor));
    auto values = read_tensor(**opened, tensor);
    REQUIRE(values.has_value());
    CHECK(values->bytes == truth->at(std::string((*opened)->fqn(tensor))).bytes);
  }
  // Without rank 0, or with a gap, the number of ranks is not known.
  std::erase_if(files, [](const auto& file) { return file.first == "ckpt_rank_1.pt"; });
  auto gap = open_checkpoint(memory_directory("ckpt", files));
  CHECK((!gap || (*gap)->format().name != "rank-files"));
}

TEST_CASE("rank files: placements give the boxes that torch gives") {
  CHECK(boxes_at(cut_of({10, 4}, {4}, {"Shard(0)"}), 3) == Boxes{{{9, 0}, {1, 4}}});
  CHECK(boxes_at(cut_of({5, 4}, {4}, {"Shard(0)"}), 3).empty());
  CHECK(boxes_at(cut_of({10, 4}, {2, 2}, {"Replicate()", "Shard(1)"}), 3) ==
        Boxes{{{0, 2}, {10, 2}}});
  // Rows of a TP by FSDP cut: 12 rows are as 0, 6, 3, 9 with the ranks.
  const auto strided = cut_of({12}, {2, 2}, {"_StridedShard(dim=0, sf=2)", "Shard(0)"});
  CHECK(boxes_at(strided, 0) == Boxes{{{0}, {3}}});
  CHECK(boxes_at(strided, 1) == Boxes{{{6}, {3}}});
  CHECK(boxes_at(strided, 2) == Boxes{{{3}, {3}}});
  CHECK(boxes_at(strided, 3) == Boxes{{{9}, {3}}});
  CHECK_FALSE(boxes_of_sharding(cut_of({12}, {2}, {"Partial(sum)"}), 0).has_value());
  CHECK_FALSE(boxes_of_sharding(cut_of({12}, {2}, {"Shard(1)"}), 0).has_value());
  CHECK_FALSE(boxes_of_sharding(cut_of({12}, {2}, {"Shard(0)"}), 2).has_value());
  CHECK_FALSE(boxes_of_sharding(cut_of({12}, {}, {}), 0).has_value());
}

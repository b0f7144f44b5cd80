// One rank's file copied over another's: equal length and shapes, and all checksums right.
#include <filesystem>

#include "core/rules/make_contents.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;
namespace fs = std::filesystem;

namespace {

// Tensors in one part per rank, along dim 0.
struct ByRank {
  int ranks;
  MadeModel model = {};

  void add(const std::string& fqn, Extents part, Numbers values) {
    model.add(fqn, Dtype::kFloat32, part, std::move(values));
    MadeContent& tensor = model.tensors.back();
    tensor.shape[0] *= ranks;
    for (int rank = 0; rank < ranks; ++rank) {
      Extents offsets(part.size(), 0);
      offsets[0] = rank * part[0];
      tensor.tiles.push_back({offsets, part, static_cast<std::uint32_t>(rank)});
    }
  }
};

ByRank trained_model(int ranks) {
  ByRank out{ranks};
  for (int layer = 0; layer < 2; ++layer) {
    std::string before = "model.layers." + std::to_string(layer) + ".";
    auto count = static_cast<std::size_t>(64 * ranks);
    out.add(before + "up.weight", {8, 8}, distinct(count, 1 + layer));
    out.add(before + "norm.weight", {8}, Numbers(static_cast<std::size_t>(8 * ranks), 1));
    out.add("optimizer.state." + before + "up.weight.exp_avg", {8, 8}, distinct(count, 3 + layer));
  }
  return out;
}

void copy_file(const std::string& folder, int from, int to) {
  auto path = [&](int rank) { return folder + "/__" + std::to_string(rank) + "_0.distcp"; };
  fs::copy_file(path(from), path(to), fs::copy_options::overwrite_existing);
}

// The ranks whose files the findings name: " 0 2, 1 3" for two findings.
std::string finding_of_side_file(const std::string& folder, Depth depth = Depth::kHeaders) {
  auto opened = open_checkpoint(folder);
  REQUIRE(opened.has_value());
  std::string ranks;
  for (const Finding& finding : found_in(**opened, "shared-storage", depth)) {
    CHECK(finding.severity == Severity::kWarning);
    CHECK_FALSE(finding.remedy.has_value());
    ranks += ranks.empty() ? "" : ",";
    for (const std::string& file : finding.subjects) ranks += " " + file.substr(2, 1);
  }
  return ranks;
}

}  // namespace

TEST_CASE("a rank's file with another rank's bytes is a warning that names both") {
  TemporaryFolder scratch;
  const std::string folder = scratch / "ckpt";
  made(folder, trained_model(4).model);
  CHECK(finding_of_side_file(folder) == "");
  copy_file(folder, 1, 3);
  CHECK(finding_of_side_file(folder, Depth::kMetadata) == "");  // nothing was opened
  CHECK(finding_of_side_file(folder) == " 1 3");
  CHECK(finding_of_side_file(folder, Depth::kData) == " 1 3");
  copy_file(folder, 0, 2);
  CHECK(finding_of_side_file(folder) == " 0 2, 1 3");
  copy_file(folder, 0, 1);
  CHECK(finding_of_side_file(folder) == " 0 1 2");
}

TEST_CASE("files are equal by right where models are made of copies or of one number") {
  TemporaryFolder scratch;
  const Numbers half = distinct(64);
  Numbers twice = half;
  twice.insert(twice.end(), half.begin(), half.end());
  const Numbers zeros(128, 0);
  auto told = [&](const std::string& name, auto add) {
    ByRank built{2};
    for (int i = 0; i < 3; ++i) add(built, std::to_string(i));
    const std::string folder = scratch / name;
    made(folder, built.model);
    return !finding_of_side_file(folder).empty();
  };
  CHECK(told("rows", [&](ByRank& to, const std::string& i) { to.add("w" + i, {8, 8}, twice); }));
  CHECK_FALSE(told("one", [&](ByRank& to, const std::string& i) {
    to.add("w" + i, {8, 8}, i == "0" ? twice : zeros);  // one tensor is too little evidence
  }));
  CHECK_FALSE(told("zeros", [&](ByRank& to, const std::string& i) {
    to.add("w" + i, {8, 8}, zeros);
  }));
  CHECK_FALSE(told("experts", [&](ByRank& to, const std::string& i) {
    to.add("layers." + i + ".experts.w1", {8, 8}, twice);
  }));
  CHECK_FALSE(told("stacked", [&](ByRank& to, const std::string& i) {
    to.add("decoder.layers.w" + i, {1, 8, 8}, twice);
  }));
  CHECK(told("moments", [&](ByRank& to, const std::string& i) {
    to.add("optimizer.state.layers." + i + ".experts.w1.exp_avg", {1, 8, 8}, twice);
  }));
}

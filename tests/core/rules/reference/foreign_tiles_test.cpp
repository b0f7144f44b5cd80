// Tiles of another save and of another tensor, compared with a reference of the same step.
#include "core/rules/reference/against_support.h"

using namespace shw;

namespace {

constexpr std::int64_t kRanks = 4;
const Extents kShape{8, 6};

Values weights(std::int64_t first) {
  return numbers_from(first, 48);
}

// Matrices that are cut in rows; `other[i]` says which ranks hold other numbers of matrix i.
using Others = std::vector<std::vector<std::size_t>>;
std::vector<MadeTensor> matrices(const Others& other) {
  std::vector<MadeTensor> tensors;
  for (std::size_t i = 0; i < other.size(); ++i) {
    const auto first = 1 + 1000 * static_cast<std::int64_t>(i);
    const std::string name = std::string("model.") + static_cast<char>('a' + i);
    MadeTensor tensor = cut_in_rows(name, kShape, weights(first), kRanks);
    for (std::size_t rank : other[i]) {
      for (auto& value : tensor.chunks[rank].values) value += 500;
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

struct ToldOfFiles {
  std::vector<std::string> foreign, exchanged;
  std::size_t above_info = 0, differing = 0;
};

ToldOfFiles finding_of_side_file(const std::vector<MadeTensor>& saved, Depth depth) {
  TemporaryFolder folder;
  write_checkpoint(folder / "good", matrices(Others(saved.size())));
  write_checkpoint(folder / "bad", saved);
  CheckReport report = held_against(folder / "bad", folder / "good", depth);
  ToldOfFiles told;
  told.above_info = count_above_info(report);
  if (auto* found = first_of(report, "foreign-file")) told.foreign = found->subjects;
  if (auto* found = first_of(report, "tiles-exchanged")) {
    told.exchanged = found->subjects;
    CHECK_FALSE(found->remedy.has_value());
  }
  if (auto* found = first_of(report, "differs-from-reference"))
    told.differing = found->subjects.size();
  return told;
}

}  // namespace

TEST_CASE("a rank's file of another save is named next to a copy of the same step") {
  for (Depth depth : {Depth::kHeaders, Depth::kData}) {
    ToldOfFiles told = finding_of_side_file(matrices({{2}, {2}, {2}}), depth);
    CHECK(told.foreign == std::vector<std::string>{"__2_0.distcp"});
    CHECK(told.above_info == 1);
    CHECK(told.differing == 0);
    told = finding_of_side_file(matrices({{0, 3}, {0, 3}, {0, 3}}), depth);
    CHECK(told.foreign == std::vector<std::string>{"__0_0.distcp", "__3_0.distcp"});
  }
}

TEST_CASE("a file of another save is named next to a tensor whose other tiles changed places") {
  for (Depth depth : {Depth::kHeaders, Depth::kData}) {
    std::vector<MadeTensor> saved = matrices({{2}, {2}, {2}, {2}});
    std::swap(saved[1].chunks[0].values, saved[1].chunks[3].values);
    ToldOfFiles told = finding_of_side_file(saved, depth);
    CHECK(told.foreign == std::vector<std::string>{"__2_0.distcp"});
    CHECK(told.exchanged == std::vector<std::string>{"model.b"});
    CHECK(told.differing == 0);
  }
}

TEST_CASE("training that leaves rows alone is not a file of another save") {
  const std::vector<std::size_t> all{0, 1, 2, 3};
  const std::vector<Others> healthy = {
      {{}, {}, {}},           {all, all, all}, {{}, {}, all},  // all but one frozen
      {all, all, {0, 1}},                                      // experts that received no token
      {{}, {}, {}, {2}, {2}},  // a frozen base, two embeddings with one rank's rows trained
  };
  for (const Others& other : healthy) {
    for (Depth depth : {Depth::kHeaders, Depth::kData}) {
      CAPTURE(other.size());
      ToldOfFiles told = finding_of_side_file(matrices(other), depth);
      CHECK(told.foreign.empty());
      CHECK(told.above_info == 0);
    }
  }
}

TEST_CASE("one chunk of other numbers next to equal ones is not another file, and is a warning") {
  for (Depth depth : {Depth::kHeaders, Depth::kData}) {
    ToldOfFiles told = finding_of_side_file(matrices({{}, {}, {2}}), depth);
    CHECK(told.foreign.empty());
    CHECK(told.differing == 1);
    CHECK(told.above_info == 1);
  }
}

TEST_CASE("tiles of two tensors under each other's names are named and not repaired") {
  for (Depth depth : {Depth::kHeaders, Depth::kData}) {
    std::vector<MadeTensor> saved = matrices({{}, {}, {}});
    std::swap(saved[0].chunks[1].values, saved[2].chunks[3].values);
    ToldOfFiles told = finding_of_side_file(saved, depth);
    CHECK(told.exchanged == std::vector<std::string>{"model.a", "model.c"});
    CHECK(told.foreign.empty());
    CHECK(told.above_info == 1);
    CHECK(told.differing == 0);
  }
}

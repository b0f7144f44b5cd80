// A checkpoint compared with a reference: padding, ties, layers, uneven shards.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/repair/make_checkpoint.h"
#include "core/rules/check.h"
#include "core/rules/reference/against_support.h"
#include "core/temporary_folder.h"

using namespace shw;

TEST_CASE("padding of the vocabulary is dropped only where its bytes say that it is padding") {
  for (bool padded : {true, false}) {
    TemporaryFolder folder;
    Extents shape{10, 3}, more{12, 3};
    Values truth = counting(shape), image = truth;
    for (std::int64_t i = 0; i < 6; ++i) image.push_back(padded ? 0 : 500 + i);
    write_checkpoint(folder / "good", {in_rows("lm_head.weight", shape, truth, each_writes(1))});
    write_checkpoint(folder / "bad", {in_rows("lm_head.weight", more, image, each_writes(4))});
    CheckReport report = held_against(folder / "bad", folder / "good");
    const Finding* finding = first_of(report, "vocabulary-padding");
    REQUIRE((finding != nullptr) == padded);
    CHECK((first_of(report, "shape-mismatch") == nullptr) == padded);
    if (!padded) continue;
    CHECK(finding->remedy->lossless);
    CHECK(finding->consequence == Consequence::kWillNotLoad);  // and not "elements are lost"
    auto checkpoint = opened(repaired_into(folder / "bad", report, folder / "out"));
    CHECK(values_of(*checkpoint, "lm_head.weight") == truth);
  }
}

TEST_CASE("rows of padding that the model has and the checkpoint lacks come back as zeros") {
  TemporaryFolder folder;
  Extents shape{10, 3}, more{12, 3};
  Values truth = counting(shape), padded = truth;
  padded.resize(36, 0);
  write_checkpoint(folder / "good", {in_rows("lm_head.weight", more, padded, each_writes(1))});
  write_checkpoint(folder / "bad", {in_rows("lm_head.weight", shape, truth, each_writes(2))});
  CheckReport report = held_against(folder / "bad", folder / "good");
  REQUIRE(first_of(report, "vocabulary-padding") != nullptr);
  auto checkpoint = opened(repaired_into(folder / "bad", report, folder / "out"));
  CHECK(values_of(*checkpoint, "lm_head.weight") == padded);
}

TEST_CASE("a missing output layer is tied or lost, as the reference's bytes say") {
  for (bool tied : {true, false}) {
    TemporaryFolder folder;
    Extents shape{6, 4};
    Values embedding = counting(shape), head = embedding;
    if (!tied) head[5] = 99;
    MadeTensor one = in_rows("model.embed_tokens.weight", shape, embedding, each_writes(2));
    write_checkpoint(folder / "good",
                     {one, in_rows("lm_head.weight", shape, head, each_writes(1))});
    write_checkpoint(folder / "bad", {one});
    CheckReport report = held_against(folder / "bad", folder / "good");
    const Finding* finding = first_of(report, "tied-weights");
    REQUIRE(finding != nullptr);
    CHECK(finding->severity == (tied ? Severity::kInfo : Severity::kError));
    CHECK(count_above_info(report) == (tied ? 0U : 1U));
  }
}

TEST_CASE("layers of a later pipeline stage under the numbers of the first are recognised") {
  for (std::int64_t shift : {2, 0}) {
    TemporaryFolder folder;
    Extents shape{4, 4};
    std::vector<MadeTensor> all, stage;
    for (std::int64_t layer = 0; layer < 4; ++layer) {
      Values values = counting(shape);
      for (std::int64_t& value : values) value += 100 * layer;
      auto name = [](std::int64_t n) { return "model.layers." + std::to_string(n) + ".w.weight"; };
      all.push_back(in_rows(name(layer), shape, values, each_writes(1)));
      if (layer >= shift && layer < shift + 2)
        stage.push_back(in_rows(name(layer - shift), shape, values, each_writes(1)));
    }
    write_checkpoint(folder / "good", all);
    write_checkpoint(folder / "bad", stage);
    CheckReport report = held_against(folder / "bad", folder / "good");
    const Finding* finding = first_of(report, "layers-renumbered");
    REQUIRE((finding != nullptr) == (shift != 0));
    CHECK(first_of(report, "missing-key") != nullptr);
    if (finding != nullptr) CHECK(finding->subjects.size() == 2);
  }
}

TEST_CASE("uneven shards that each rank placed by its own size go where torch.chunk puts them") {
  TemporaryFolder folder;
  Extents shape{8, 2};  // 3 + 3 + 2 on 3 ranks
  Values truth = counting(shape);
  MadeTensor saved{"w", {9, 2}, {}};
  std::int64_t begin = 0;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    std::int64_t rows = rank < 2 ? 3 : 2;
    Values values = cut_out(truth, shape, Box{{begin, 0}, {rows, 2}});
    saved.chunks.push_back(
        {Box{{rank * rows, 0}, {rows, 2}}, {rows, 2}, values, static_cast<std::uint32_t>(rank)});
    begin += rows;
  }
  write_checkpoint(folder / "good", {in_rows("w", shape, truth, each_writes(2))});
  write_checkpoint(folder / "bad", {saved});
  CheckReport report = held_against(folder / "bad", folder / "good");
  REQUIRE(first_of(report, "uneven-shards") != nullptr);
  std::string out = repaired_into(folder / "bad", report, folder / "out");
  CHECK(values_of(*opened(out), "w") == truth);
  CHECK(count_above_info(held_against(out, folder / "good", Depth::kData)) == 0);

  // No split explains the offset of this shard, so there is no repair.
  saved.chunks[2].box.offsets[0] = 5;
  write_checkpoint(folder / "other", {saved});
  CHECK(first_of(held_against(folder / "other", folder / "good"), "uneven-shards") == nullptr);
}

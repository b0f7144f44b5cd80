// Resharding checkpoints of formats without tiles.
#include <doctest/doctest.h>

#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/repair/plan/plan.h"
#include "core/temporary_folder.h"
#include "core/verbs/transforms.h"

using namespace shw;
using namespace shw::test;

namespace {

// Checks that the result has the source's elements, and no findings.
void check_is_cut(const std::string& from, const std::string& out) {
  CAPTURE(from);
  VerbOptions options;
  options.checkpoint = from;
  options.mesh = "dp=2";
  auto opened = verbs::open(options);
  REQUIRE(opened.has_value());
  auto made = verbs::repair(*opened, verbs::plan_reshard(*opened, options).value(), {out}, nullptr);
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
  auto cut = open_checkpoint(out);
  REQUIRE(cut.has_value());
  CHECK((*cut)->format().name == "dcp");
  const TensorId w = *(*cut)->find("w");
  REQUIRE((*cut)->chunks(w).size() == 2);
  for (ChunkId chunk : (*cut)->chunks(w)) {
    CHECK(to_text((*cut)->sizes(chunk)) == "[1, 3]");
    CHECK((*cut)->writer(chunk) == static_cast<std::uint32_t>((*cut)->offsets(chunk)[0]));
  }
  CHECK(read_tensor(**cut, w)->bytes ==
        read_tensor(*opened->checkpoint, *opened->checkpoint->find("w"))->bytes);

  put(from + ".json", R"({"*": ["Partial"]})");
  options.placements = from + ".json";
  auto refused =
      verbs::repair(*opened, verbs::plan_reshard(*opened, options).value(), {out + "-2"}, nullptr);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("Partial") != std::string::npos);

  put(from + ".json", R"json({"w": ["Shard(1)"], "head.*": ["Replicate"]})json");
  std::vector<std::string> notes;
  CHECK(verbs::plan_reshard(*opened, options, &notes).has_value());
  REQUIRE(notes.size() == 1);
  CHECK(notes.front().find("\"head.*\"") != std::string::npos);
}

}  // namespace

TEST_CASE("what holds whole tensors is resharded into a format that has tiles") {
  TemporaryFolder folder;
  const std::string bytes = "abcdefghijklmnopqrstuvwx";
  const std::string header = R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  put(folder / "model.safetensors", little(header.size(), 8) + header + bytes);
  check_is_cut(folder / "model.safetensors", folder / "of-safetensors");
  put(folder / "model.pt",
      make_zip({{"m/data.pkl", as_pickle("}(" + pickled_text("w") + tensor_call({}) + "u")},
                {"m/version", "3\n"},
                {"m/data/0", bytes}}));
  check_is_cut(folder / "model.pt", folder / "of-torch");
}

TEST_CASE("a plan that cuts tensors is refused by name where the target holds them whole") {
  TemporaryFolder folder;
  const std::string header = R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  put(folder / "model.safetensors", little(header.size(), 8) + header + "abcdefghijklmnopqrstuvwx");
  VerbOptions options;
  options.checkpoint = folder / "model.safetensors";
  auto opened = verbs::open(options);
  REQUIRE(opened.has_value());
  const ReshardStep cut{{"w"}, parse_mesh("dp=2").value(), {{Placement::Kind::kShard, 0, 1}}};
  const ReshardStep whole{{"w"}, parse_mesh("dp=2").value(), {Placement{}}};
  const RetileStep tiles{{"w"}, {{{{0, 0}, {1, 3}}, 0}, {{{1, 0}, {1, 3}}, 1}}};
  auto taken = [&](Step step, const std::string& format) {
    Plan plan;
    plan.steps = {std::move(step)};
    plan.format = format;
    auto seen = verbs::estimate_steps(*opened, plan, 1 << 20, nullptr);
    auto made = verbs::repair(*opened, plan, {folder / ("out-" + format)}, nullptr);
    CHECK(seen.has_value() == made.has_value());
    return made;
  };
  for (const char* format : {"", "safetensors", "torch"}) {
    CAPTURE(format);
    for (const Step& step : {Step{cut}, Step{tiles}}) {
      auto refused = taken(step, format);
      REQUIRE_FALSE(refused.has_value());
      CHECK(refused.error().kind == ErrorKind::kUsage);
      CHECK(refused.error().message.find("w would be split") != std::string::npos);
    }
    CHECK(taken(whole, format).has_value());
  }
  CHECK(taken(cut, "dcp").has_value());
}

// `learn`, run as a process.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/answer.h"
#include "app/process.h"

using namespace shw::test;

namespace {

const std::string kLearnedMoe = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_moe_ep/ckpt";

// A checkpoint with the same weights under other names.
std::string renamed_copy(Scratch& scratch) {
  const std::string copy = scratch / "renamed";
  Run run = shardwright({"convert", kLearnedMoe, "--to", "safetensors", "--rename",
                         "model\\.(.*)=net.$1", "--weights-only", "--out", copy, "--yes"});
  REQUIRE(run.code == 0);
  return copy;
}

}  // namespace

TEST_CASE("learn finds other names, and convert makes the same tensors by its map") {
  Scratch scratch;
  const std::string copy = renamed_copy(scratch), map = scratch / "map.json";
  Run learned = shardwright({"learn", kLearnedMoe, copy, "--out", map, "--json"});
  CHECK(learned.code == 0);
  auto answer = parsed(learned.out);
  CHECK(answer["verdict"] == "explained");
  CHECK(answer["proved"] == answer["tensors"]);
  CHECK(answer["output"] == map);
  const std::string made = scratch / "made";
  Run converted = shardwright(
      {"convert", kLearnedMoe, "--map", map, "--to", "safetensors", "--out", made, "--yes"});
  CHECK(converted.code == 0);
  CHECK(shardwright({"diff", made, copy, "--data"}).code == 0);
  // Only the map is on stdout; the summary is on stderr.
  Run printed = shardwright({"learn", kLearnedMoe, copy});
  CHECK(printed.code == 0);
  CHECK(parsed(printed.out)["schema"] == "shardwright-map/1");
  CHECK(contains(printed.err, "are made of A"));
}

TEST_CASE("learn says what is not explained, and refuses a map inside a checkpoint") {
  Scratch scratch;
  const std::string other = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_grid/ckpt";
  Run none = shardwright({"learn", kLearnedMoe, other, "--out", scratch / "map.json", "--json"});
  CHECK(none.code == 1);
  CHECK(parsed(none.out)["verdict"] == "unexplained");
  CHECK(shardwright({"learn", kLearnedMoe}).code == 3);
  CHECK(shardwright({"learn", kLearnedMoe, kLearnedMoe, "--out", kLearnedMoe + "/map.json"}).code ==
        3);
}

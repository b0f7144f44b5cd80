#include "core/mesh/infer.h"

#include <doctest/doctest.h>

#include "core/fixtures.h"
#include "core/formats/open.h"
#include "core/mesh/torch_offset_bugs.h"
#include "core/rules/saved_model.h"

using namespace shw;
using namespace shw::test;

namespace {

SavedTensor laid(std::string fqn, SpecEntry entry) {
  return {std::move(fqn), entry, [entry](std::int64_t rank) -> std::optional<Offer> {
            auto box = box_of_nested_splits(entry.shape, *entry.mesh, entry.placements, rank);
            return Offer{*box, entry.shape, *box};
          }};
}

SpecEntry entry(const Mesh& mesh, Extents shape, std::vector<Placement> placements) {
  SpecEntry out;
  out.shape = std::move(shape);
  out.mesh = mesh;
  out.placements = std::move(placements);
  return out;
}

std::vector<std::int64_t> sizes(const Mesh& mesh) {
  std::vector<std::int64_t> out;
  for (const MeshAxis& axis : mesh.axes) out.push_back(axis.size);
  return out;
}

}  // namespace

TEST_CASE("FSDP over TP is told from plain FSDP by who wrote what") {
  Mesh mesh{{{"dp", 4}, {"tp", 2}}};
  auto model = save({laid("fc1", entry(mesh, {16, 3}, {strided(0, 2), sharded(0)})),
                     laid("fc2", entry(mesh, {8, 6}, {sharded(0), sharded(1)})),
                     laid("norm", entry(mesh, {8}, {sharded(0), Placement{}}))},
                    8);
  auto guesses = infer_meshes(*model.checkpoint, {}, nullptr);
  REQUIRE_FALSE(guesses.empty());
  CHECK(sizes(guesses[0].mesh) == std::vector<std::int64_t>{4, 2});
  CHECK(guesses[0].explained == 3);
  CHECK(guesses[0].confidence > 0.9);
  CHECK_FALSE(guesses[0].is_sure());
  for (const TensorPlacements& item : guesses[0].placements) {
    if (model.checkpoint->fqn(item.tensor) == "fc1")
      CHECK(to_text(item.placements) == "StridedShard(0, sf=2), Shard(0)");
  }

  Mesh flat{{{"dp", 8}}};
  auto plain = save({laid("fc1", entry(flat, {16, 3}, {sharded(0)}))}, 8);
  auto one = infer_meshes(*plain.checkpoint, {}, nullptr);
  REQUIRE_FALSE(one.empty());
  CHECK(sizes(one[0].mesh) == std::vector<std::int64_t>{8});
}

TEST_CASE("meshes of the spec come before guesses, and what a person says before all") {
  Mesh mesh{{{"dp", 2}, {"tp", 2}}};
  auto model = save({laid("fc1", entry(mesh, {8, 3}, {strided(0, 2), sharded(0)})),
                     laid("fc2", entry(mesh, {8, 6}, {sharded(0), sharded(1)}))},
                    4);
  auto guesses = infer_meshes(*model.checkpoint, named_meshes(model.spec.get()), nullptr);
  REQUIRE_FALSE(guesses.empty());
  CHECK(guesses[0].source == "spec");
  CHECK(guesses[0].mesh == mesh);
  CHECK(guesses[0].is_sure());
  Mesh other{{{"dp", 2}}};
  auto said = infer_meshes(*model.checkpoint, named_meshes(model.spec.get()), &other);
  CHECK(said[0].source == "given");
  CHECK(said[0].mesh == other);
  CHECK(said[0].explained == 0);
  CHECK(said[0].against.back() == "rank 3 wrote, the mesh has 2 ranks");
}

TEST_CASE("flat buckets are explained by no mesh, and the guess says so") {
  Mesh flat{{{"dp", 4}}};
  SavedTensor bucket = laid("output", entry(flat, {16, 4}, {sharded(0)}));
  bucket.offer = [](std::int64_t rank) -> std::optional<Offer> {
    const std::int64_t ends[] = {0, 2, 8, 14, 16};
    Box box{{ends[rank], 0}, {ends[rank + 1] - ends[rank], 4}};
    return Offer{box, {16, 4}, box};
  };
  auto model = save({bucket, laid("even", entry(flat, {8, 2}, {sharded(0)}))}, 4);
  auto guesses = infer_meshes(*model.checkpoint, named_meshes(model.spec.get()), nullptr);
  REQUIRE_FALSE(guesses.empty());
  CHECK(guesses[0].explained == 1);
  CHECK(guesses[0].looked_at == 2);
  CHECK_FALSE(guesses[0].is_sure());
  CHECK(guesses[0].against.size() == 1);
}

TEST_CASE("the mesh of checkpoints that torch wrote is inferred without a spec") {
  for (const std::string& folder : fixture_cases("healthy_fsdp_tp_strided")) {
    auto checkpoint = open_checkpoint(folder + "/ckpt");
    REQUIRE(checkpoint.has_value());
    auto guesses = infer_meshes(**checkpoint, {}, nullptr);
    REQUIRE_FALSE(guesses.empty());
    CHECK(sizes(guesses[0].mesh) == std::vector<std::int64_t>{4, 2});
    CHECK(guesses[0].explained == guesses[0].looked_at);
  }
  for (const std::string& folder : fixture_cases("healthy_moe_ep")) {
    auto checkpoint = open_checkpoint(folder + "/ckpt");
    REQUIRE(checkpoint.has_value());
    auto guesses = infer_meshes(**checkpoint, {}, nullptr);
    REQUIRE_FALSE(guesses.empty());
    CHECK(sizes(guesses[0].mesh) == std::vector<std::int64_t>{2, 2});
  }
}

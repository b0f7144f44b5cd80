// Averaged copies of sharded weights that were saved as plain tensors, next to the weights.
#include <doctest/doctest.h>

#include <tuple>

#include "core/rules/make_contents.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

namespace {

constexpr const char* kWeights[] = {"a.weight", "b.weight", "norm.weight"};

// The model's weights in rows of two ranks.
MadeModel sharded_model() {
  MadeModel model;
  for (const std::string name : kWeights) {
    const bool is_norm = name == "norm.weight";
    const Extents shape = is_norm ? Extents{4} : Extents{4, 3};
    const Extents half = is_norm ? Extents{2} : Extents{2, 3}, none(shape.size(), 0);
    Extents second = none;
    second[0] = 2;
    model.add("model." + name, Dtype::kFloat32, shape, distinct(is_norm ? 4 : 12));
    model.tensors.back().tiles = {{none, half, 0}, {second, half, 1}};
  }
  return model;
}

// Adds copies under `group` of that many rows, each in one tile of rank 1.
void add_copies(MadeModel& model, const std::string& group, std::int64_t rows, std::int64_t wide) {
  for (const std::string name : kWeights) {
    const bool is_norm = name == "norm.weight";
    const Extents shape = is_norm ? Extents{rows} : Extents{rows, wide};
    const auto count = static_cast<std::size_t>(is_norm ? rows : rows * wide);
    model.add(group + "." + name, Dtype::kFloat32, shape, distinct(count, 0.5));
    model.tensors.back().tiles = {{Extents(shape.size(), 0), shape, 1}};
  }
}

std::vector<Finding> local_copies(const MadeModel& model) {
  TemporaryFolder folder;
  return found_in(*made(folder / "ckpt", model), "local-saved-as-global", Depth::kMetadata);
}

}  // namespace

TEST_CASE("local copies: an average of one rank's shards is reported with its weight") {
  for (const char* group : {"ema", "shadow_params", "model_ema"}) {
    CAPTURE(group);
    MadeModel model = sharded_model();
    add_copies(model, group, 2, 3);
    const auto found = local_copies(model);
    REQUIRE(found.size() == 1);
    CHECK(found[0].severity == Severity::kError);
    CHECK(found[0].subjects.size() == 3);
    CHECK(evidence<Extents>(found[0], "saved_shape") == Extents{2, 3});
    CHECK(evidence<Extents>(found[0], "shape_of_the_parameter") == Extents{4, 3});
    CHECK(evidence<std::int64_t>(found[0], "written_by_rank") == 1);
  }
}

TEST_CASE("local copies: whole averages, narrower teachers and other parts are fine") {
  for (const auto& [group, rows, wide] :
       {std::tuple("ema", 4, 3), std::tuple("teacher", 2, 2), std::tuple("draft", 2, 3)}) {
    CAPTURE(group);
    MadeModel model = sharded_model();
    add_copies(model, group, rows, wide);
    CHECK(local_copies(model).empty());
  }
  // One copy that is whole shows that the others are not shards.
  MadeModel mixed = sharded_model();
  add_copies(mixed, "ema", 2, 3);
  mixed.add("model.c.weight", Dtype::kFloat32, {4, 3}, distinct(12));
  mixed.tensors.back().tiles = {{{0, 0}, {2, 3}, 0}, {{2, 0}, {2, 3}, 1}};
  mixed.add("ema.c.weight", Dtype::kFloat32, {4, 3}, distinct(12));
  CHECK(local_copies(mixed).empty());
}

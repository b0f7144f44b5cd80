#include "core/repair/plan/planned_chunks.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "core/model/builder.h"
#include "core/repair/plan/json.h"
#include "core/repair/plan/plan.h"

using namespace shw;

namespace {

bool is_same(const Piece& a, const Piece& b) {
  return a.chunk == b.chunk && a.source == b.source && a.at == b.at &&
         a.permutation == b.permutation;
}

bool is_same(const ExternalPiece& a, const ExternalPiece& b) {
  return a.file == b.file && a.offset == b.offset && a.length == b.length && a.dtype == b.dtype &&
         a.sizes == b.sizes && a.at == b.at;
}

bool is_same(const PlannedChunk& a, const PlannedChunk& b) {
  auto alike = [](const auto& one, const auto& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](const auto& x, const auto& y) { return is_same(x, y); });
  };
  return a.box == b.box && a.item == b.item && a.writer == b.writer && alike(a.pieces, b.pieces) &&
         alike(a.external, b.external);
}

// Chunks as in real plans and impossible ones: boxes with any number of dims, with equal or unequal
// numbers of offsets and sizes.
struct DrawnChunks {
  std::mt19937_64 random;
  std::int64_t number(std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random);
  }
  Extents extents() {
    // Few different values, so that neighbours are often equal.
    Extents drawn(static_cast<std::size_t>(number(9) == 0 ? number(6) : 2));
    for (std::int64_t& one : drawn) one = number(9) == 0 ? -number(1) * (1ll << 62) : number(2);
    return drawn;
  }
  Box box() { return {extents(), extents()}; }
  PlannedChunk chunk() {
    PlannedChunk made;
    made.box = box();
    made.writer = static_cast<std::uint32_t>(number(3));
    if (number(2) == 0) made.item = ChunkId{static_cast<std::uint32_t>(number(7))};
    for (std::int64_t i = number(2) == 0 ? number(3) : 0; i > 0; --i)
      made.pieces.push_back({ChunkId{static_cast<std::uint32_t>(number(7))}, box(), extents(),
                             number(3) == 0 ? extents() : Extents()});
    for (std::int64_t i = number(9) == 0 ? number(2) : 0; i > 0; --i)
      made.external.push_back(
          {"side \"" + std::to_string(i), 7, 8, Dtype::kBfloat16, extents(), extents()});
    return made;
  }
};

}  // namespace

TEST_CASE("what is put into planned chunks comes out as from a vector") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    DrawnChunks drawn{std::mt19937_64(seed)};
    std::vector<PlannedChunk> wanted;
    PlannedChunks chunks;
    for (std::int64_t count = drawn.number(40); count > 0; --count) {
      wanted.push_back(drawn.chunk());
      chunks.push_back(wanted.back());
    }
    if (seed % 2 == 0) chunks.shrink_to_fit();
    const PlannedChunks copy = chunks;
    chunks.clear();
    CHECK(chunks.empty());
    REQUIRE(copy.size() == wanted.size());
    std::size_t at = 0;
    for (const PlannedChunk& chunk : copy) {
      CHECK(is_same(chunk, wanted[at]));
      CHECK(is_same(copy[at], wanted[at]));
      CHECK(copy.box(at) == wanted[at].box);
      CHECK(copy.item(at) == wanted[at].item);
      ++at;
    }
    CHECK(at == wanted.size());
  }
}

TEST_CASE("the text of a plan in one line is that of its tree") {
  CheckpointBuilder builder;
  builder.add_tensor("w \"\\\xff", Dtype::kFloat32, Extents{8, 8});
  for (int i = 0; i < 8; ++i) builder.add_chunk(Extents{i, 0}, Extents{1, 8});
  builder.add_tensor("\"tensors\":[]", Dtype::kFloat32, Extents{8});
  auto checkpoint = builder.finish();
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    DrawnChunks drawn{std::mt19937_64(seed)};
    Plan plan;
    plan.checkpoint = "\"tensors\":[]";
    plan.operations.push_back({OperationKind::kRelabel, "rule", {"w"}, "words"});
    for (std::uint32_t t = 0; t < seed % 3; ++t) {
      PlannedTensor tensor;
      tensor.tensor = TensorId{t};
      tensor.shape = drawn.extents();
      for (std::int64_t count = drawn.number(30); count > 0; --count)
        tensor.chunks.push_back(drawn.chunk());
      if (drawn.number(1) == 0) tensor.lost.push_back(drawn.box());
      tensor.lost_elements = drawn.number(2);
      plan.tensors.push_back(std::move(tensor));
    }
    using Json = nlohmann::ordered_json;
    const Json tree = Json::parse(plan_to_json(*checkpoint, plan));
    CHECK(plan_text(*checkpoint, plan, -1) == tree.dump());
    CHECK(tree["hash"] == plan_hash(*checkpoint, plan));
    CHECK(tree.contains("target") != plan.tensors.empty());
    if (plan.tensors.empty()) continue;
    REQUIRE(tree["target"]["tensors"].size() == plan.tensors.size());
    for (std::size_t t = 0; t < plan.tensors.size(); ++t)
      CHECK(tree["target"]["tensors"][t]["chunks"].size() == plan.tensors[t].chunks.size());
  }
}

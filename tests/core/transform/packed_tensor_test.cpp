#include "core/transform/packed_tensor.h"

#include <doctest/doctest.h>

#include <limits>

using namespace shw;

namespace {

void check_alike(const Scaling& a, const Scaling& b) {
  CHECK(a.factors == b.factors);
  CHECK(a.first == b.first);
  CHECK(a.block == b.block);
  CHECK(a.order == b.order);
}

void check_alike(const Part& a, const Part& b) {
  CHECK(a.box == b.box);
  CHECK(a.first == b.first);
  CHECK(a.order == b.order);
  CHECK(a.saved == b.saved);
  CHECK(a.casts == b.casts);
  REQUIRE(a.from.index() == b.from.index());
  if (const auto* chunk = std::get_if<FromChunk>(&a.from)) {
    CHECK(chunk->input == std::get<FromChunk>(b.from).input);
    CHECK(chunk->chunk == std::get<FromChunk>(b.from).chunk);
  } else if (const FromFile* file = a.file()) {
    const FromFile& other = *b.file();
    CHECK(file->file == other.file);
    CHECK(file->offset == other.offset);
    CHECK(file->length == other.length);
    CHECK(file->sizes == other.sizes);
  } else {
    CHECK(std::get<FromConstant>(a.from).bits == std::get<FromConstant>(b.from).bits);
  }
  REQUIRE(a.scaling.has_value() == b.scaling.has_value());
  if (a.scaling) check_alike(*a.scaling, *b.scaling);
}

TargetTensor tensor_of_every_kind() {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  TargetTensor tensor;
  tensor.fqn = "a";
  tensor.dtype = Dtype::kBfloat16;
  tensor.shape = {kFar, 2, 1, 1, 1, 7};
  tensor.tiles = {{{{0, 1}, {kFar, 1}}, 4'000'000'000u}, {{{}, {}}, 0}};
  tensor.parts.push_back(
      {{{0, 0, 63, 64, 127, 128}, {1, 1, 1, 1, 1, 1}}, FromChunk{3, ChunkId{4'294'967'294u}}});
  Part& first = tensor.parts.back();
  first.first = {0, 0, 8191, 8192};
  first.order = {3, -1, 2, 1, 0, -1};
  first.saved = Dtype::kFloat8E4m3fn;
  first.casts = {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16};
  first.scaling = Scaling{2, {0, 5}, {128, 128}, {-1, 0}};
  tensor.parts.push_back({{{}, {}}, FromFile{std::string("odd\0name\xff", 9), 1, ~0ull, {4, 4}}});
  tensor.parts.push_back({{{5}, {0}}, FromConstant{{~0ull, 0x8000000000000000ull}}});
  tensor.loss = {{{{0}, {1}}}, "zero", "", ""};
  tensor.is_moved = true;
  return tensor;
}

}  // namespace

TEST_CASE("a packed tensor is unpacked as it was") {
  const TargetTensor before = tensor_of_every_kind();
  const PackedTensor packed(before);
  CHECK(packed.loss().boxes == before.loss.boxes);
  for (int again = 0; again < 2; ++again) {
    const TargetTensor after = packed.unpacked();
    CHECK(after.fqn == before.fqn);
    CHECK(after.dtype == before.dtype);
    CHECK(after.shape == before.shape);
    CHECK(after.is_moved);
    CHECK(after.loss.fill == "zero");
    REQUIRE(after.tiles.size() == before.tiles.size());
    for (std::size_t i = 0; i < after.tiles.size(); ++i) {
      CHECK(after.tiles[i].box == before.tiles[i].box);
      CHECK(after.tiles[i].writer == before.tiles[i].writer);
    }
    REQUIRE(after.parts.size() == before.parts.size());
    for (std::size_t i = 0; i < after.parts.size(); ++i)
      check_alike(after.parts[i], before.parts[i]);
  }
}

TEST_CASE("a packed tensor keeps which items its tiles are") {
  TargetTensor before;
  before.shape = {4, 2};
  before.tiles = {{{{0, 0}, {2, 2}}, 3, ChunkId{4'294'967'293u}}, {{{2, 0}, {2, 2}}, 1}};
  before.tiles[1].more = std::make_shared<const RareOutputTileFields>(
      RareOutputTileFields{ItemPlace{FileId{7}, 64, 128}, {FileId{1}, FileId{2}}});
  const TargetTensor after = PackedTensor(before).unpacked();
  REQUIRE(after.tiles.size() == 2);
  CHECK(after.tiles[0].kept == before.tiles[0].kept);
  CHECK(after.tiles[0].more == nullptr);
  CHECK(after.tiles[1].box == before.tiles[1].box);
  CHECK(after.tiles[1].writer == 1);
  CHECK_FALSE(after.tiles[1].kept);
  REQUIRE(after.tiles[1].more != nullptr);
  CHECK(after.tiles[1].more->place->offset == 64);
  CHECK(after.tiles[1].more->made_of == std::vector<FileId>{FileId{1}, FileId{2}});
}

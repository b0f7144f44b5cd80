// Comparisons of checkpoints of which something cannot be read.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "core/compare/compared.h"
#include "core/compare/laid.h"
#include "core/formats/open.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("copies of a tile that ranks wrote and that differ leave the tensor open") {
  TiledTensor all = floats_named("w", {1, 2, 3, 4});
  for (float last : {4.0f, 5.0f}) {
    CheckpointBuilder builder;
    builder.set_format(test::kLaidFormat);
    builder.set_directory(memory_directory("c", {{"data", bytes_of({1, 2, 3, 4, 1, 2, 3, last})}}));
    builder.add_tensor("w", Dtype::kFloat32, Extents{4});
    ChunkId chunk = builder.add_chunk(Extents{0}, Extents{4}, {builder.file("data"), 0, 16});
    builder.add_replica({chunk, builder.add_storage({builder.file("data"), 16, 16}), 1});
    auto told = compare_checkpoints(*laid({all}, "a"), *builder.finish(), kData, nullptr);
    CHECK(told->verdict == (last == 4 ? EqualityVerdict::kSame : EqualityVerdict::kUndecided));
  }
}

TEST_CASE("what cannot be read is undecided with its file, next to what can") {
  TiledTensor w = floats_named("w", {1, 2, 3, 4}), v = floats_named("v", {5, 6});
  w.tiles = {{Box{{0}, {2}}}, {Box{{2}, {2}}}};
  auto whole_one = laid({v, w}, "a"), cut = laid({v, w}, "b", 4);
  for (bool data : {false, true}) {
    CAPTURE(data);
    auto told = compare_checkpoints(*whole_one, *cut, {.data = data}, nullptr);
    CHECK(told->verdict == EqualityVerdict::kUndecided);
    const TensorDifference& tensor = only_one(*told);
    CHECK(tensor.kind == DifferenceKind::kUndecided);
    REQUIRE(tensor.error.has_value());
    CHECK(tensor.error->place.file == "data");
    CHECK(tensor.error_in == 'b');
    if (data) CHECK(tensor.values->unread == 2);
    if (data) CHECK(tensor.values->compared == 2);
  }
  // Tensors damaged alike on both sides are not the same either.
  auto twice = compare_checkpoints(*laid({v, w}, "a", 4), *cut, kData, nullptr);
  CHECK(twice->verdict == EqualityVerdict::kUndecided);
  // A difference in another tensor counts.
  TiledTensor changed = w;
  changed.bytes = bytes_of({1, 0, 3, 4});
  auto beside = compare_checkpoints(*whole_one, *laid({v, changed}, "b", 4), kData, nullptr);
  CHECK(beside->verdict == EqualityVerdict::kDifferent);
  CHECK(only_one(*beside).kind == DifferenceKind::kValues);
  CHECK(only_one(*beside).error.has_value());
}

TEST_CASE("damage that opening met leaves open whether two are the same, and a remark does not") {
  TiledTensor w = floats_named("w", {1, 2, 3, 4});
  auto said = [&](Severity severity) {
    Finding finding;
    finding.rule = "bad-record";
    finding.severity = severity;
    finding.cause = "4 bytes follow the end of the pickle.";
    return laid({w}, "b", 0, {finding});
  };
  auto verdict = [&](Severity severity) {
    auto told = compare_checkpoints(*laid({w}, "a"), *said(severity), kData, nullptr);
    REQUIRE(told.has_value());
    return told->verdict;
  };
  CHECK(verdict(Severity::kInfo) == EqualityVerdict::kSame);
  CHECK(verdict(Severity::kError) == EqualityVerdict::kUndecided);
}

TEST_CASE("tiles that meet in more places than memory holds are open and nothing is the same") {
  TiledTensor rows{"w", Dtype::kUint8, {400, 400}, Bytes(160'000)}, columns = rows;
  for (std::int64_t i = 0; i < 400; ++i) {
    rows.tiles.push_back({Box{{i, 0}, {1, 400}}});
    columns.tiles.push_back({Box{{0, i}, {400, 1}}});
  }
  CheckpointDifference told = compared({rows}, {columns}, {true, 0x10000});
  CHECK(told.verdict == EqualityVerdict::kUndecided);
  CHECK(told.same == 0);
  const TensorDifference& tensor = only_one(told);
  CHECK(tensor.kind == DifferenceKind::kUndecided);
  REQUIRE(tensor.values);
  CHECK(tensor.values->compared == 0);
  CHECK(tensor.values->unread == 160'000);
  REQUIRE(tensor.why.size() == 1);
  CHECK(tensor.why.front().find("--memory") != std::string::npos);
  CHECK(compared({rows}, {columns}).verdict == EqualityVerdict::kSame);
  // Other tensors are still read.
  TiledTensor other = floats_named("v", {1, 2}), changed = floats_named("v", {1, 3});
  CheckpointDifference beside = compared({rows, other}, {columns, changed}, {true, 0x10000});
  CHECK(beside.verdict == EqualityVerdict::kDifferent);
  CHECK(beside.tensors.size() == 2);
}

TEST_CASE("elements that could not be read are counted by the shape and by what has no tile") {
  TiledTensor all = floats_named("w", {1, 2, 3, 4, 5, 6, 7, 8}), holed = all, other_hole = all;
  holed.tiles = {{Box{{0}, {3}}}, {Box{{4}, {4}}}};       // without 3
  other_hole.tiles = {{Box{{0}, {2}}}, {Box{{4}, {4}}}};  // without 2 and 3
  auto told = compare_checkpoints(*laid({holed}, "a"), *laid({other_hole}, "b", 8), kData, nullptr);
  REQUIRE(told);
  const TensorDifference& tensor = only_one(*told);
  REQUIRE(tensor.values);
  CHECK(tensor.values->compared == 2);
  CHECK(tensor.values->unread == 4);  // the tile of B whose end is cut off
  CHECK(tensor.kind == DifferenceKind::kIncomplete);
}

TEST_CASE("tiles outside of the shape are said and nothing is read by them") {
  TiledTensor all = floats_named("w", {1, 2, 3, 4});
  CheckpointBuilder builder;
  builder.set_format(test::kLaidFormat);
  builder.set_directory(memory_directory("c", {{"data", bytes_of({1, 2, 3, 4})}}));
  builder.add_tensor("w", Dtype::kFloat32, Extents{4});
  builder.add_chunk(Extents{0}, Extents{4}, {builder.file("data"), 0, 16});
  builder.add_chunk(Extents{std::int64_t{1} << 62}, Extents{std::int64_t{1} << 62},
                    {builder.file("data"), 0, 16});
  builder.add_chunk(Extents{-2}, Extents{4}, {builder.file("data"), 0, 16});
  auto told = compare_checkpoints(*laid({all}, "a"), *builder.finish(), kData, nullptr);
  CHECK(told->verdict == EqualityVerdict::kUndecided);
  CHECK(only_one(*told).error.has_value());
}

#include "core/mesh/torch_offset_bugs.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

using namespace shw;

namespace {

Mesh mesh_of(std::int64_t dp, std::int64_t tp) {
  return Mesh{{{"dp", dp}, {"tp", tp}}};
}
std::vector<Placement> strided(std::int64_t factor) {
  return {{Placement::Kind::kStridedShard, 0, factor}, {Placement::Kind::kShard, 0, 1}};
}

// Extents up to 64 at which left-to-right offsets (g3) are not the rows that training holds.
std::set<std::int64_t> mismatches(std::int64_t dp, std::int64_t tp) {
  std::set<std::int64_t> out;
  for (std::int64_t n = 1; n <= 64; ++n) {
    for (std::int64_t rank = 0; rank < dp * tp; ++rank) {
      Extents shape{n};
      if (*box_recorded_by_torch(OffsetModel::kFirstRow, shape, mesh_of(dp, tp), strided(tp),
                                 rank) !=
          *box_of_nested_splits(shape, mesh_of(dp, tp), strided(tp), rank))
        out.insert(n);
    }
  }
  return out;
}

}  // namespace

TEST_CASE(
    "left-to-right offsets go wrong exactly where the pieces of a tp rank chunk differently") {
  CHECK(mismatches(2, 2).empty());
  CHECK(mismatches(2, 4).empty());
  CHECK(mismatches(4, 2) == std::set<std::int64_t>{9, 17, 25, 33, 41, 49, 57});
  CHECK(mismatches(4, 4) == std::set<std::int64_t>{19, 22, 34, 35, 38, 50, 51, 54});
  CHECK(mismatches(8, 2) == std::set<std::int64_t>{17, 33, 49});
  CHECK(mismatches(8, 4) == std::set<std::int64_t>{33, 34, 35, 37, 38, 41});
  auto three = mismatches(3, 2);
  for (std::int64_t n : {7, 13, 19, 25}) CHECK(three.contains(n));
}

TEST_CASE("seventeen rows on four by two: the last row is training's (3,1), g3 gives it to (3,0)") {
  Mesh mesh = mesh_of(4, 2);
  Extents shape{17};
  CHECK(box_of_nested_splits(shape, mesh, strided(2), 6)->sizes == Extents{0});
  CHECK(*box_of_nested_splits(shape, mesh, strided(2), 7) == Box{{15}, {2}});
  CHECK(*box_recorded_by_torch(OffsetModel::kFirstRow, shape, mesh, strided(2), 6) ==
        Box{{15}, {1}});
  CHECK(*box_recorded_by_torch(OffsetModel::kFirstRow, shape, mesh, strided(2), 7) ==
        Box{{16}, {1}});
}

TEST_CASE("ten rows on two by two: the first generation records overlaps and a hole") {
  Mesh mesh = mesh_of(2, 2);
  Extents shape{10};
  auto g1 = [&](std::int64_t rank) {
    return *box_recorded_by_torch(OffsetModel::kByIndex, shape, mesh, strided(2), rank);
  };
  CHECK(g1(0) == Box{{0}, {3}});
  CHECK(g1(2) == Box{{3}, {3}});
  CHECK(g1(1) == Box{{4}, {2}});
  CHECK(g1(3) == Box{{6}, {2}});
  CHECK(*box_of_nested_splits(shape, mesh, strided(2), 2) == Box{{3}, {2}});
  CHECK(*box_of_nested_splits(shape, mesh, strided(2), 1) == Box{{5}, {3}});
  CHECK(*box_of_nested_splits(shape, mesh, strided(2), 3) == Box{{8}, {2}});
}

TEST_CASE("the first generation is torch 2.6 as it is, in 60 layouts") {
  std::ifstream file(std::string(SHW_TEST_DATA) + "/mesh/boxes-torch-2.6.json");
  auto cases = nlohmann::json::parse(file);
  CHECK(cases.size() == 60);
  for (const auto& item : cases) {
    Mesh mesh;
    for (const auto& size : item["mesh"]) mesh.axes.push_back({"m", size.get<std::int64_t>()});
    std::vector<Placement> list;
    for (const auto& text : item["placements"])
      list.push_back(parse_placement(text.get<std::string>()).value());
    auto shape = item["shape"].get<Extents>();
    for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
      auto expected = item["boxes"][static_cast<std::size_t>(rank)].get<std::vector<Extents>>();
      auto box = box_recorded_by_torch(OffsetModel::kByIndex, shape, mesh, list, rank);
      REQUIRE(box);
      CHECK(box->offsets == expected[0]);
      CHECK(box->sizes == expected[1]);
    }
  }
}

TEST_CASE("where rows are a box, the third generation records it") {
  std::ifstream file(std::string(SHW_TEST_DATA) + "/mesh/boxes.json");
  for (const auto& item : nlohmann::json::parse(file)) {
    Mesh mesh;
    for (const auto& size : item["mesh"]) mesh.axes.push_back({"m", size.get<std::int64_t>()});
    std::vector<Placement> list;
    for (const auto& text : item["placements"])
      list.push_back(parse_placement(text.get<std::string>()).value());
    for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
      auto expected = item["boxes"][static_cast<std::size_t>(rank)].get<std::vector<Extents>>();
      auto box = box_recorded_by_torch(OffsetModel::kFirstRow, item["shape"].get<Extents>(), mesh,
                                       list, rank);
      REQUIRE(box);
      CHECK(*box == Box{expected[0], expected[1]});
    }
  }
}

TEST_CASE("an axis that is forgotten takes its part of the split factor with it") {
  MeshLayout one = without_axis(mesh_of(4, 2), strided(2), 1);
  CHECK(to_text(one.mesh) == "dp 4");
  CHECK(to_text(one.placements) == "Shard(0)");
  MeshLayout other = without_axis(mesh_of(4, 2), strided(2), 0);
  CHECK(to_text(other.placements) == "Shard(0)");
  CHECK(to_text(other.mesh) == "tp 2");
}

TEST_CASE("cuts are ordered as they were made, and a factor that fits nothing is refused") {
  CHECK(*execution_order_of_splits(mesh_of(4, 2), strided(2)) == std::vector<std::size_t>{1, 0});
  CHECK(*execution_order_of_splits(mesh_of(4, 2), as_plain_placements(strided(2))) ==
        std::vector<std::size_t>{0, 1});
  CHECK_FALSE(execution_order_of_splits(mesh_of(4, 2), strided(3)));
  std::vector<Placement> alone{{Placement::Kind::kStridedShard, 0, 2}};
  CHECK_FALSE(execution_order_of_splits(mesh_of(4, 2), alone));
}

TEST_CASE(
    "a strided axis waits for as many pieces as its factor says, of one later axis or several") {
  Mesh mesh{{{"edp", 2}, {"ep", 2}, {"etp", 2}}};
  auto cut_by = [](std::int64_t factor) {
    return std::vector<Placement>{{Placement::Kind::kStridedShard, 0, factor},
                                  {Placement::Kind::kShard, 0, 1},
                                  {Placement::Kind::kShard, 0, 1}};
  };
  CHECK(*execution_order_of_splits(mesh, cut_by(4)) == std::vector<std::size_t>{1, 2, 0});
  CHECK(*execution_order_of_splits(mesh, cut_by(2)) == std::vector<std::size_t>{1, 0, 2});
  CHECK_FALSE(execution_order_of_splits(mesh, cut_by(3)));
  CHECK_FALSE(execution_order_of_splits(mesh, cut_by(8)));
  // Offsets that torch 2.15 gives the eight ranks for 16 rows.
  const std::int64_t after_both[] = {0, 4, 8, 12, 2, 6, 10, 14};
  const std::int64_t between[] = {0, 2, 8, 10, 4, 6, 12, 14};
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    CHECK(box_of_nested_splits(Extents{16}, mesh, cut_by(4), rank)->offsets[0] == after_both[rank]);
    CHECK(box_of_nested_splits(Extents{16}, mesh, cut_by(2), rank)->offsets[0] == between[rank]);
  }
}

TEST_CASE("the factor of an axis of one rank says nothing") {
  const Mesh mesh = parse_mesh("dp=1,cp=2,tp=2").value();
  auto placed = [](std::int64_t first) {
    return std::vector<Placement>{{Placement::Kind::kStridedShard, 0, first},
                                  {Placement::Kind::kStridedShard, 0, 2},
                                  {Placement::Kind::kShard, 0, 1}};
  };
  const Extents shape{8};
  for (std::int64_t rank = 0; rank < 4; ++rank)
    CHECK(*box_of_nested_splits(shape, mesh, placed(2), rank) ==
          *box_of_nested_splits(shape, mesh, placed(4), rank));
  CHECK_FALSE(
      box_of_nested_splits(shape, parse_mesh("dp=2,cp=2,tp=2").value(), placed(2), 0).has_value());
}

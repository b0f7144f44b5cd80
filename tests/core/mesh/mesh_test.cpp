#include "core/mesh/mesh.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace shw;

namespace {

std::vector<Placement> placements(std::initializer_list<std::string_view> texts) {
  std::vector<Placement> out;
  for (std::string_view text : texts) out.push_back(parse_placement(text).value());
  return out;
}

// "2@0": size at offset, of every rank in order.
std::string layout(std::int64_t extent, const Mesh& mesh, const std::vector<Placement>& list) {
  std::string text;
  for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
    auto box = local_box(Extents{extent}, mesh, list, rank);
    if (!text.empty()) text += ' ';
    text += box ? std::to_string(box->sizes[0]) + "@" + std::to_string(box->offsets[0]) : "-";
  }
  return text;
}

// The slow way: a list of rows, cut as torch cuts it.
std::vector<std::int64_t> part(const std::vector<std::int64_t>& rows, std::int64_t parts,
                               std::int64_t index) {
  auto n = static_cast<std::int64_t>(rows.size());
  std::int64_t step = (n + parts - 1) / parts;
  std::vector<std::int64_t> out;
  for (std::int64_t i = index * step; i < std::min(n, (index + 1) * step); ++i)
    out.push_back(rows[static_cast<std::size_t>(i)]);
  return out;
}

std::vector<std::int64_t> rows_of(std::int64_t extent, std::int64_t dim, const Mesh& mesh,
                                  const std::vector<Placement>& list, std::int64_t rank) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < extent; ++i) rows.push_back(i);
  auto coordinates = mesh.coordinates(rank);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].kind == Placement::Kind::kReplicate || list[i].dim != dim) continue;
    std::vector<std::int64_t> next;
    std::int64_t pieces = list[i].kind == Placement::Kind::kStridedShard ? list[i].split_factor : 1;
    for (std::int64_t p = 0; p < pieces; ++p) {
      auto mine = part(part(rows, pieces, p), mesh.axes[i].size, coordinates[i]);
      next.insert(next.end(), mine.begin(), mine.end());
    }
    rows = next;
  }
  return rows;
}

void check_case(const nlohmann::json& item) {
  Mesh mesh;
  for (const auto& size : item["mesh"])
    mesh.axes.push_back({"m" + std::to_string(mesh.axes.size()), size.get<std::int64_t>()});
  std::vector<Placement> list;
  for (const auto& text : item["placements"])
    list.push_back(parse_placement(text.get<std::string>()).value());
  auto shape = item["shape"].get<Extents>();
  bool every_rank_is_a_box = true;
  for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
    auto expected = item["boxes"][static_cast<std::size_t>(rank)].get<std::vector<Extents>>();
    auto box = local_box(shape, mesh, list, rank);
    bool contiguous = true;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      auto rows = rows_of(shape[d], static_cast<std::int64_t>(d), mesh, list, rank);
      CHECK(static_cast<std::int64_t>(rows.size()) == expected[1][d]);
      if (!rows.empty() && rows.back() - rows.front() + 1 != expected[1][d]) contiguous = false;
    }
    every_rank_is_a_box = every_rank_is_a_box && contiguous;
    REQUIRE(box.has_value() == contiguous);
    if (!contiguous) {
      CHECK(box.error().kind == ErrorKind::kUnsupported);
      continue;
    }
    CHECK(box->offsets == expected[0]);
    CHECK(box->sizes == expected[1]);
  }
  CHECK(item["contiguous"].get<bool>() == every_rank_is_a_box);
}

}  // namespace

TEST_CASE("ranks are row-major over the mesh, there and back") {
  Mesh mesh = parse_mesh("pp=2,edp=3,ep=4").value();
  CHECK(mesh.size() == 24);
  CHECK(mesh.coordinates(17) == std::vector<std::int64_t>{1, 1, 1});
  for (std::int64_t rank = 0; rank < mesh.size(); ++rank)
    CHECK(mesh.rank(mesh.coordinates(rank)) == rank);
}

TEST_CASE("a dimension is cut as torch.chunk cuts it, with empty parts at its end") {
  auto sizes = [](std::int64_t extent, std::int64_t parts) {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < parts; ++i) out.push_back(chunk_of(extent, parts, i).size);
    return out;
  };
  CHECK(sizes(5, 4) == std::vector<std::int64_t>{2, 2, 1, 0});
  CHECK(sizes(10, 4) == std::vector<std::int64_t>{3, 3, 3, 1});
  CHECK(sizes(2, 4) == std::vector<std::int64_t>{1, 1, 0, 0});
  CHECK(sizes(9, 8) == std::vector<std::int64_t>{2, 2, 2, 2, 1, 0, 0, 0});
  CHECK(chunk_of(6, 4, 3).offset == 6);
  CHECK(chunk_of(std::int64_t{1} << 62, 3, 2).size == (std::int64_t{1} << 62) / 3 - 1);
  CHECK(chunk_of(std::int64_t{1} << 62, std::int64_t{1} << 40, (std::int64_t{1} << 40) - 1).size ==
        std::int64_t{1} << 22);
}

TEST_CASE("the tables of torch's nested and strided layouts come out") {
  Mesh mesh = parse_mesh("dp=4,tp=2").value();
  auto plain = placements({"S(0)", "S(0)"});
  auto strided = placements({"SS(0,2)", "S(0)"});
  CHECK(layout(11, mesh, plain) == "2@0 1@2 2@3 1@5 2@6 1@8 1@9 1@10");
  CHECK(layout(16, mesh, strided) == "2@0 2@8 2@2 2@10 2@4 2@12 2@6 2@14");
  CHECK(layout(11, mesh, strided) == "2@0 2@6 2@2 2@8 2@4 1@10 0@11 0@11");
  CHECK(layout(3, mesh, strided) == "1@0 1@2 1@1 0@3 0@3 0@3 0@3 0@3");
}

TEST_CASE("rows that are not a box are refused by name") {
  Mesh mesh = parse_mesh("ep=2").value();
  auto box = local_box(Extents{8}, mesh, placements({"SS(0,2)"}), 1);
  REQUIRE_FALSE(box);
  CHECK(box.error().kind == ErrorKind::kUnsupported);
  CHECK(box.error().message.find("2 pieces") != std::string::npos);
  CHECK_FALSE(local_box(Extents{8}, mesh, placements({"S(1)"}), 0));
  CHECK_FALSE(local_box(Extents{8}, mesh, placements({"S(0)"}), 2));
  CHECK(local_box(Extents{4, 8}, mesh, placements({"S(-1)"}), 1)->offsets == Extents{0, 4});
}

TEST_CASE("every spelling of a placement is read, and nothing else") {
  CHECK(parse_placement("Replicate()") == Placement{});
  CHECK(parse_placement("Shard(dim=-1)") == Placement{Placement::Kind::kShard, -1, 1});
  Placement strided{Placement::Kind::kStridedShard, 0, 2};
  for (std::string_view text :
       {"StridedShard(0,sf=2)", "StridedShard(0, 2)", "_S(0, 2)", "SS(0,2)",
        "_StridedShard(dim=0, sf=2)", "_StridedShard(dim=0, split_factor=2)"})
    CHECK(parse_placement(text) == strided);
  CHECK(parse_placement("Partial(sum)")->kind == Placement::Kind::kPartial);
  for (std::string_view text : {"", "Shard", "Shard()", "Shard(0", "Shard(0,1)", "SS(0)", "SS(0,0)",
                                "Shard(x)", "Replicate(1)", "Shard(dim=)", "Mirror(0)"})
    CHECK_FALSE(parse_placement(text).has_value());
  for (const Placement& placement : placements({"R", "S(2)", "SS(1,4)"}))
    CHECK(parse_placement(to_text(placement)) == placement);
}

TEST_CASE("a mesh is read from what a person types, and a wrong one is refused with the reason") {
  CHECK(to_text(parse_mesh("dp=4,tp=2").value()) == "dp 4 x tp 2");
  CHECK(parse_mesh(" dp : 4 , tp:2 ").value() == parse_mesh("dp=4,tp=2").value());
  for (std::string_view text :
       {"", "dp", "dp=", "dp=0", "dp=-2", "=3", "dp=2,dp=2", "dp=2,", "a=65536,b=65536"}) {
    auto mesh = parse_mesh(text);
    REQUIRE_FALSE(mesh);
    CHECK(mesh.error().kind == ErrorKind::kUsage);
  }
  CHECK(parse_mesh("dp=1024,tp=1024").has_value());
  auto typing_error = parse_mesh("dp=1024,tp=1025");
  REQUIRE_FALSE(typing_error.has_value());
  CHECK(typing_error.error().message.find("more than 1,048,576 ranks") != std::string::npos);
}

TEST_CASE("boxes of 300 random layouts are those of torch 2.15") {
  std::ifstream file(std::string(SHW_TEST_DATA) + "/mesh/boxes.json");
  auto cases = nlohmann::json::parse(file);
  CHECK(cases.size() == 300);
  for (const auto& item : cases) check_case(item);
}

TEST_CASE("boxes of many more layouts are torch's where a file of them is given") {
  const char* path = std::getenv("SHW_MESH_CASES");
  if (path == nullptr) return;
  std::ifstream file(path);
  auto cases = nlohmann::json::parse(file);
  MESSAGE(cases.size() << " layouts");
  for (const auto& item : cases) check_case(item);
}

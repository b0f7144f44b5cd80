// The overview as a matrix, and the list of files with their ranks.
#include "views/map/layer_matrix.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/panels/file_shares.h"

using namespace shw;

TEST_CASE("matrix: a finding is in the cell of its layer and kind") {
  auto digest = make_digest(make::demo());
  const auto& matrices = digest->overview->matrices;
  for (const LayerMatrix& matrix : matrices) {
    CHECK(matrix.layers.size() > 1);
    CHECK(matrix.cells.size() == matrix.layers.size() * matrix.kinds.size());
    for (std::size_t row = 0; row < matrix.layers.size(); ++row) {
      for (std::size_t kind = 0; kind < matrix.kinds.size(); ++kind) {
        const MatrixCell& cell = matrix.cell(row, kind);
        if (cell.mark > 1) CHECK((*digest->marks)[cell.first] == cell.mark);
      }
    }
  }
}

TEST_CASE("matrix: layers are rows in order, and numbers inside a layer fold into one kind") {
  auto digest = make_digest(make::many_tensors(4000));
  const auto& matrices = digest->overview->matrices;
  REQUIRE_FALSE(matrices.empty());
  const LayerMatrix& matrix = matrices.front();
  CHECK(std::is_sorted(matrix.layers.begin(), matrix.layers.end()));
  std::uint32_t tensors = 0;
  for (const MatrixCell& cell : matrix.cells) tensors += cell.tensors;
  CHECK(tensors == matrix.tensors);
}

TEST_CASE("matrix: a click goes to the tensor of the cell") {
  auto snapshot = make::many_tensors(400);
  snapshot->tensor.reset();
  Driver driver(snapshot, {1440, 1400});  // the matrix is in sight
  driver.frame();
  driver.frame();
  auto commands = driver.click("overview/matrix/0");
  const bool selects = std::any_of(commands.begin(), commands.end(), [](const Command& command) {
    return std::holds_alternative<SelectTensorCommand>(command);
  });
  CHECK(selects);
}

TEST_CASE("files: ranks that lost tiles are named, and as a node where they fill one") {
  auto lost = [](const std::vector<std::uint32_t>& ranks, std::uint32_t ranks_per_node) {
    std::vector<RankShare> shares(64);
    for (std::uint32_t rank : ranks) shares[rank].unreadable_tiles = 1;
    return damaged_ranks_text(shares, ranks_per_node);
  };
  CHECK(lost({}, 0).empty());
  CHECK(lost({7}, 0) == "Rank 7 of 64 lost tiles.");
  CHECK(lost({8, 9, 10, 11, 12, 13, 14, 15}, 0) ==
        "Ranks 8 to 15 of 64 lost tiles: node 1, if a node has 8 ranks.");
  CHECK(lost({8, 9, 10, 11, 12, 13, 14, 15}, 4) ==
        "Ranks 8 to 15 of 64 lost tiles: nodes 2 and 3.");
  CHECK(lost({8, 9, 10, 11, 12, 13, 14, 15}, 16) == "Ranks 8 to 15 of 64 lost tiles.");
  CHECK(lost({1, 2, 3, 9}, 0) == "Ranks 1 to 3 and 9 of 64 lost tiles.");
}

TEST_CASE("files: nodes have the sums of their ranks, the damaged one first") {
  std::vector<RankShare> shares;
  for (std::uint32_t rank = 0; rank < 10; ++rank) shares.push_back({1, 2, rank, rank == 6u});
  CHECK(node_shares(shares, 0).empty());
  CHECK(node_shares(shares, 10).empty());
  const std::vector<FileShare> nodes = node_shares(shares, 4);
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[0].path == "node 1: ranks 4 to 7");
  CHECK(nodes[0].bytes == 4 + 5 + 6 + 7);
  CHECK(nodes[0].unreadable_tiles == 1);
  CHECK(nodes[1].path == "node 0: ranks 0 to 3");
  CHECK(nodes[2].path == "node 2: ranks 8 to 9");
  CHECK(nodes[2].tiles == 4);
}

TEST_CASE("files: the number of ranks per node is typed in the overview, and remembered") {
  auto snapshot = make::damaged();
  snapshot->tensor.reset();
  Driver driver(snapshot, {1440, 1400}, 1);
  driver.frame();
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("overview/node/0"));
  driver.click("overview/ranks-per-node");
  driver.type("2");
  ImGui::GetIO().KeysDown[ImGuiKey_Enter] = true;
  driver.frame();
  ImGui::GetIO().KeysDown[ImGuiKey_Enter] = false;
  driver.frame();
  CHECK(driver.desk.panel_state.settings.ranks_per_node == 2);
  CHECK(driver.marks.items.contains("overview/node/0"));
}

TEST_CASE("files: a missing file comes first with the tiles that it lost") {
  auto digest = make_digest(make::damaged());
  const FileShares& shares = digest->overview->files;
  REQUIRE_FALSE(shares.files.empty());
  CHECK(shares.files.front().path == "__3_0.distcp");
  CHECK(shares.files.front().is_missing);
  CHECK(shares.files.front().unreadable_tiles > 0);
  CHECK_FALSE(damaged_ranks_text(digest->mesh->shares, 0).empty());
}

TEST_CASE("matrix: a norm that differs from its kind's median is out, and zeros are counted") {
  auto snapshot = std::make_shared<Snapshot>(*make::many_tensors(4000));
  auto numbers = std::make_shared<verbs::CheckpointNumbers>();
  numbers->tensors.resize(snapshot->checkpoint->tensor_count(), {true, 100, 0, 0, 25, 4});
  snapshot->numbers = numbers;
  auto digest = make_digest(snapshot);
  const LayerMatrix before = digest->overview->matrices.front();
  const std::uint32_t odd = before.cell(2, 0).first;
  numbers->tensors[odd].squares = 4 * 256;
  digest = make_digest(snapshot);
  const LayerMatrix& matrix = digest->overview->matrices.front();
  CHECK(matrix.has_norms);
  CHECK(matrix.cell(2, 0).change > 0);
  CHECK(matrix.cell(0, 0).change == 0);
  CHECK(matrix.cell(0, 0).zero == 25 * matrix.cell(0, 0).tensors);
}

TEST_CASE("matrix: a cell of which a part was read counts the elements that are not known") {
  auto snapshot = std::make_shared<Snapshot>(*make::many_tensors(4000));
  const Checkpoint& c = *snapshot->checkpoint;
  const std::uint32_t some = make_digest(snapshot)->overview->matrices.front().cell(1, 0).first;
  auto numbers = std::make_shared<verbs::CheckpointNumbers>();
  numbers->tensors.resize(c.tensor_count(), {true, 100, 0, 0, 25, 4});
  numbers->tensors[some].absent = 40;
  snapshot->numbers = numbers;
  const LayerMatrix counted = make_digest(snapshot)->overview->matrices.front();
  CHECK(counted.cell(1, 0).absent == 40);
  CHECK(counted.cell(0, 0).absent == 0);

  // Only tiles were read: all of one tensor, then all but one tile.
  snapshot->numbers = nullptr;
  const auto with_tiles = [&](bool all) {
    auto values = std::make_shared<verbs::TileValues>(verbs::unexamined_tiles(c, TensorId{some}));
    for (std::size_t t = 0; t < values->tiles.size(); ++t) {
      if (t == 0 && !all) continue;
      values->tiles[t].state = verbs::TileNumbers::State::kLooked;
      values->tiles[t].elements = static_cast<std::uint64_t>(
          volume(c.sizes(c.chunks(TensorId{some})[static_cast<std::uint32_t>(t)])).value());
    }
    auto s = std::make_shared<Snapshot>(*snapshot);
    s->tile_values = std::make_shared<const TileValuesOf>(TileValuesOf{{TensorId{some}, values}});
    return make_digest(s)->overview->matrices.front().cell(1, 0);
  };
  const MatrixCell all = with_tiles(true), most = with_tiles(false);
  CHECK(all.is_read);
  CHECK((all.absent == 0) == (all.tensors == 1));
  CHECK(most.absent > all.absent);
}

TEST_CASE("matrix: a cell is redder the more of its elements differ, whatever its dtype") {
  auto snapshot = std::make_shared<Snapshot>(*make::many_tensors(4000));
  const LayerMatrix plain = make_digest(snapshot)->overview->matrices.front();
  auto both = std::make_shared<verbs::ComparedCheckpoints>();
  both->a = both->b = snapshot->checkpoint;
  const auto differs = [&](std::size_t row, std::uint64_t elements, std::optional<double> cosine) {
    TensorDifference one;
    one.fqn = snapshot->checkpoint->fqn(TensorId{plain.cell(row, 0).first});
    one.kind = DifferenceKind::kValues;
    one.values = ValueDifference{};
    one.values->compared = 1000;
    one.values->elements.differing = elements;
    one.values->cosine = cosine;
    both->difference.tensors.push_back(one);
  };
  REQUIRE(plain.layers.size() > 3);
  differs(0, 1, 1);               // one element, by an ulp
  differs(1, 1000, 1);            // scaled
  differs(2, 100, std::nullopt);  // integers
  differs(3, 0, std::nullopt);    // only elements that were not compared
  snapshot->compared = both;
  const LayerMatrix matrix = make_digest(snapshot)->overview->matrices.front();
  const auto tint = [&](std::size_t row) {
    return difference_tint(matrix.cell(row, 0), matrix.most_differing);
  };
  CHECK(matrix.most_differing == 1);
  CHECK(tint(0) == kPalestTint);
  CHECK(tint(1) == 1);
  CHECK(tint(2) == doctest::Approx(2.0 / 3));
  CHECK(tint(3) == kPalestTint);
}

TEST_CASE("matrix: of several differences in a cell the worst is shown, and a click goes to it") {
  auto snapshot = std::make_shared<Snapshot>(*make::many_tensors(4000));
  const LayerMatrix plain = make_digest(snapshot)->overview->matrices.front();
  // The first moments of the experts of layer 0 are one cell; every fourth tensor is one of them.
  std::size_t kind = 0;
  while (kind < plain.kinds.size() && plain.cell(0, kind).first != 0) ++kind;
  REQUIRE(kind < plain.kinds.size());
  REQUIRE(plain.cell(0, kind).tensors == 8);
  auto both = std::make_shared<verbs::ComparedCheckpoints>();
  both->a = both->b = snapshot->checkpoint;
  const auto differs = [&](std::uint32_t tensor, DifferenceKind what) {
    TensorDifference one;
    one.fqn = snapshot->checkpoint->fqn(TensorId{tensor});
    one.kind = what;
    both->difference.tensors.push_back(one);
  };
  differs(4, DifferenceKind::kRenamed);
  differs(8, DifferenceKind::kMissing);
  differs(12, DifferenceKind::kValues);
  snapshot->compared = both;
  const LayerMatrix matrix = make_digest(snapshot)->overview->matrices.front();
  CHECK(matrix.cell(0, kind).difference == 1 + static_cast<int>(DifferenceKind::kMissing));
  CHECK(matrix.cell(0, kind).most_different == 8);
  CHECK(matrix.cell(0, kind).first == 0);
}

TEST_CASE("overview: a wide window shows the matrix next to the tables, with a number per cell") {
  auto snapshot = std::make_shared<Snapshot>(*make::many_tensors(96));  // of three layers
  snapshot->tensor.reset();                                             // shows the overview
  const auto digest = make_digest(snapshot);
  Driver driver(snapshot, {2560, 1440});
  driver.desk.matrix_by = MatrixBy::kBytes;
  driver.frame();
  driver.frame();
  const auto place_of = [&](std::string_view id) { return driver.marks.items.at(std::string(id)); };
  const ImVec4 matrix = place_of("overview/matrix/0");
  const auto& states = digest->overview->states;
  REQUIRE(states.size() > 1);
  const ImVec4 table = place_of("overview/" + states.front().name);
  CHECK(table.x > matrix.z);
  CHECK(table.y < matrix.w);
  const MatrixCell& cell = digest->overview->matrices.front().cell(0, 0);
  const std::string bytes = human_bytes(static_cast<std::uint64_t>(cell.bytes));
  CHECK(std::ranges::any_of(driver.marks.texts, [&](const auto& mark) {
    return mark.text == bytes && mark.box.x >= matrix.x && mark.box.z <= matrix.z;
  }));
}

TEST_CASE("overview: a table of one row is left out, and the dtype is in the text") {
  auto snapshot = std::make_shared<Snapshot>(*make::healthy());
  snapshot->tensor.reset();
  Driver driver(snapshot, {1280, 720});
  driver.frame();
  driver.frame();
  const auto dtypes = make_digest(snapshot)->overview->dtypes;
  const bool has_table = driver.marks.items.contains("overview/" + dtypes.front().name);
  CHECK(has_table == (dtypes.size() > 1));
}

TEST_CASE("paragraph: a line does not end within a number") {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  auto snapshot = std::make_shared<Snapshot>(*make::demo());
  snapshot->tensor.reset();  // shows the overview
  for (float width = 900; width < 1500; width += 60) {
    CAPTURE(width);
    Driver driver(snapshot, {width, 720});
    driver.frame();
    driver.frame();
    const auto& texts = driver.marks.texts;
    REQUIRE(driver.marks.items.contains("overview/matrix/0"));
    for (std::size_t i = 0; i + 1 < texts.size(); ++i) {
      const std::string &line = texts[i].text, &next = texts[i + 1].text;
      if (line.size() < 2 || next.empty() || !is_digit(line[line.size() - 2])) continue;
      CAPTURE(line);
      CHECK_FALSE((line.back() == '.' && is_digit(next.front())));
    }
  }
}

// The overview as a matrix, and the list of files with their ranks.
#include "views/layer_matrix.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/file_shares.h"

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
  CHECK(damaged_ranks_text({}, 64).empty());
  CHECK(damaged_ranks_text({7}, 64) == "Rank 7 of 64 lost tiles.");
  CHECK(damaged_ranks_text({8, 9, 10, 11, 12, 13, 14, 15}, 64) ==
        "Ranks 8 to 15 of 64 lost tiles: node 1, if a node has 8 ranks.");
  CHECK(damaged_ranks_text({1, 2, 3, 9}, 64) == "Ranks 1 to 3 and 9 of 64 lost tiles.");
}

TEST_CASE("files: a missing file comes first with the tiles that it lost") {
  auto digest = make_digest(make::damaged());
  const FileShares& shares = digest->overview->files;
  REQUIRE_FALSE(shares.files.empty());
  CHECK(shares.files.front().path == "__3_0.distcp");
  CHECK(shares.files.front().is_missing);
  CHECK(shares.files.front().unreadable_tiles > 0);
  CHECK_FALSE(shares.damaged_ranks.empty());
}

TEST_CASE("matrix: a norm that differs from its kind's median stands out, and zeros are counted") {
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

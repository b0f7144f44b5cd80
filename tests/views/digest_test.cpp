#include "views/digest.h"

#include <doctest/doctest.h>

#include "make/snapshots.h"
#include "views/verdict.h"

using namespace shw;

TEST_CASE("the list shows what passes, under the head of its module") {
  auto digest = make_digest(make::demo());
  CHECK(digest->list->size() == 3);
  REQUIRE(digest->list->groups.size() == 1);
  CHECK(digest->list->groups[0].module == "layers.3.moe.experts");
  CHECK(digest->marked == 3);
}

TEST_CASE("a list that scatters its modules shows whole names") {
  auto snapshot = make::many_tensors(4000);
  auto order = std::make_shared<std::vector<std::uint32_t>>();
  for (std::uint32_t i = 0; i < 4000; ++i) order->push_back(i * 1237 % 4000);
  snapshot->order = order;
  CHECK(make_list(*snapshot)->groups.empty());
  snapshot->order = nullptr;
  CHECK(make_list(*snapshot)->groups.size() == 1000);
}

TEST_CASE("the mesh has the spec's names, or the dims that the writers follow") {
  auto named = make_mesh(*make::demo());
  CHECK(named->grid == MeshGrid{2, 32});
  CHECK(named->text == "ep_shard 2 (rows) × ep 32 (columns) · named by the spec");
  auto read = make_mesh(*make::healthy());
  CHECK(read->grid == MeshGrid{2, 32});
  CHECK(read->text == "2 parts of dim 2 (rows) × 32 parts of dim 0 (columns) · read from writers");
}

TEST_CASE("the picture looks at the dims that the finding speaks of") {
  auto digest = make_digest(make::demo_planned());
  const Picture& picture = *digest->picture;
  CHECK(picture.slice.row == 1);
  CHECK(picture.slice.column == 2);
  REQUIRE(picture.after != nullptr);
  CHECK(picture.after->status(0) == TileStatus::kFine);
  CHECK(picture.after->status(33) == TileStatus::kMoved);
  CHECK(picture.expected_cuts[2] == std::vector<std::int64_t>{640});
  CHECK(picture.cut_by[2] == "ep_shard");
}

TEST_CASE("a digest shares what did not change with the one before") {
  auto snapshot = make::demo_planned();
  auto first = make_digest(snapshot);
  auto moved = std::make_shared<Snapshot>(*snapshot);
  moved->chunk = ChunkId{3};
  auto second = make_digest(moved, first.get());
  CHECK(second->list == first->list);
  CHECK(second->picture == first->picture);
  moved = std::make_shared<Snapshot>(*moved);
  moved->tensor = TensorId{0};
  auto third = make_digest(moved, second.get());
  CHECK(third->picture != first->picture);
  CHECK(third->mesh == first->mesh);
}

TEST_CASE("the verdict says in words how it stands and what to do next") {
  struct Row {
    std::shared_ptr<Snapshot> snapshot;
    Tone tone;
    const char* title;
    const char* next;
  } rows[] = {
      {make::demo_planned(), Tone::kBad, "Will not load: 1 cause, 3 tensors", "Review repair"},
      {make::demo_repaired(true), Tone::kOk, "Repaired: 3 tensors mended, proved", "Open repaired"},
      {make::demo_repaired(false), Tone::kUnknown, "Repaired: 3 tensors, not yet proved", "Verify"},
      {make::healthy(), Tone::kOk, "No finding: 1,142 tensors", "Check every byte"},
      {make::cannot_open(), Tone::kBad, "Cannot be opened", ""},
      {std::make_shared<Snapshot>(), Tone::kQuiet, "Nothing is open", ""},
  };
  for (const Row& row : rows) {
    auto digest = make_digest(row.snapshot);
    VerdictText text = verdict_of(*row.snapshot, {}, digest->marked);
    CHECK(text.tone == row.tone);
    CHECK(text.title == row.title);
    CHECK(text.next_label == row.next);
  }
}

#include "views/digest.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/model/builder.h"
#include "make/snapshots.h"
#include "views/verdict.h"

using namespace shw;

TEST_CASE("the list shows what passes, under the head of its module") {
  auto digest = make_digest(make::demo());
  CHECK(digest->list->size() == 3);
  REQUIRE(digest->list->groups.size() == 1);
  CHECK(digest->list->groups[0].module == "layers.3.moe.experts");
  CHECK(digest->about->affected.tensors == 3);
}

TEST_CASE("a module that a sort scatters is brought together again") {
  auto snapshot = make::many_tensors(4000);
  auto order = std::make_shared<std::vector<std::uint32_t>>();
  for (std::uint32_t i = 0; i < 4000; ++i) order->push_back(i * 1237 % 4000);
  snapshot->order = order;
  auto list = make_list(*snapshot);
  CHECK(list->groups.size() == 1000);
  std::vector<std::uint32_t> seen(4000), at(4000);
  for (std::uint32_t row = 0; row < 4000; ++row) ++seen[index_of(list->tensor(row))];
  CHECK(std::count(seen.begin(), seen.end(), 1u) == 4000);
  for (std::uint32_t i = 0; i < 4000; ++i) at[(*order)[i]] = i;
  for (const ListGroup& group : list->groups) {
    for (std::uint32_t row = group.first + 1; row < group.first + group.count; ++row)
      CHECK(at[index_of(list->tensor(row - 1))] < at[index_of(list->tensor(row))]);
  }
  snapshot->order = nullptr;
  CHECK(make_list(*snapshot)->groups.size() == 1000);
}

namespace {

// `layers` layers of three tensors; layer `odd` has one more.
std::shared_ptr<Snapshot> layered(std::uint32_t layers, std::uint32_t odd) {
  CheckpointBuilder builder;
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    std::string before = "model.layers." + std::to_string(layer);
    for (const char* name : {".attn.q.weight", ".attn.k.weight", ".norm.weight"})
      builder.add_tensor(before + name, Dtype::kBfloat16, Extents{8, 8});
    if (layer == odd) builder.add_tensor(before + ".norm.bias", Dtype::kBfloat16, Extents{8});
  }
  builder.add_tensor("model.out.head.weight", Dtype::kBfloat16, Extents{8, 8});
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->checkpoint = builder.finish();
  return snapshot;
}

}  // namespace

TEST_CASE("layers of the same tensors are one row, and the odd one stands out") {
  auto snapshot = layered(20, 2);
  auto digest = make_digest(snapshot);
  const ListModel& list = *digest->list;
  REQUIRE(list.runs.size() == 4);
  CHECK(list.runs[0].title == "layers.0-1");
  CHECK(list.runs[0].tensors_each == 3);
  CHECK_FALSE(list.runs[0].odd);
  CHECK_FALSE(list.runs[2].odd);
  CHECK(list.runs[1].title == "layers.2");
  CHECK(list.runs[1].odd);
  CHECK(list.runs[2].title == "layers.3-19");
  CHECK(list.runs[3].layers == 0);
  ListRows rows;
  rows.update(digest->list, {}, {});
  CHECK(rows.size() == 3 + 2);  // three runs, and the head with its module
  rows.update(digest->list, {}, {"layers.2"});
  CHECK(rows.size() == 3 + 2 + 2 + 4);
  for (std::uint32_t row = 0; row < rows.size(); ++row) {
    ListRow there = rows.at(row);
    if (there.kind == ListRow::Kind::kTensor) CHECK(rows.row_of(list.tensor(there.at)) == row);
  }
}

TEST_CASE("list: a layer whose tensors are in another order, or in two files, is not odd") {
  CheckpointBuilder builder;
  auto add = [&](const std::string& fqn) {
    builder.add_tensor(fqn, Dtype::kFloat32, Extents{4});
    builder.add_chunk(Extents{0}, Extents{4});
  };
  for (std::uint32_t layer = 0; layer < 20; ++layer) {
    std::vector<std::string> names{".attn.q.weight", ".mlp.up.weight", ".norm.weight"};
    if (layer == 2) std::swap(names[0], names[2]);
    for (const std::string& name : names) {
      if (layer == 7 && name == ".norm.weight") add("lm_head.weight");
      add("model.layers." + std::to_string(layer) + name);
    }
  }
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->checkpoint = builder.finish();
  const auto list = make_list(*snapshot);
  CHECK(list->runs.size() > 3);
  for (const ListRun& run : list->runs) CHECK_MESSAGE(!run.odd, run.title);
}

TEST_CASE("layers fold also where a sort has scattered them") {
  auto snapshot = layered(20, 99);
  auto order = std::make_shared<std::vector<std::uint32_t>>();
  for (std::uint32_t part = 0; part < 3; ++part) {
    for (std::uint32_t layer = 0; layer < 20; ++layer) order->push_back(layer * 3 + part);
  }
  snapshot->order = order;
  auto list = make_list(*snapshot);
  REQUIRE(list->runs.size() == 2);
  CHECK(list->runs[0].title == "layers.0-19.attn");
  CHECK(list->runs[1].title == "layers.0-19");
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

TEST_CASE("the verdict says in words how it is and what to do next") {
  struct Row {
    std::shared_ptr<Snapshot> snapshot;
    Tone tone;
    const char* title;
    const char* next;
  } rows[] = {
      {make::demo_planned(), Tone::kBad, "Will not load: 1 cause, 3 tensors", "Review repair"},
      {make::demo_repaired(true), Tone::kBad, "Will not load: 1 cause, 3 tensors", "Open repaired"},
      {make::demo_repaired(false), Tone::kBad, "Will not load: 1 cause, 3 tensors", "Verify"},
      {make::healthy(), Tone::kOk, "No finding: 1,142 tensors", "Check every byte"},
      {make::cannot_open(), Tone::kBad, "Cannot be opened", ""},
      {std::make_shared<Snapshot>(), Tone::kQuiet, "Nothing is open", ""},
  };
  for (const Row& row : rows) {
    auto digest = make_digest(row.snapshot);
    VerdictText text = verdict_of(*row.snapshot, {}, *digest->about);
    CHECK(text.tone == row.tone);
    CHECK(text.title == row.title);
    CHECK(text.next_label == row.next);
  }
}

TEST_CASE("a list that is made next to the one before is the one that is recreated") {
  auto snapshot = layered(20, 2);
  auto before = make_list(*snapshot);
  for (std::uint32_t step : {1u, 2u, 7u}) {
    auto order = std::make_shared<std::vector<std::uint32_t>>();
    for (std::uint32_t t = 0; t < snapshot->checkpoint->tensor_count(); t += step)
      order->push_back(t);
    snapshot->order = order;
    auto beside = make_list(*snapshot, before.get()), anew = make_list(*snapshot);
    CHECK(beside->names == before->names);  // read once
    REQUIRE(beside->groups.size() == anew->groups.size());
    for (std::size_t g = 0; g < anew->groups.size(); ++g) {
      CHECK(beside->groups[g].module == anew->groups[g].module);
      CHECK(beside->groups[g].count == anew->groups[g].count);
    }
    REQUIRE(beside->runs.size() == anew->runs.size());
    for (std::size_t r = 0; r < anew->runs.size(); ++r)
      CHECK(beside->runs[r].title == anew->runs[r].title);
  }
  auto other = layered(3, 1);
  CHECK(make_list(*other, before.get())->names != before->names);
}

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "core/formats/dcp/dcp_formats.h"
#include "core/mesh/mesh.h"
#include "core/repair/lower/lower.h"
#include "core/repair/reference.h"
#include "core/tiles/exact_tiling.h"

using namespace shw;

namespace {

// One tensor whose chunks are recorded as `boxes`; the payloads are given in the same order.
struct Saved {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::map<std::uint32_t, Values> payloads;
};

Saved save(const Extents& shape, const std::vector<Box>& boxes, std::vector<Values> payloads = {}) {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  builder.add_tensor("w", Dtype::kFloat32, shape);
  Saved saved;
  for (std::uint32_t i = 0; i < boxes.size(); ++i) {
    FileId file = builder.file("__" + std::to_string(i) + "_0.distcp");
    builder.add_chunk(boxes[i].offsets, boxes[i].sizes, {file, 0, 100});
    if (i < payloads.size()) saved.payloads[i] = std::move(payloads[i]);
  }
  saved.checkpoint = builder.finish();
  return saved;
}

// torch.chunk, the slow way: ceil(extent / parts) each, the last ones smaller or empty.
Box slice(const Extents& shape, std::size_t dim, std::int64_t parts, std::int64_t index) {
  Box box = whole(shape);
  std::int64_t step = (shape[dim] + parts - 1) / parts;
  box.offsets[dim] = std::min(index * step, shape[dim]);
  box.sizes[dim] = std::max<std::int64_t>(0, std::min(step, shape[dim] - box.offsets[dim]));
  return box;
}

}  // namespace

TEST_CASE("F1.1: tiles recorded along the wrong axis are relabelled, exact values") {
  // Native arange(24) as [2, 4, 3], S = P = 2 (spec/failures.md 2.e).
  std::vector<Box> boxes{{{0, 0, 0}, {1, 3, 2}},
                         {{1, 0, 0}, {1, 3, 2}},
                         {{0, 3, 0}, {1, 3, 2}},
                         {{1, 3, 0}, {1, 3, 2}}};
  Saved saved = save({2, 6, 2}, boxes,
                     {{0, 3, 1, 4, 2, 5},
                      {12, 15, 13, 16, 14, 17},
                      {6, 9, 7, 10, 8, 11},
                      {18, 21, 19, 22, 20, 23}});
  auto planned = lower(*saved.checkpoint, AxisMoved{TensorId{0}, 1, 2, 2, {2, 3, 4}});
  REQUIRE(planned.has_value());
  CHECK(is_pure_relabel(*planned));
  std::vector<Extents> offsets;
  for (const PlannedChunk& chunk : planned->chunks) offsets.push_back(chunk.box.offsets);
  CHECK(offsets == std::vector<Extents>{{0, 0, 0}, {1, 0, 0}, {0, 0, 2}, {1, 0, 2}});
  CHECK(
      run_command(*saved.checkpoint, *planned, saved.payloads) ==
      Values{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, 12, 15, 18, 21, 13, 16, 19, 22, 14, 17, 20, 23});
}

TEST_CASE("F1.2: the gate projection comes back from the broken image") {
  const Values broken{0, 4, 1, 5, 8, 12, 9, 13, 16, 20, 17, 21, 24, 28, 25, 29};
  const Values gate{0, 4, 8, 12, 1, 5, 9, 13, 16, 20, 24, 28, 17, 21, 25, 29};
  const Extents shape{2, 4, 2};
  std::vector<Box> boxes;
  std::vector<Values> payloads;
  for (std::int64_t s = 0; s < 2; ++s) {
    for (std::int64_t e = 0; e < 2; ++e) {
      boxes.push_back({{e, s * 2, 0}, {1, 2, 2}});
      payloads.push_back(cut_out(broken, shape, boxes.back()));
    }
  }
  Saved saved = save(shape, boxes, payloads);
  auto planned = lower(*saved.checkpoint, AxisMoved{TensorId{0}, 1, 2, 2, {2, 2, 4}});
  REQUIRE(planned.has_value());
  CHECK(is_pure_relabel(*planned));
  CHECK(run_command(*saved.checkpoint, *planned, saved.payloads) == gate);
}

TEST_CASE("F1.6: a consolidated image is permuted, never reshaped") {
  const Values broken{0, 4, 1, 5, 8, 12, 9, 13, 16, 20, 17, 21, 24, 28, 25, 29};
  const Values gate{0, 4, 8, 12, 1, 5, 9, 13, 16, 20, 24, 28, 17, 21, 25, 29};
  Saved saved = save({2, 4, 2}, {{{0, 0, 0}, {2, 4, 2}}}, {broken});
  auto planned = lower(*saved.checkpoint, AxisMoved{TensorId{0}, 1, 2, 2, {2, 2, 4}});
  REQUIRE(planned.has_value());
  CHECK_FALSE(is_pure_relabel(*planned));
  CHECK(planned->chunks.size() == 1);
  CHECK(run_command(*saved.checkpoint, *planned, saved.payloads) == gate);
}

TEST_CASE("any layout with a moved axis comes back, uneven shards and resharded images included") {
  std::mt19937 random(1691);
  auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  int relabels = 0, uneven = 0;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    std::size_t ndim = static_cast<std::size_t>(pick(2, 4));
    std::size_t grown = static_cast<std::size_t>(pick(0, static_cast<int>(ndim) - 1));
    std::size_t shrunk =
        (grown + 1 + static_cast<std::size_t>(pick(0, static_cast<int>(ndim) - 2))) % ndim;
    Extents truth_shape(ndim);
    for (auto& extent : truth_shape) extent = pick(1, 7);
    std::int64_t shards = pick(2, 4);
    std::int64_t step = (truth_shape[shrunk] + shards - 1) / shards;
    Values truth = counting(truth_shape);
    Extents shape = truth_shape;
    shape[grown] *= shards;
    shape[shrunk] = step;
    uneven += truth_shape[shrunk] % shards != 0;
    std::vector<Box> boxes;
    std::vector<Values> payloads;
    for (std::int64_t r = 0; r < shards; ++r) {
      Box box = slice(truth_shape, shrunk, shards, r);
      payloads.push_back(cut_out(truth, truth_shape, box));
      box.offsets[shrunk] = 0;
      box.offsets[grown] = r * truth_shape[grown];
      boxes.push_back(box);
    }
    // In half of the cases splits boxes once more at a random row of any axis, like a reshard.
    if (pick(0, 1) == 1) {
      for (std::size_t i = 0, n = boxes.size(); i < n; ++i) {
        std::size_t dim = static_cast<std::size_t>(pick(0, static_cast<int>(ndim) - 1));
        if (boxes[i].sizes[dim] < 2) continue;
        Box left = boxes[i], right = boxes[i];
        left.sizes[dim] = pick(1, boxes[i].sizes[dim] - 1);
        right.offsets[dim] += left.sizes[dim];
        right.sizes[dim] -= left.sizes[dim];
        Values payload = payloads[i];
        auto part = [&](const Box& box) {
          Box local = box;
          for (std::size_t d = 0; d < ndim; ++d) local.offsets[d] -= boxes[i].offsets[d];
          return cut_out(payload, boxes[i].sizes, local);
        };
        payloads.push_back(part(right));
        payloads[i] = part(left);
        boxes[i] = left;
        boxes.push_back(right);
      }
    }
    Saved saved = save(shape, boxes, payloads);
    auto planned =
        lower(*saved.checkpoint, AxisMoved{TensorId{0}, grown, shrunk, shards, truth_shape});
    REQUIRE(planned.has_value());
    CHECK(planned->lost_elements == 0);
    relabels += is_pure_relabel(*planned);
    CHECK(run_command(*saved.checkpoint, *planned, saved.payloads) == truth);
  }
  CHECK(relabels == 300);
  CHECK(uneven > 50);
}

TEST_CASE("an image in one piece comes back too, whatever the axes") {
  std::mt19937 random(7);
  auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int round = 0; round < 100; ++round) {
    CAPTURE(round);
    std::size_t grown = static_cast<std::size_t>(pick(0, 2)), shrunk = (grown + 1) % 3;
    std::int64_t shards = pick(2, 4);
    Extents truth_shape{pick(1, 4), pick(1, 4), pick(1, 4)};
    truth_shape[shrunk] *= shards;
    Values truth = counting(truth_shape);
    Extents shape = truth_shape;
    shape[grown] *= shards;
    shape[shrunk] /= shards;
    Values image(truth.size());
    for (std::int64_t r = 0; r < shards; ++r) {
      Box from = slice(truth_shape, shrunk, shards, r);
      each(from.sizes, [&](const Extents& at) {
        Extents to = at;
        to[grown] += r * truth_shape[grown];
        image[flat(to, shape)] = truth[flat(plus(from.offsets, at), truth_shape)];
      });
    }
    Saved saved = save(shape, {whole(shape)}, {image});
    auto planned =
        lower(*saved.checkpoint, AxisMoved{TensorId{0}, grown, shrunk, shards, truth_shape});
    REQUIRE(planned.has_value());
    CHECK(run_command(*saved.checkpoint, *planned, saved.payloads) == truth);
  }
}

TEST_CASE("an axis that did not move is refused, never guessed") {
  auto refuses = [](const Extents& shape, const std::vector<Box>& boxes, const AxisMoved& moved) {
    auto planned = lower(*save(shape, boxes).checkpoint, moved);
    return !planned.has_value() && planned.error().kind == ErrorKind::kUnsupported &&
           planned.error().place.tensor == "w";
  };
  std::vector<Box> boxes{{{0, 0}, {3, 2}}, {{3, 0}, {3, 2}}};
  CHECK_FALSE(refuses({6, 2}, boxes, {TensorId{0}, 0, 1, 2, {3, 4}}));
  CHECK(refuses({6, 2}, boxes, {TensorId{0}, 0, 1, 2, {3, 5}}));
  CHECK(refuses({6, 2}, boxes, {TensorId{0}, 0, 0, 2, {3, 4}}));
  CHECK(refuses({6, 2}, boxes, {TensorId{0}, 0, 7, 2, {3, 4}}));
  CHECK(refuses({6, 2}, boxes, {TensorId{0}, 0, 1, 3, {2, 5}}));
  CHECK(refuses({6, 2}, boxes, {TensorId{0}, 0, 1, 0, {3, 4}}));
  // A missing tile, a duplicate, one outside the shape, one with a negative offset.
  CHECK(refuses({6, 2}, {boxes[0]}, {TensorId{0}, 0, 1, 2, {3, 4}}));
  CHECK(refuses({6, 2}, {boxes[0], boxes[0], boxes[1]}, {TensorId{0}, 0, 1, 2, {3, 4}}));
  CHECK(refuses({6, 2}, {boxes[0], {{6, 0}, {3, 2}}}, {TensorId{0}, 0, 1, 2, {3, 4}}));
  CHECK(refuses({6, 2}, {boxes[0], {{-3, 0}, {3, 2}}}, {TensorId{0}, 0, 1, 2, {3, 4}}));
  std::int64_t huge = std::int64_t{1} << 62;
  CHECK(refuses({6, 2}, {boxes[0], {{huge, 0}, {3, 2}}}, {TensorId{0}, 0, 1, 2, {3, 4}}));
}

TEST_CASE("F1.3: the giant is lowered from its metadata alone") {
  std::vector<Box> boxes;
  for (std::int64_t s = 0; s < 2; ++s) {
    for (std::int64_t e = 0; e < 32; ++e) boxes.push_back({{9 * e, 4096 * s, 0}, {9, 4096, 640}});
  }
  Saved saved = save({288, 8192, 640}, boxes);
  auto planned = lower(*saved.checkpoint, AxisMoved{TensorId{0}, 1, 2, 2, {288, 4096, 1280}});
  REQUIRE(planned.has_value());
  CHECK(is_pure_relabel(*planned));
  CHECK(planned->chunks.size() == 64);
  CHECK(planned->chunks[63].box == Box{{279, 0, 640}, {9, 4096, 640}});
}

TEST_CASE("boxes given one by one must tile the tensor") {
  std::vector<Box> boxes{{{0}, {2}}, {{2}, {2}}, {{4}, {2}}, {{6}, {2}}};
  Saved saved = save({8}, boxes, {{0, 1}, {4, 5}, {2, 3}, {6, 7}});
  std::vector<Box> right{{{0}, {2}}, {{4}, {2}}, {{2}, {2}}, {{6}, {2}}};
  auto planned = lower(*saved.checkpoint, WrongBoxes{TensorId{0}, {8}, right});
  REQUIRE(planned.has_value());
  CHECK(is_pure_relabel(*planned));
  CHECK(run_command(*saved.checkpoint, *planned, saved.payloads) == counting({8}));
  right[2].offsets = {4};
  CHECK_FALSE(lower(*saved.checkpoint, WrongBoxes{TensorId{0}, {8}, right}));
  right.pop_back();
  CHECK_FALSE(lower(*saved.checkpoint, WrongBoxes{TensorId{0}, {8}, right}));
}

TEST_CASE("survivors are placed, the rest is lost and counted") {
  Saved saved = save({4, 2}, {{{0, 0}, {4, 2}}}, {{10, 11, 12, 13, 14, 15, 16, 17}});
  PartlyLost diagnosis{TensorId{0}, {8, 2}, {}, ""};
  diagnosis.retained_chunks.push_back({ChunkId{0}, {{0, 0}, {2, 2}}, {0, 0}});
  diagnosis.retained_chunks.push_back({ChunkId{0}, {{2, 0}, {2, 2}}, {4, 0}});
  diagnosis.retained_chunks.push_back({ChunkId{0}, {{0, 0}, {0, 2}}, {6, 0}});
  auto planned = lower(*saved.checkpoint, diagnosis);
  REQUIRE(planned.has_value());
  CHECK(planned->lost_elements == 8);
  CHECK(planned->lost == std::vector<Box>{{{2, 0}, {2, 2}}, {{6, 0}, {2, 2}}});
  CHECK(run_command(*saved.checkpoint, *planned, saved.payloads) ==
        Values{10, 11, 12, 13, -1, -1, -1, -1, 14, 15, 16, 17, -1, -1, -1, -1});
  diagnosis.retained_chunks.push_back({ChunkId{0}, {{0, 0}, {1, 2}}, {1, 0}});
  CHECK_FALSE(lower(*saved.checkpoint, diagnosis));
  diagnosis.retained_chunks.back() = {ChunkId{0}, {{3, 0}, {2, 2}}, {2, 0}};
  CHECK_FALSE(lower(*saved.checkpoint, diagnosis));
  diagnosis.retained_chunks.back() = {ChunkId{9}, {{0, 0}, {2, 2}}, {2, 0}};
  CHECK_FALSE(lower(*saved.checkpoint, diagnosis));
}

TEST_CASE("a survivor that is a whole chunk keeps its item, and an empty tensor is lost whole") {
  Saved saved = save({2}, {{{0}, {2}}}, {{1, 2}});
  auto planned =
      lower(*saved.checkpoint, PartlyLost{TensorId{0}, {6}, {{ChunkId{0}, {{0}, {2}}, {2}}}, ""});
  REQUIRE(planned.has_value());
  CHECK(planned->chunks[0].item == ChunkId{0});
  CHECK(planned->lost_elements == 4);
  auto nothing = lower(*saved.checkpoint, PartlyLost{TensorId{0}, {6}, {}, ""});
  REQUIRE(nothing.has_value());
  CHECK(nothing->lost_elements == 6);
}

TEST_CASE("blocks in another order come back as relabels where chunks allow it, else as pieces") {
  std::mt19937 random(5);
  int relabelled = 0, assembled = 0;
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    auto pick = [&](std::int64_t low, std::int64_t high) {
      return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    std::int64_t block = pick(1, 3), blocks = pick(1, 6);
    std::size_t dim = static_cast<std::size_t>(pick(0, 1));
    Extents shape{pick(1, 4), pick(1, 4)};
    shape[dim] = block * blocks;
    std::vector<std::int64_t> order(static_cast<std::size_t>(blocks));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    std::shuffle(order.begin(), order.end(), random);
    Values truth = counting(shape), image(truth.size());
    each(shape, [&](const Extents& at) {
      Extents disk = at;
      disk[dim] = order[static_cast<std::size_t>(at[dim] / block)] * block + at[dim] % block;
      image[flat(disk, shape)] = truth[flat(at, shape)];
    });
    std::int64_t parts = pick(1, 6);
    std::vector<Box> boxes;
    std::vector<Values> payloads;
    for (std::int64_t i = 0; i < parts; ++i) {
      boxes.push_back(slice(shape, dim, parts, i));
      payloads.push_back(cut_out(image, shape, boxes.back()));
    }
    Saved saved = save(shape, boxes, payloads);
    auto planned = lower(*saved.checkpoint, BlocksPermuted{TensorId{0}, dim, block, order});
    REQUIRE(planned.has_value());
    (is_pure_relabel(*planned) ? relabelled : assembled)++;
    CHECK(run_command(*saved.checkpoint, *planned, saved.payloads) == truth);
  }
  CHECK(relabelled > 20);
  CHECK(assembled > 20);
  Saved saved = save({4}, {{{0}, {4}}});
  CHECK_FALSE(lower(*saved.checkpoint, BlocksPermuted{TensorId{0}, 0, 2, {0, 0}}));
  CHECK_FALSE(lower(*saved.checkpoint, BlocksPermuted{TensorId{0}, 0, 2, {0, 2}}));
  CHECK_FALSE(lower(*saved.checkpoint, BlocksPermuted{TensorId{0}, 0, 3, {0, 1}}));
  CHECK_FALSE(lower(*saved.checkpoint, BlocksPermuted{TensorId{0}, 1, 2, {0, 1}}));
}

TEST_CASE("chunks of side files must tile the tensor and fit their payload") {
  Saved saved = save({2, 2}, {{{0, 0}, {2, 2}}});
  RestoredFromRankFiles side{TensorId{0}, {4, 2}, {}};
  side.pieces.push_back({"optimizer_rank_0.pt", 64, 16, Dtype::kFloat32, {2, 2}, {0, 0}});
  CHECK_FALSE(lower(*saved.checkpoint, side));
  side.pieces.push_back({"optimizer_rank_12.pt", 64, 16, Dtype::kFloat32, {2, 2}, {2, 0}});
  auto planned = lower(*saved.checkpoint, side);
  REQUIRE(planned.has_value());
  CHECK(planned->lost_elements == 0);
  CHECK(planned->chunks[1].writer == 12);
  CHECK(planned->chunks[1].external[0].at == Extents{0, 0});
  side.pieces[1].length = 15;
  CHECK_FALSE(lower(*saved.checkpoint, side));
  side.pieces[1].length = 16;
  side.pieces[1].file = "../optimizer_rank_12.pt";
  CHECK_FALSE(lower(*saved.checkpoint, side));
}

TEST_CASE("a tile that is pointed at its own bytes keeps its box, and only that tile moves") {
  Saved saved = save({4}, {{{0}, {2}}, {{2}, {2}}});
  auto chunks = saved.checkpoint->chunks(TensorId{0});
  CorrectItemPlace place{chunks[1], FileId{0}, 7, 100};
  auto planned = lower_repointed(*saved.checkpoint, WrongItemRecords{TensorId{0}, {place}});
  REQUIRE(planned.has_value());
  REQUIRE(planned->chunks.size() == 2);
  CHECK(planned->lost_elements == 0);
  CHECK(planned->chunks[0].external.empty());
  CHECK(planned->chunks[1].item == chunks[1]);
  CHECK(planned->chunks[1].box == Box{{2}, {2}});
  REQUIRE(planned->chunks[1].external.size() == 1);
  CHECK(planned->chunks[1].external[0].file == saved.checkpoint->file(FileId{0}).path);
  CHECK(planned->chunks[1].external[0].offset == 7);
  CHECK(planned->chunks[1].external[0].length == 100);
  CHECK_FALSE(lower_repointed(*saved.checkpoint, WrongItemRecords{TensorId{0}, {}}));
  CHECK_FALSE(lower_repointed(*saved.checkpoint, WrongItemRecords{TensorId{0}, {place, place}}));
  CorrectItemPlace elsewhere{chunks[1], FileId{99}, 7, 100};
  CHECK_FALSE(lower_repointed(*saved.checkpoint, WrongItemRecords{TensorId{0}, {elsewhere}}));
  CorrectItemPlace no_tile{ChunkId{99}, FileId{0}, 7, 100};
  CHECK_FALSE(lower_repointed(*saved.checkpoint, WrongItemRecords{TensorId{0}, {place, no_tile}}));
}

TEST_CASE("the tiling test agrees with counting every element") {
  std::mt19937 random(3);
  auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  int exact = 0;
  for (int round = 0; round < 2000; ++round) {
    Extents shape{pick(1, 4), pick(1, 4), pick(1, 3)};
    std::vector<Box> boxes{whole(shape)};
    for (int cut = 0; cut < 4; ++cut) {
      std::size_t i = static_cast<std::size_t>(pick(0, static_cast<int>(boxes.size()) - 1));
      std::size_t d = static_cast<std::size_t>(pick(0, 2));
      if (boxes[i].sizes[d] < 2) continue;
      Box right = boxes[i];
      boxes[i].sizes[d] = pick(1, right.sizes[d] - 1);
      right.offsets[d] += boxes[i].sizes[d];
      right.sizes[d] -= boxes[i].sizes[d];
      boxes.push_back(right);
    }
    if (pick(0, 1) == 1) {
      Box& box = boxes[static_cast<std::size_t>(pick(0, static_cast<int>(boxes.size()) - 1))];
      std::size_t d = static_cast<std::size_t>(pick(0, 2));
      box.offsets[d] = std::max<std::int64_t>(
          0, std::min(box.offsets[d] + pick(-1, 1), shape[d] - box.sizes[d]));
    }
    std::vector<int> count(static_cast<std::size_t>(*volume(shape)), 0);
    for (const Box& box : boxes)
      each(box.sizes, [&](const Extents& at) { ++count[flat(plus(box.offsets, at), shape)]; });
    bool once = std::all_of(count.begin(), count.end(), [](int n) { return n == 1; });
    bool apart = std::all_of(count.begin(), count.end(), [](int n) { return n <= 1; });
    exact += once;
    CHECK(tiles_exactly(boxes, shape) == once);
    CHECK(are_disjoint(boxes) == apart);
    auto rest = complement(boxes, shape);
    REQUIRE(rest.has_value());
    CHECK(are_disjoint(*rest));
    CHECK(*total_volume(*rest) == std::count(count.begin(), count.end(), 0));
  }
  CHECK(exact > 500);
  CHECK(exact < 1900);
  CHECK(tiles_exactly(std::vector<Box>{{{}, {}}}, Extents{}));
  CHECK_FALSE(tiles_exactly(std::vector<Box>{}, Extents{}));
  CHECK(tiles_exactly(std::vector<Box>{}, Extents{0, 4}));
}

// What a repair should have made of its source.
#include <map>

#include "core/base/parallel.h"
#include "core/repair/lower/lower.h"
#include "core/repair/lower/outputs.h"
#include "core/repair/lower/saved_tiles.h"
#include "core/repair/plan/plan.h"
#include "core/repair/proof/against.h"
#include "core/repair/proof/compare.h"
#include "core/repair/proof/prove_result.h"
#include "core/repair/run/carry_out.h"
#include "core/repair/run/lost.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

// What a chunk of the result was made of.
struct MadeOf {
  const PlannedTensor* tensor = nullptr;
  std::size_t chunk = 0;          // of that tensor
  std::optional<ChunkId> item{};  // of the source, where nothing was planned
};

struct BothSides {
  BoxReader source, written;
};

struct RepairedAgain {
  explicit RepairedAgain(const AgainstSource& against)
      : source(against.source), result(against.result), memory_of_side(against.memory_of_side()) {}
  std::shared_ptr<const Checkpoint> source;
  const Checkpoint& result;
  const std::uint64_t memory_of_side;
  Plan plan{};
  std::vector<MadeOf> chunks{};  // by chunk of the result
  Pool<BothSides> readers{[this] {
    return std::make_unique<BothSides>(
        BothSides{BoxReader(*source, memory_of_side), BoxReader(result, memory_of_side)});
  }};

  Result<ComparedTile> compare(ChunkId chunk, Progress* progress) {
    const MadeOf& made = chunks[index_of(chunk)];
    if (is_empty(box_of(result, chunk))) return ComparedTile();
    auto sides = readers.take();
    std::optional<Mismatch> mismatch;
    std::int64_t seen = 0;
    Comparing comparing{sides->source, sides->written, chunk, progress, &mismatch, &seen};
    Status compared;
    if (made.item)
      compared = compare_item(comparing, *made.item);
    else if (made.tensor == nullptr)
      compared = fail(ErrorKind::kDamaged, "comes from nowhere");
    else if (made.tensor->chunks.item(made.chunk))
      compared = compare_kept(comparing, made.tensor->chunks[made.chunk]);
    else
      compared = compare_payload(*made.tensor, made.tensor->chunks[made.chunk], comparing);
    if (mismatch) return ComparedTile{std::move(mismatch)};
    if (!compared) return tl::unexpected<Error>(std::move(compared).error());
    if (seen != volume(result.sizes(chunk)))
      return fail(ErrorKind::kDamaged, "has elements that nothing was held against");
    return ComparedTile();
  }
};

// A tile may be listed twice.
using Boxes = std::multimap<std::pair<Extents, Extents>, ChunkId>;

Boxes chunks_by_box(const Checkpoint& checkpoint, TensorId tensor) {
  Boxes chunks;
  for (ChunkId chunk : checkpoint.chunks(tensor))
    chunks.emplace(std::pair(copy_of(checkpoint.offsets(chunk)), copy_of(checkpoint.sizes(chunk))),
                   chunk);
  return chunks;
}

// Each is there once for each time that it was saved: the metadata says so.
ChunkId take_one(Boxes& there, const Boxes::key_type& box) {
  auto found = there.find(box);
  const ChunkId chunk = found->second;
  if (std::next(found) != there.end() && std::next(found)->first == box) there.erase(found);
  return chunk;
}

// The metadata says of both sides that they fit.
void find_origins(RepairedAgain& again) {
  again.chunks.resize(again.result.chunk_count());
  auto planned = planned_by_id(again.plan);
  for (std::uint32_t t = 0; t < again.source->tensor_count(); ++t) {
    auto found = planned.find(t);
    if (found == planned.end()) {
      auto made = again.result.find(again.source->fqn(TensorId{t}));
      Boxes there = chunks_by_box(again.result, *made);
      for (const auto& [box, chunk] : chunks_by_box(*again.source, TensorId{t}))
        again.chunks[index_of(take_one(there, box))].item = chunk;
      continue;
    }
    const PlannedTensor& tensor = again.plan.tensors[found->second];
    Boxes there = chunks_by_box(again.result, *again.result.find(fqn_after(*again.source, tensor)));
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      Box box = tensor.chunks.box(i);
      again.chunks[index_of(take_one(there, {std::move(box.offsets), std::move(box.sizes)}))] = {
          &tensor, i, {}};
    }
  }
}

void add_holes(const RepairedAgain& again, ExpectedResult& expected) {
  auto planned = planned_by_id(again.plan);
  for (std::uint32_t t = 0; t < again.source->tensor_count(); ++t) {
    if (planned.contains(t)) continue;
    auto holes = holes_of(*again.source, TensorId{t});
    if (holes && !holes->empty())
      expected.holes[std::string(again.source->fqn(TensorId{t}))] =
          total_volume(*holes).value_or(0);
  }
}

}  // namespace

std::string words_about(const Error& error) {
  std::string where = error.place.tensor;
  if (!error.place.file.empty()) where += (where.empty() ? "" : " in ") + error.place.file;
  return where.empty() ? error.message : where + ": " + error.message;
}

std::uint64_t AgainstSource::memory_of_side() const {
  return memory / (3 * worker_count());
}

Result<ExpectedResult> expected_of_repair(const AgainstSource& against, Plan plan) {
  const auto& source = against.source;
  auto again = std::make_shared<RepairedAgain>(against);
  again->plan = adapt_plan_to_format(*source, std::move(plan));
  ExpectedResult expected;
  expected.lost = filled_after(*source, again->plan);
  for (const PlannedTensor& tensor : again->plan.tensors) {
    if (std::int64_t padding = padding_left_out(*source, tensor); padding != 0)
      expected.padding[std::string(fqn_after(*source, tensor))] = padding;
  }
  add_holes(*again, expected);
  for (const PlannedTensor& tensor : again->plan.tensors) {
    const Checkpoint* other = tensor.fill_source.get();
    if (other == nullptr || other->directory() == nullptr) continue;
    expected.others = {other->directory()->name()};
    break;
  }
  for (const Operation& operation : again->plan.operations)
    expected.words.push_back(operation.text);
  if (Status same = compare_metadata(*source, again->plan, against.result); !same) {
    expected.contradictions.push_back(words_about(same.error()));
    return expected;
  }
  find_origins(*again);
  expected.objects = [again] {
    return object_that_differs(*again->source, again->plan, again->result);
  };
  expected.compare = [again](ChunkId chunk, Progress* progress) {
    return again->compare(chunk, progress);
  };
  return expected;
}

}  // namespace shw

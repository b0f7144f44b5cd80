#include "core/facts/values/tensor_statistics.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>

#include "core/base/checked.h"
#include "core/base/parallel.h"
#include "core/base/parallel_batches.h"
#include "core/formats/items/disk_order.h"
#include "core/formats/items/element_pass.h"
#include "core/tensor/statistics_bytes.h"
#include "core/tiles/coverage.h"

namespace shw {
namespace {

// Work unit of a thread; evaluating its tables afterwards (0.1 ms) takes about 1 % of the time.
constexpr std::int64_t kPartBytes = 32 << 20;
constexpr std::uint32_t kPartChunks = 256;
// Limit per chunk, which also bounds invalid shapes.
constexpr std::int64_t kMaxRanges = 4096;

// Chunks [first, last) of a tensor; if only one, a range of its elements.
struct StatisticsPart {
  std::uint32_t tensor = 0;  // index in the requested tensors
  std::uint32_t first = 0, last = 0;
  ElementRange range;
};

struct TensorState {
  TensorStatistics told;
  StatisticsSums sums;
  std::int64_t expected = 0;  // number of elements in all parts
  std::size_t parts_left = 0;
  std::size_t error_part = 0;
};

std::int64_t elements_of(const Checkpoint& checkpoint, ChunkId chunk) {
  return volume(checkpoint.sizes(chunk)).value_or(0);
}

std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
  return checked_add(a, b).value_or(std::numeric_limits<std::int64_t>::max());
}

// Records elements in no tile, and in several.
void record_coverage(const Checkpoint& checkpoint, TensorId tensor, TensorStatistics& told) {
  if (compute_tiling(checkpoint, tensor).tiling == Tiling::kExact) return;
  auto elements = volume(told.shape);
  if (!elements) {
    told.error = Error{ErrorKind::kDamaged,
                       "the shape " + to_text(told.shape) + " is impossible",
                       {.file = {}, .tensor = told.fqn}};
    return;
  }
  FlatBoxes boxes;
  boxes.ndim = told.shape.size();
  std::int64_t held = 0;
  std::uint32_t at = 0;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    ExtentsView offsets = checkpoint.offsets(chunk), sizes = checkpoint.sizes(chunk);
    std::int64_t count = elements_of(checkpoint, chunk);
    if (is_inside(offsets, sizes, told.shape)) {
      if (count != 0) boxes.add(offsets, sizes, at);
      held = saturating_sum(held, count);
    } else {
      told.unread = saturating_sum(told.unread, count);
      if (!told.error)
        told.error = Error{ErrorKind::kDamaged,
                           "the chunk at " + to_text(offsets) + " of sizes " + to_text(sizes) +
                               " is not inside the shape " + to_text(told.shape),
                           {.file = {}, .tensor = told.fqn}};
    }
    ++at;
  }
  TilingDefects defects = find_defects(told.shape, boxes);
  told.missing = std::min(defects.missing, *elements);
  told.repeated = std::max<std::int64_t>(held - (*elements - told.missing), 0);
  told.at_least = !defects.complete;
}

TensorState state_of(const Checkpoint& checkpoint, TensorId tensor) {
  TensorState state;
  state.told.fqn = checkpoint.fqn(tensor);
  state.told.dtype = checkpoint.dtype(tensor);
  state.told.shape = copy_of(checkpoint.shape(tensor));
  state.sums = StatisticsSums(state.told.dtype);
  record_coverage(checkpoint, tensor, state.told);
  if (size_of(state.told.dtype) == 0 && !state.told.error)
    state.told.error = Error{ErrorKind::kUnsupported,
                             "the tensor's dtype is not known",
                             {.file = {}, .tensor = state.told.fqn}};
  return state;
}

FileId file_of(const Checkpoint& checkpoint, ChunkId chunk) {
  return checkpoint.item(chunk).value_or(ItemPlace{}).file;
}

// Splits large chunks and combines small ones: within one file, so that threads read sequentially;
// in a team across files, since members exchange results of each part.
void add_parts(const Checkpoint& checkpoint, TensorId tensor, std::uint32_t index,
               const CountedChunks* counted, bool is_team, std::vector<StatisticsPart>& parts) {
  const auto chunks = checkpoint.chunks(tensor);
  const std::int64_t most =
      kPartBytes / std::max<std::int64_t>(size_of(checkpoint.dtype(tensor)), 1);
  std::int64_t joined = 0;  // elements of the last part, if further chunks may be added to it
  bool may_join = false;
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    if (!has_numbers(checkpoint, chunks[i]) || (counted != nullptr && counted->has(chunks[i]))) {
      may_join = false;
      continue;
    }
    std::int64_t count = elements_of(checkpoint, chunks[i]);
    may_join = may_join && joined + count <= most && i - parts.back().first < kPartChunks &&
               (is_team || file_of(checkpoint, chunks[i]) == file_of(checkpoint, chunks[i - 1]));
    if (may_join) {
      parts.back().last = i + 1;
      joined += count;
      continue;
    }
    const std::int64_t step = std::max(most, count / kMaxRanges + 1);
    for (std::int64_t first = 0;; first += step) {
      parts.push_back({index, i, i + 1, {first, std::min(step, count - first) + first}});
      if (count - first <= step) break;
    }
    may_join = count <= most;
    joined = count;
  }
}

class StatisticsPass {
 public:
  StatisticsPass(const Checkpoint& checkpoint, std::span<const TensorId> tensors,
                 Progress* progress, Team* team, const MakeStatisticsBackend& counters,
                 const CountedChunks* counted)
      : checkpoint_(checkpoint),
        tensors_(tensors),
        progress_(progress),
        team_(team),
        counted_(counted),
        counters_(counters) {}
  Result<std::vector<TensorStatistics>> run();

 private:
  // Statistics of a part, without chunks that cannot be read.
  struct PartStatistics {
    StatisticsSums sums;
    std::optional<Error> error = {};
  };
  Result<PartStatistics> count_part(std::size_t part);
  Status read_with_team();
  std::uint64_t bytes_of(const StatisticsPart& part) const;
  std::vector<std::uint32_t> parts_in_file_order() const;
  Status add(StatisticsBackend& counter, ItemCursor& items, const StatisticsPart& part,
             std::uint32_t chunk, StatisticsSums& alike);
  void finalize(std::size_t part, PartStatistics looked);
  void finish(TensorState& state);

  const Checkpoint& checkpoint_;
  std::span<const TensorId> tensors_;
  Progress* progress_;
  Team* team_;
  const CountedChunks* counted_;
  std::vector<TensorState> states_;
  std::vector<StatisticsPart> parts_;
  std::mutex guard_;  // for states_
  Pool<StatisticsBackend> counters_;
  Pool<ItemCursor> items_{[this] { return std::make_unique<ItemCursor>(checkpoint_, 0); }};
};

Status StatisticsPass::add(StatisticsBackend& counter, ItemCursor& items,
                           const StatisticsPart& part, std::uint32_t chunk, StatisticsSums& alike) {
  ChunkId id = checkpoint_.chunks(tensors_[part.tensor])[chunk];
  ElementRange range = part.range;
  if (part.last - part.first > 1) range = {0, elements_of(checkpoint_, id)};
  auto given =
      stream_elements(items, id, range, counting(counter), progress_, constant_run_counter(alike));
  if (!given) return tl::unexpected<Error>(std::move(given).error());
  return {};
}

Result<StatisticsPass::PartStatistics> StatisticsPass::count_part(std::size_t index) {
  const StatisticsPart& part = parts_[index];
  const Dtype dtype = checkpoint_.dtype(tensors_[part.tensor]);
  auto counter = counters_.take();
  auto items = items_.take();
  counter->begin(dtype);
  StatisticsSums alike(dtype);
  Status all;
  for (std::uint32_t i = part.first; i < part.last && all; ++i)
    all = add(*counter, *items, part, i, alike);
  if (all) {
    SHW_TRY(StatisticsSums sums, counter->take());
    sums += alike;
    return PartStatistics{std::move(sums)};
  }
  if (all.error().kind == ErrorKind::kCancelled) return tl::unexpected<Error>(all.error());
  PartStatistics looked{StatisticsSums(dtype)};
  for (std::uint32_t i = part.first; i < part.last; ++i) {
    counter->begin(dtype);
    alike = StatisticsSums(dtype);
    Status done = add(*counter, *items, part, i, alike);
    if (done) {
      SHW_TRY(StatisticsSums sums, counter->take());
      looked.sums += sums;
      looked.sums += alike;
      continue;
    }
    if (done.error().kind == ErrorKind::kCancelled) return tl::unexpected<Error>(done.error());
    if (!looked.error) looked.error = std::move(done).error();
  }
  return looked;
}

std::uint64_t StatisticsPass::bytes_of(const StatisticsPart& part) const {
  const TensorId tensor = tensors_[part.tensor];
  std::int64_t elements = part.range.last - part.range.first;
  if (part.last - part.first > 1) {
    elements = 0;
    for (std::uint32_t i = part.first; i < part.last; ++i)
      elements = saturating_sum(elements, elements_of(checkpoint_, checkpoint_.chunks(tensor)[i]));
  }
  return static_cast<std::uint64_t>(elements) * size_of(checkpoint_.dtype(tensor));
}

// Indices of the parts, sorted by file position of their first items.
std::vector<std::uint32_t> StatisticsPass::parts_in_file_order() const {
  std::vector<ChunkId> chunks;
  chunks.reserve(parts_.size());
  for (const StatisticsPart& part : parts_)
    chunks.push_back(checkpoint_.chunks(tensors_[part.tensor])[part.first]);
  return order_on_disk(checkpoint_, chunks);
}

// Results do not depend on the order: sums are exact, and errors are chosen by position.
Status StatisticsPass::read_with_team() {
  std::vector<std::uint64_t> costs;
  for (const StatisticsPart& part : parts_) costs.push_back(bytes_of(part));
  ScatterMapTask work{"statistics", costs, {}, {}};
  work.find = [&](std::size_t part) -> Result<Bytes> {
    SHW_TRY(PartStatistics looked, count_part(part));
    Encoder payload;
    shw::add(payload, looked.sums);
    payload.add(std::uint64_t{looked.error.has_value()});
    if (looked.error) payload.add(*looked.error);
    return payload.take();
  };
  work.receive = [&](std::size_t part, BytesView found) -> Status {
    Decoder payload(found);
    PartStatistics looked;
    SHW_TRY(looked.sums, decode_sums(payload, checkpoint_.dtype(tensors_[parts_[part].tensor])));
    SHW_TRY(std::uint64_t has_error, payload.number());
    if (has_error != 0) {
      SHW_TRY(looked.error, payload.error());
    }
    finalize(part, std::move(looked));
    return {};
  };
  return scatter_map_allgather(*team_, work);
}

void StatisticsPass::finalize(std::size_t part, PartStatistics looked) {
  std::lock_guard lock(guard_);
  TensorState& state = states_[parts_[part].tensor];
  state.sums += looked.sums;
  // Keeps the first error by position, independent of threads.
  bool is_first = state.error_part == 0 ? !state.told.error : part + 1 < state.error_part;
  if (looked.error && is_first) {
    state.told.error = std::move(looked.error);
    state.error_part = part + 1;
  }
  if (--state.parts_left == 0) finish(state);
}

void StatisticsPass::finish(TensorState& state) {
  auto counted = static_cast<std::int64_t>(state.sums.elements);
  state.told.unread =
      saturating_sum(state.told.unread, std::max<std::int64_t>(state.expected - counted, 0));
  state.told.statistics = statistics_of(state.sums);
  state.sums = StatisticsSums();
}

Result<std::vector<TensorStatistics>> StatisticsPass::run() {
  std::uint64_t bytes = 0;
  states_.resize(tensors_.size());
  SHW_CHECK(parallel_for(tensors_.size(), [&](std::size_t i) -> Status {
    states_[i] = state_of(checkpoint_, tensors_[i]);
    return {};
  }));
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    std::size_t before = parts_.size();
    add_parts(checkpoint_, tensors_[i], static_cast<std::uint32_t>(i), counted_, team_ != nullptr,
              parts_);
    if (counted_ != nullptr && counted_->of(tensors_[i]) != nullptr)
      states_[i].sums += *counted_->of(tensors_[i]);
    states_[i].parts_left = parts_.size() - before;
    for (ChunkId chunk : checkpoint_.chunks(tensors_[i])) {
      if (has_numbers(checkpoint_, chunk))
        states_[i].expected = saturating_sum(states_[i].expected, elements_of(checkpoint_, chunk));
    }
    bytes += static_cast<std::uint64_t>(states_[i].expected) * size_of(states_[i].told.dtype);
    if (states_[i].parts_left == 0) finish(states_[i]);
  }
  if (progress_ != nullptr) progress_->begin(Phase::kReadingBytes, bytes, true);
  if (team_ != nullptr) {
    SHW_CHECK(read_with_team());
  } else {
    const std::vector<std::uint32_t> order = parts_in_file_order();
    std::vector<std::uint64_t> costs;
    for (std::uint32_t part : order) costs.push_back(bytes_of(parts_[part]));
    SHW_CHECK(parallel_for_batched(costs, [&](std::size_t i) -> Status {
      SHW_TRY(PartStatistics looked, count_part(order[i]));
      finalize(order[i], std::move(looked));
      return {};
    }));
  }
  std::vector<TensorStatistics> told;
  for (TensorState& state : states_) told.push_back(std::move(state.told));
  return told;
}

}  // namespace

bool has_numbers(const Checkpoint& checkpoint, ChunkId chunk) {
  const TensorId tensor = checkpoint.tensor_of(chunk);
  return size_of(checkpoint.dtype(tensor)) != 0 && volume(checkpoint.sizes(chunk)) != 0 &&
         is_inside(checkpoint.offsets(chunk), checkpoint.sizes(chunk), checkpoint.shape(tensor)) &&
         volume(checkpoint.shape(tensor));
}

Result<std::vector<TensorStatistics>> statistics_of(const Checkpoint& checkpoint,
                                                    std::span<const TensorId> tensors,
                                                    Progress* progress, Team* team,
                                                    const MakeStatisticsBackend& counters,
                                                    const CountedChunks* counted) {
  return StatisticsPass(checkpoint, tensors, progress, team, counters, counted).run();
}

std::vector<StatisticsLoad> statistics_loads_by_dtype(const Checkpoint& checkpoint,
                                                      std::span<const TensorId> tensors) {
  std::map<Dtype, std::uint64_t> bytes;
  for (TensorId tensor : tensors) {
    const Dtype dtype = checkpoint.dtype(tensor);
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      if (!has_numbers(checkpoint, chunk)) continue;
      const auto elements = static_cast<std::uint64_t>(elements_of(checkpoint, chunk));
      const auto of_chunk = checked_mul<std::uint64_t>(elements, size_of(dtype)).value_or(0);
      std::uint64_t& sum = bytes[dtype];
      sum = checked_add(sum, of_chunk).value_or(sum);
    }
  }
  std::vector<StatisticsLoad> loads;
  for (const auto& [dtype, sum] : bytes) loads.push_back({dtype, sum});
  return loads;
}

}  // namespace shw

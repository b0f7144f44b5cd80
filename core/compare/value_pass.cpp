#include "core/compare/value_pass.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>

#include "core/base/checked.h"
#include "core/base/parallel.h"
#include "core/compare/value_parts.h"
#include "core/formats/items/item_cursor.h"
#include "core/tensor/element_text.h"
#include "core/tensor/statistics.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

constexpr std::uint64_t kPieceBytes = 256 << 10;  // two pieces fit into a core's cache
constexpr std::uint64_t kBlockBytes = 2 << 20;

// Per thread: a reader and a piece of each checkpoint.
struct PairReaders {
  ItemCursor a, b;
  Bytes a_piece = {}, b_piece = {};
  bool is_reading_b = false;  // which one is being read, for error messages
};

// The first different element by row-major index in the tensor.
struct FirstDifferentElement {
  std::uint64_t index = std::numeric_limits<std::uint64_t>::max();
  std::array<std::byte, 16> a{}, b{};
};

struct PartResult {
  bool differs = false;
  ElementDifference elements;
  ElementProducts products;
  FirstDifferentElement first;
  std::uint64_t compared = 0;
};

enum class CompareMode : std::uint8_t {
  kFirstDifference,  // stops at the first difference
  kAllElements,      // every element
  kSquaresA,         // squares of equal parts: reads A only
};

struct TensorSums {
  std::uint64_t expected = 0;  // common elements according to shapes
  FirstDifferentElement first;
  std::uint64_t error_part = std::numeric_limits<std::uint64_t>::max();
  std::uint32_t first_part = 0, last_part = 0;
};

std::uint64_t flat_index(ExtentsView shape, const Box& box, std::uint64_t element) {
  std::uint64_t flat = 0, step = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    auto size = static_cast<std::uint64_t>(box.sizes[d]);
    flat += (static_cast<std::uint64_t>(box.offsets[d]) + element % size) * step;
    element /= size;
    step *= static_cast<std::uint64_t>(shape[d]);
  }
  return flat;
}

Box local_box(const Checkpoint& checkpoint, ChunkId chunk, Box box) {
  ExtentsView offsets = checkpoint.offsets(chunk);
  for (std::size_t d = 0; d < offsets.size(); ++d) box.offsets[d] -= offsets[d];
  return box;
}

// Limits pairs to an eighth of the memory, but at least a number linear in the tiles, and at most
// what an index can hold.
std::size_t tile_pair_limit(const BothCheckpoints& both, const std::vector<RequestedPair>& asked,
                            std::uint64_t memory) {
  std::uint64_t tiles = 0;
  for (const RequestedPair& one : asked)
    tiles += both.a.chunks(one.tensor.a).size() + both.b.chunks(one.tensor.b).size();
  const std::uint64_t most =
      std::max<std::uint64_t>(memory / 8 / sizeof(TilePair), 4 * tiles + 0x10000);
  return static_cast<std::size_t>(std::min<std::uint64_t>(most, kAllShared / 2));
}

// From shapes and gaps rather than from pairs, so that elements without a pair count as unread. 0,
// and reported, if the gaps cannot be determined.
std::uint64_t elements_of_both(const BothCheckpoints& both, const RequestedPair& asked) {
  const auto all = volume(both.a.shape(asked.tensor.a));
  const auto apart = differing_gap_elements(*asked.a, *asked.b);
  if (!all || !apart) return 0;
  const std::int64_t in_gaps = (asked.a->missing + asked.b->missing + *apart) / 2;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(*all - in_gaps, 0));
}

class ValuePass {
 public:
  ValuePass(const BothCheckpoints& both, const std::vector<RequestedPair>& asked,
            std::uint64_t memory, Progress* progress, std::optional<Tolerance> tolerance)
      : both_(both),
        asked_(asked),
        shares_(shares_of(memory)),
        most_pairs_(tile_pair_limit(both, asked, memory)),
        progress_(progress),
        tolerance_(tolerance) {}
  Result<std::vector<ComparedPairResult>> run();

 private:
  // The checkpoints and dtypes of the two tiles of a pair.
  struct Sides {
    const Checkpoint &a, &b;
    Dtype a_dtype, b_dtype;
  };
  Sides sides_of_value_part(const ValuePart& part) const;
  void cut();
  bool is_decoded_as_read(const Checkpoint& checkpoint, ChunkId chunk) const;
  void forecast();
  Status look(std::size_t part);
  Status add_squares(std::size_t part);
  Result<PartResult> pass(const ValuePart& part, CompareMode look, PairReaders& readers,
                          bool& in_b);
  Result<PartResult> compare_part(const ValuePart& part, bool& in_b);
  Status compare_separately(std::size_t part);
  Status compare_block(const ValuePart& part, const TilePair& pair, const Box& box,
                       CompareMode look, PairReaders& readers, PartResult& out);
  void add_piece(const Sides& sides, BytesView a, BytesView b, std::uint64_t begin, const Box& box,
                 ExtentsView shape, PartResult& out) const;
  void finalize(std::size_t part, const PartResult& result);
  void record_read_error(std::size_t part, Error error, bool in_b);
  void finish(std::size_t tensor);

  const BothCheckpoints& both_;
  const std::vector<RequestedPair>& asked_;
  const CompareShares shares_;
  const std::size_t most_pairs_;
  Progress* progress_;
  std::optional<Tolerance> tolerance_;
  DecodedItems decoded_{shares_.decoded};
  TilePairs pairs_;
  std::vector<ValuePart> parts_;
  std::vector<std::uint8_t> is_equal_;     // by part: completely read without a difference
  std::vector<ElementProducts> products_;  // by part: added in order, whoever was first
  std::vector<TensorSums> sums_;
  std::vector<ComparedPairResult> seen_;
  std::mutex guard_;  // for sums_ and seen_
  // For both checkpoints, and for pairs within each one.
  std::array<Pool<PairReaders>, 3> readers_{
      Pool<PairReaders>{[this] { return readers_of(both_.a, both_.b); }},
      Pool<PairReaders>{[this] { return readers_of(both_.a, both_.a); }},
      Pool<PairReaders>{[this] { return readers_of(both_.b, both_.b); }}};
  Pool<PairReaders>::Lease lease_readers(const ValuePart& part) {
    return readers_[static_cast<std::size_t>(pairs_.pairs[part.first].of)].take();
  }
  std::unique_ptr<PairReaders> readers_of(const Checkpoint& a, const Checkpoint& b) {
    return std::make_unique<PairReaders>(PairReaders{{a, decoded_}, {b, decoded_}});
  }
};

ValuePass::Sides ValuePass::sides_of_value_part(const ValuePart& part) const {
  const TensorPair& tensor = asked_[part.tensor].tensor;
  Dtype a = both_.a.dtype(tensor.a), b = both_.b.dtype(tensor.b);
  PairSource of = pairs_.pairs[part.first].of;
  if (of == PairSource::kA) return {both_.a, both_.a, a, a};
  if (of == PairSource::kB) return {both_.b, both_.b, b, b};
  return {both_.a, both_.b, a, b};
}

// True for compressed tiles that are too large to hold decoded, checked by metadata.
bool ValuePass::is_decoded_as_read(const Checkpoint& checkpoint, ChunkId chunk) const {
  if (checkpoint.transforms(chunk).empty()) return false;
  const auto elements = static_cast<std::uint64_t>(volume(checkpoint.sizes(chunk)).value_or(0));
  auto bytes =
      checked_mul(elements, std::uint64_t{size_of(checkpoint.dtype(checkpoint.tensor_of(chunk)))});
  return !decoded_.has_room_for(checkpoint, chunk, bytes.value_or(UINT64_MAX));
}

void ValuePass::cut() {
  for (std::uint32_t t = 0; t < asked_.size(); ++t) {
    const RequestedPair& asked = asked_[t];
    auto first = static_cast<std::uint32_t>(pairs_.pairs.size());
    sums_[t].expected = elements_of_both(both_, asked);
    seen_[t].too_many_pairs =
        !add_pairs(both_, asked.tensor, *asked.a, *asked.b, most_pairs_, pairs_);
    auto last = static_cast<std::uint32_t>(pairs_.pairs.size());
    std::uint64_t width = std::max({size_of(both_.a.dtype(asked.tensor.a)),
                                    size_of(both_.b.dtype(asked.tensor.b)), std::uint32_t{1}});
    auto most = static_cast<std::int64_t>(std::max<std::uint64_t>(shares_.block / width, 1));
    sums_[t].first_part = static_cast<std::uint32_t>(parts_.size());
    auto is_in_order = [&](const TilePair& pair) {
      const bool a_is_b = pair.of == PairSource::kB, b_is_a = pair.of == PairSource::kA;
      return is_decoded_as_read(a_is_b ? both_.b : both_.a, pair.a) ||
             is_decoded_as_read(b_is_a ? both_.a : both_.b, pair.b);
    };
    add_value_parts(both_, pairs_, t, first, last, most, is_in_order, parts_);
    sums_[t].last_part = static_cast<std::uint32_t>(parts_.size());
  }
}

void ValuePass::forecast() {
  std::uint64_t bytes = 0;
  for (const ValuePart& part : parts_) {
    Sides sides = sides_of_value_part(part);
    bytes += part.elements * (size_of(sides.a_dtype) + size_of(sides.b_dtype));
  }
  if (progress_ != nullptr) progress_->begin(Phase::kReadingBytes, bytes, true);
}

void ValuePass::add_piece(const Sides& sides, BytesView a, BytesView b, std::uint64_t begin,
                          const Box& box, ExtentsView shape, PartResult& out) const {
  const std::size_t a_width = size_of(sides.a_dtype), b_width = size_of(sides.b_dtype);
  const std::size_t count = a.size() / a_width;
  bool one_dtype = sides.a_dtype == sides.b_dtype;
  ElementDifference seen =
      one_dtype ? difference_of(sides.a_dtype, a.data(), b.data(), count, &out.products)
                : difference_of(sides.a_dtype, a.data(), sides.b_dtype, b.data(), count);
  if (!one_dtype)
    out.products += products_of(sides.a_dtype, a.data(), sides.b_dtype, b.data(), count);
  if (tolerance_ && seen.differing != 0)
    seen.beyond = count_beyond_tolerance(*tolerance_, sides.a_dtype, a.data(), sides.b_dtype,
                                         b.data(), count);
  if (seen.first) {
    std::uint64_t index = flat_index(shape, box, begin + *seen.first);
    if (index < out.first.index) {
      out.first.index = index;
      std::memcpy(out.first.a.data(), a.data() + *seen.first * a_width, a_width);
      std::memcpy(out.first.b.data(), b.data() + *seen.first * b_width, b_width);
    }
  }
  out.differs = out.differs || seen.differing != 0;
  out.elements.add(seen, 0);
}

Status ValuePass::compare_block(const ValuePart& part, const TilePair& pair, const Box& box,
                                CompareMode look, PairReaders& readers, PartResult& out) {
  const Sides sides = sides_of_value_part(part);
  const std::uint64_t a_width = size_of(sides.a_dtype), b_width = size_of(sides.b_dtype);
  const ExtentsView shape = both_.a.shape(asked_[part.tensor].tensor.a);
  const auto count = static_cast<std::uint64_t>(volume(box.sizes).value_or(0));
  const std::uint64_t together = shares_.piece / std::max(a_width, b_width);
  const bool one_dtype = sides.a_dtype == sides.b_dtype;
  readers.is_reading_b = false;
  SHW_CHECK(readers.a.begin_box(pair.a, local_box(sides.a, pair.a, box)));
  readers.is_reading_b = true;
  if (look != CompareMode::kSquaresA)
    SHW_CHECK(readers.b.begin_box(pair.b, local_box(sides.b, pair.b, box)));
  for (std::uint64_t begin = 0; begin < count; begin += together) {
    if (is_cancelled(progress_)) return cancelled_error();
    const std::uint64_t elements = std::min(together, count - begin);
    bool zeros = readers.a.is_hole_at(begin * a_width, elements * a_width);
    if (zeros && look == CompareMode::kSquaresA) continue;
    if (zeros && one_dtype && readers.b.is_hole_at(begin * b_width, elements * b_width)) continue;
    readers.is_reading_b = false;
    SHW_TRY(BytesView a, readers.a.read_at(begin * a_width, elements * a_width, readers.a_piece));
    if (look == CompareMode::kSquaresA) {
      out.products += products_of(sides.a_dtype, a.data(), sides.a_dtype, a.data(), elements);
      continue;
    }
    readers.is_reading_b = true;
    SHW_TRY(BytesView b, readers.b.read_at(begin * b_width, elements * b_width, readers.b_piece));
    bool equal = one_dtype && std::memcmp(a.data(), b.data(), a.size()) == 0;
    if (look == CompareMode::kAllElements) {
      add_piece(sides, a, b, begin, box, shape, out);
    } else if (!equal) {
      out.differs = true;
      return {};
    }
  }
  return {};
}

Result<PartResult> ValuePass::pass(const ValuePart& part, CompareMode look, PairReaders& readers,
                                   bool& in_b) {
  PartResult out;
  const Sides sides = sides_of_value_part(part);
  const std::uint64_t width = std::max(size_of(sides.a_dtype), size_of(sides.b_dtype));
  const auto most = static_cast<std::int64_t>(std::max<std::uint64_t>(shares_.block / width, 1));
  for (std::uint32_t i = part.first; i < part.last; ++i) {
    const TilePair& pair = pairs_.pairs[i];
    const Box all = box_of(both_, pairs_, pair);
    Blocks blocks{all.sizes, block_sizes(all.sizes, most, {})};
    blocks.go_to(part.block);
    for (std::uint64_t n = part.block; n < part.block_end && blocks.next(); ++n) {
      Box box = blocks.block;
      for (std::size_t d = 0; d < box.offsets.size(); ++d) box.offsets[d] += all.offsets[d];
      Status done = compare_block(part, pair, box, look, readers, out);
      in_b = readers.is_reading_b;
      if (!done) return tl::unexpected<Error>(std::move(done).error());
      out.compared += static_cast<std::uint64_t>(volume(box.sizes).value_or(0));
      if (look == CompareMode::kFirstDifference && out.differs) return out;
    }
  }
  return out;
}

Result<PartResult> ValuePass::compare_part(const ValuePart& part, bool& in_b) {
  auto readers = lease_readers(part);
  auto result = pass(part, CompareMode::kFirstDifference, *readers, in_b);
  if (result && result->differs) return pass(part, CompareMode::kAllElements, *readers, in_b);
  return result;
}

Status ValuePass::look(std::size_t index) {
  const ValuePart& part = parts_[index];
  bool in_b = false;
  auto result = compare_part(part, in_b);
  if (progress_ != nullptr) {
    const Sides sides = sides_of_value_part(part);
    progress_->add(part.elements * (size_of(sides.a_dtype) + size_of(sides.b_dtype)));
  }
  if (result) {
    finalize(index, *result);
    is_equal_[index] = !result->differs;
    return {};
  }
  if (result.error().kind == ErrorKind::kCancelled)
    return tl::unexpected<Error>(std::move(result).error());
  record_read_error(index, std::move(result).error(), in_b);
  return part.last - part.first > 1 ? compare_separately(index) : Status{};
}

// Compares readable tiles even if others fail.
Status ValuePass::compare_separately(std::size_t index) {
  ValuePart one = parts_[index];
  const std::uint32_t last = one.last;
  for (; one.first < last; ++one.first) {
    one.last = one.first + 1;
    bool in_b = false;
    auto result = compare_part(one, in_b);
    if (result) finalize(index, *result);
    if (!result && result.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(std::move(result).error());
  }
  return {};
}

void ValuePass::finalize(std::size_t index, const PartResult& result) {
  const ValuePart& part = parts_[index];
  const PairSource of = pairs_.pairs[part.first].of;
  if (of == PairSource::kBoth) products_[index] += result.products;
  std::lock_guard lock(guard_);
  ComparedPairResult& seen = seen_[part.tensor];
  if (of != PairSource::kBoth) {
    bool& disagrees = of == PairSource::kA ? seen.disagrees_a : seen.disagrees_b;
    disagrees = disagrees || result.differs;
    return;
  }
  seen.values.compared += result.compared;
  seen.values.elements.add(result.elements, 0);
  TensorSums& sums = sums_[part.tensor];
  if (result.first.index < sums.first.index) sums.first = result.first;
}

void ValuePass::record_read_error(std::size_t index, Error error, bool in_b) {
  const ValuePart& part = parts_[index];
  const PairSource of = pairs_.pairs[part.first].of;
  std::lock_guard lock(guard_);
  TensorSums& sums = sums_[part.tensor];
  // Keeps the first error by position, independent of threads.
  if (index >= sums.error_part) return;
  sums.error_part = index;
  seen_[part.tensor].error = std::move(error);
  seen_[part.tensor].error_in_b = of == PairSource::kBoth ? in_b : of == PairSource::kB;
}

// Cosines cover the whole tensor, so equal parts count too.
Status ValuePass::add_squares(std::size_t index) {
  const ValuePart& part = parts_[index];
  const Sides sides = sides_of_value_part(part);
  const ComparedPairResult& seen = seen_[part.tensor];
  bool asked = is_equal_[index] != 0 && pairs_.pairs[part.first].of == PairSource::kBoth &&
               seen.values.elements.differing != 0 && sides.a_dtype == sides.b_dtype &&
               number_kind(sides.a_dtype) != NumberKind::kOpaque;
  if (!asked) return {};
  bool in_b = false;
  auto readers = lease_readers(part);
  auto result = pass(part, CompareMode::kSquaresA, *readers, in_b);
  if (result) products_[index] = result->products;
  if (!result && result.error().kind == ErrorKind::kCancelled)
    return tl::unexpected<Error>(std::move(result).error());
  if (!result) record_read_error(index, std::move(result).error(), in_b);
  return {};
}

void ValuePass::finish(std::size_t tensor) {
  ComparedPairResult& seen = seen_[tensor];
  const TensorSums& sums = sums_[tensor];
  const TensorPair& pair = asked_[tensor].tensor;
  Dtype a = both_.a.dtype(pair.a), b = both_.b.dtype(pair.b);
  seen.values.by_value = a != b;
  seen.values.unread = sums.expected - std::min(sums.expected, seen.values.compared);
  if (seen.values.elements.differing == 0) return;
  ElementProducts products;
  for (std::uint32_t part = sums.first_part; part < sums.last_part; ++part)
    products += products_[part];
  if (seen.values.unread == 0 && !seen.error) seen.values.cosine = products.cosine();
  FirstDifference first;
  std::uint64_t flat = sums.first.index;
  ExtentsView shape = both_.a.shape(pair.a);
  first.index.resize(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    first.index[d] = static_cast<std::int64_t>(flat % static_cast<std::uint64_t>(shape[d]));
    flat /= static_cast<std::uint64_t>(shape[d]);
  }
  first.a = element_text(a, sums.first.a, 0);
  first.b = element_text(b, sums.first.b, 0);
  seen.values.first = std::move(first);
}

Result<std::vector<ComparedPairResult>> ValuePass::run() {
  sums_.resize(asked_.size());
  seen_.resize(asked_.size());
  cut();
  forecast();
  is_equal_.resize(parts_.size());
  products_.resize(parts_.size());
  SHW_CHECK(parallel_for(parts_.size(), [&](std::size_t i) { return look(i); }));
  SHW_CHECK(parallel_for(parts_.size(), [&](std::size_t i) { return add_squares(i); }));
  for (std::size_t t = 0; t < asked_.size(); ++t) finish(t);
  return std::move(seen_);
}

}  // namespace

CompareShares shares_of(std::uint64_t memory) {
  // Per thread and side: a piece, a held block, and its copy while decoding.
  const std::uint64_t each = memory / 2 / (2 * worker_count()) / 3;
  CompareShares shares;
  shares.piece = std::clamp(each / 4096 * 4096, std::uint64_t{4096}, kPieceBytes);
  shares.block = std::clamp(each / 4096 * 4096, std::uint64_t{4096}, kBlockBytes);
  std::uint64_t taken = (shares.piece + 2 * shares.block) * 2 * worker_count();
  shares.decoded = memory - std::min(memory, taken);
  return shares;
}

Result<std::vector<ComparedPairResult>> compare_values(const BothCheckpoints& both,
                                                       const std::vector<RequestedPair>& asked,
                                                       std::uint64_t memory, Progress* progress,
                                                       std::optional<Tolerance> tolerance) {
  return ValuePass(both, asked, memory, progress, tolerance).run();
}

}  // namespace shw

#include "core/facts/values/many_values.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <optional>

#include "core/base/parallel.h"
#include "core/base/parallel_batches.h"
#include "core/facts/values/value_reader.h"
#include "core/formats/items/disk_order.h"
#include "core/formats/items/element_pass.h"

namespace shw {
namespace {

// The first elements of the first tile decide for most tensors.
constexpr std::int64_t kFirstElements = 4096;
constexpr std::int64_t kElementsAtOnce = 1 << 20;

// Distinct values of a tensor as bits, sorted, up to the number needed. Threads merge
// theirs.
struct ObservedValues {
  std::mutex guard;
  std::vector<std::uint64_t> values;
  std::atomic<bool> has_many{false};
};

// A part of a tile that is read for a tensor.
struct RequestedPart {
  std::uint32_t tensor = 0;  // index in the requested tensors
  ChunkId chunk{};
  ElementRange range;
};

class DistinctValueCounter {
 public:
  DistinctValueCounter(const CheckInput& input, std::span<const TensorId> tensors, std::size_t few)
      : input_(input), tensors_(tensors), few_(few), seen_(tensors.size()) {}

  std::vector<bool> find() {
    read(first_parts());
    read(parts_of_undecided_tensors());
    std::vector<bool> found;
    for (const ObservedValues& one : seen_) found.push_back(one.has_many);
    return found;
  }

 private:
  std::int64_t count_in(ChunkId chunk) const {
    return volume(input_.checkpoint.sizes(chunk)).value_or(0);
  }

  std::vector<RequestedPart> first_parts() const {
    std::vector<RequestedPart> parts;
    for (std::uint32_t i = 0; i < tensors_.size(); ++i) {
      for (ChunkId chunk : input_.checkpoint.chunks(tensors_[i])) {
        if (count_in(chunk) == 0) continue;
        parts.push_back({i, chunk, {0, std::min(count_in(chunk), kFirstElements)}});
        break;
      }
    }
    return parts;
  }

  std::vector<RequestedPart> parts_of_undecided_tensors() const {
    std::vector<RequestedPart> parts;
    for (std::uint32_t i = 0; i < tensors_.size(); ++i) {
      if (seen_[i].has_many) continue;
      for (ChunkId chunk : input_.checkpoint.chunks(tensors_[i])) {
        const std::int64_t count = count_in(chunk);
        for (std::int64_t first = 0; first < count; first += kElementsAtOnce)
          parts.push_back({i, chunk, {first, std::min(first + kElementsAtOnce, count)}});
      }
    }
    return parts;
  }

  void read(std::vector<RequestedPart> parts) {
    sort_parts_by_disk_order(parts);
    std::vector<std::uint64_t> costs;
    for (const RequestedPart& part : parts)
      costs.push_back(static_cast<std::uint64_t>(part.range.last - part.range.first) *
                      size_of(input_.checkpoint.dtype(tensors_[part.tensor])));
    Pool<ItemCursor> items([&] { return std::make_unique<ItemCursor>(input_.checkpoint, 0); });
    // The loop only fails if it is cancelled.
    static_cast<void>(parallel_for_batched(costs, [&](std::size_t i) -> Status {
      if (is_cancelled(input_.progress)) return cancelled_error();
      read(parts[i], *items.take());
      return {};
    }));
  }

  void sort_parts_by_disk_order(std::vector<RequestedPart>& parts) const {
    std::vector<ChunkId> chunks;
    for (const RequestedPart& part : parts) chunks.push_back(part.chunk);
    std::vector<RequestedPart> ordered;
    for (std::uint32_t i : order_on_disk(input_.checkpoint, chunks)) ordered.push_back(parts[i]);
    parts = std::move(ordered);
  }

  void read(const RequestedPart& part, ItemCursor& items) {
    ObservedValues& seen = seen_[part.tensor];
    if (seen.has_many) return;
    const Dtype dtype = input_.checkpoint.dtype(tensors_[part.tensor]);
    std::optional<std::uint64_t> last;  // for constants, every value equals the previous one
    ExtentVisitor pass;
    pass.bytes = [&](BytesView bytes) -> Status {
      const std::size_t count = bytes.size() / size_of(dtype);
      for (std::size_t i = 0; i < count && !seen.has_many; ++i) {
        const auto bits = std::bit_cast<std::uint64_t>(value_at(dtype, bytes, i));
        if (last != bits) add(bits, seen);
        last = bits;
      }
      return {};
    };
    pass.hole = [&](std::uint64_t) -> Status {
      add(std::bit_cast<std::uint64_t>(0.0), seen);
      return {};
    };
    auto alike = [&](BytesView element, std::uint64_t) { return pass.bytes(element); };
    // bad-record and not-looked-at report damaged and unreadable items.
    static_cast<void>(stream_elements(items, part.chunk, part.range, pass, nullptr, alike));
  }

  void add(std::uint64_t value, ObservedValues& seen) const {
    std::lock_guard lock(seen.guard);
    auto at = std::lower_bound(seen.values.begin(), seen.values.end(), value);
    if (at != seen.values.end() && *at == value) return;
    seen.values.insert(at, value);
    if (seen.values.size() > few_) seen.has_many = true;
  }

  const CheckInput& input_;
  const std::span<const TensorId> tensors_;
  const std::size_t few_;
  std::vector<ObservedValues> seen_;
};

}  // namespace

std::vector<bool> have_more_values_than(const CheckInput& input, std::span<const TensorId> tensors,
                                        std::size_t few) {
  return DistinctValueCounter(input, tensors, few).find();
}

}  // namespace shw

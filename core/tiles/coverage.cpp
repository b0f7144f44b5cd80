#include "core/tiles/coverage.h"

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/parallel.h"

namespace shw {
namespace {

// True if the chunks follow one another along one dimension and fill the others, as FSDP saves
// them. Needs no memory; 3.5 million chunks take about 30 ms.
bool is_cut_along_one_dim(const Checkpoint& checkpoint, TensorId tensor) {
  ExtentsView shape = checkpoint.shape(tensor);
  std::size_t along = shape.size();
  std::int64_t reached = 0;  // -1: one chunk holds everything
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    ExtentsView offsets = checkpoint.offsets(chunk), sizes = checkpoint.sizes(chunk);
    bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
    if (empty) continue;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (offsets[d] == 0 && sizes[d] == shape[d]) continue;
      if (along == shape.size()) along = d;
      if (along != d) return false;
    }
    if (along == shape.size()) {
      // The chunk is the whole tensor: any other chunk overlaps it.
      if (reached != 0) return false;
      reached = -1;
      continue;
    }
    if (reached < 0 || offsets[along] != reached) return false;
    reached += sizes[along];
  }
  return reached == -1 || (along < shape.size() && reached == shape[along]);
}

// Sorted distinct split positions along dimension `d`.
std::vector<std::int64_t> cuts_of(const FlatBoxes& boxes, std::size_t d) {
  std::vector<std::int64_t> cuts;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    std::int64_t low = boxes.low[i * boxes.ndim + d];
    if (cuts.empty() || cuts.back() != low) cuts.push_back(low);
  }
  if (!std::is_sorted(cuts.begin(), cuts.end())) std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

bool are_equal_except_along(const Box& a, const Box& b, std::size_t along) {
  for (std::size_t d = 0; d < a.offsets.size(); ++d) {
    if (d != along && (a.offsets[d] != b.offsets[d] || a.sizes[d] != b.sizes[d])) return false;
  }
  return true;
}

bool is_less_except_along(const Box& a, const Box& b, std::size_t along) {
  for (std::size_t d = 0; d < a.offsets.size(); ++d) {
    if (d == along) continue;
    if (a.offsets[d] != b.offsets[d]) return a.offsets[d] < b.offsets[d];
    if (a.sizes[d] != b.sizes[d]) return a.sizes[d] < b.sizes[d];
  }
  return a.offsets[along] < b.offsets[along];
}

}  // namespace

void FlatBoxes::add(ExtentsView offsets, ExtentsView sizes, std::uint32_t from) {
  for (std::size_t d = 0; d < ndim; ++d) {
    low.push_back(offsets[d]);
    high.push_back(offsets[d] + sizes[d]);
  }
  source.push_back(from);
}

Box FlatBoxes::box(std::size_t i) const {
  Box out{Extents(ndim), Extents(ndim)};
  for (std::size_t d = 0; d < ndim; ++d) {
    out.offsets[d] = low[i * ndim + d];
    out.sizes[d] = high[i * ndim + d] - low[i * ndim + d];
  }
  return out;
}

bool is_full_grid(ExtentsView shape, const FlatBoxes& boxes) {
  std::vector<std::vector<std::int64_t>> cuts(shape.size());
  std::size_t cells = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    cuts[d] = cuts_of(boxes, d);
    if (cuts[d].empty() || cuts[d].front() != 0) return false;
    auto product = checked_mul(cells, cuts[d].size());
    if (!product || *product > boxes.size()) return false;
    cells = *product;
  }
  if (cells != boxes.size()) return false;
  std::vector<bool> seen(cells, false);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    std::size_t cell = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::int64_t low = boxes.low[i * boxes.ndim + d], high = boxes.high[i * boxes.ndim + d];
      auto at = std::lower_bound(cuts[d].begin(), cuts[d].end(), low);
      std::int64_t next = at + 1 == cuts[d].end() ? shape[d] : *(at + 1);
      if (high != next) return false;
      cell = cell * cuts[d].size() + static_cast<std::size_t>(at - cuts[d].begin());
    }
    if (seen[cell]) return false;
    seen[cell] = true;
  }
  return true;
}

FlatBoxes boxes_of(const Checkpoint& checkpoint, TensorId tensor) {
  ExtentsView shape = checkpoint.shape(tensor);
  FlatBoxes boxes;
  boxes.ndim = shape.size();
  Checkpoint::ChunkRange chunks = checkpoint.chunks(tensor);
  boxes.low.reserve(chunks.size() * boxes.ndim);
  boxes.high.reserve(chunks.size() * boxes.ndim);
  boxes.source.reserve(chunks.size());
  std::vector<std::int64_t> offsets(shape.size()), sizes(shape.size());
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    ExtentsView low = checkpoint.offsets(chunks[i]), extent = checkpoint.sizes(chunks[i]);
    if (low.size() != shape.size() || extent.size() != shape.size()) continue;
    bool empty = false;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::int64_t end = checked_add(low[d], extent[d]).value_or(shape[d]);
      offsets[d] = std::clamp<std::int64_t>(low[d], 0, std::max<std::int64_t>(shape[d], 0));
      sizes[d] = std::min(end, shape[d]) - offsets[d];
      empty = empty || sizes[d] <= 0;
    }
    if (!empty) boxes.add(offsets, sizes, i);
  }
  return boxes;
}

TensorTiling compute_tiling(const Checkpoint& checkpoint, TensorId tensor) {
  ExtentsView shape = checkpoint.shape(tensor);
  bool inside = true;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    ExtentsView offsets = checkpoint.offsets(chunk), sizes = checkpoint.sizes(chunk);
    if (offsets.size() != shape.size() || sizes.size() != shape.size())
      return {Tiling::kMalformed, {}};
    inside = inside && is_inside(offsets, sizes, shape);
  }
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent < 0; }))
    return {Tiling::kMalformed, {}};
  bool holds_nothing = std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (inside && (holds_nothing || is_cut_along_one_dim(checkpoint, tensor)))
    return {Tiling::kExact, {}};
  FlatBoxes boxes = boxes_of(checkpoint, tensor);
  if (inside && is_full_grid(shape, boxes)) return {Tiling::kExact, {}};
  TensorTiling out{Tiling::kInexact, find_defects(shape, boxes)};
  const TilingDefects& defects = out.defects;
  if (inside && defects.gaps.empty() && defects.overlaps.empty() && defects.complete)
    out.tiling = Tiling::kExact;
  return out;
}

std::vector<TensorTiling> compute_tilings(const Checkpoint& checkpoint, const Progress* progress) {
  std::vector<TensorTiling> tilings(checkpoint.tensor_count());
  parallel_for_ranges(tilings.size(), 64, [&](std::size_t first, std::size_t last) {
    for (std::size_t t = first; t < last && !is_cancelled(progress); ++t)
      tilings[t] = compute_tiling(checkpoint, TensorId{static_cast<std::uint32_t>(t)});
  });
  return tilings;
}

void merge_boxes(std::vector<Box>& boxes) {
  if (boxes.size() < 2 || boxes.front().offsets.empty()) return;
  std::size_t ndim = boxes.front().offsets.size();
  // Merges boxes from the last dimension on: rows become planes. Repeats while boxes become equal.
  for (std::size_t before = boxes.size() + 1; boxes.size() < before && boxes.size() > 1;) {
    before = boxes.size();
    for (std::size_t d = ndim; d-- > 0;) {
      std::sort(boxes.begin(), boxes.end(),
                [d](const Box& a, const Box& b) { return is_less_except_along(a, b, d); });
      std::size_t kept = 0;
      for (std::size_t i = 1; i < boxes.size(); ++i) {
        Box& last = boxes[kept];
        if (are_equal_except_along(last, boxes[i], d) &&
            last.offsets[d] + last.sizes[d] == boxes[i].offsets[d]) {
          last.sizes[d] += boxes[i].sizes[d];
        } else if (++kept != i) {
          boxes[kept] = std::move(boxes[i]);
        }
      }
      boxes.resize(kept + 1);
    }
  }
  std::sort(boxes.begin(), boxes.end(),
            [](const Box& a, const Box& b) { return a.offsets < b.offsets; });
}

}  // namespace shw

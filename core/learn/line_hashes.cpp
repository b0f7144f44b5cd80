#include "core/learn/line_hashes.h"

#include <algorithm>
#include <cstring>

#include "core/base/hash.h"
#include "core/base/parallel.h"
#include "core/facts/values/tensor_pieces.h"
#include "core/formats/items/item_cursor.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

constexpr std::int64_t kMinLineBytes = 16;
// Bytes of a tensor in a thread's memory, and bytes that one task reads.
constexpr std::int64_t kLineBlockBytes = std::int64_t{512} << 10;
constexpr std::uint64_t kLineTaskBytes = std::uint64_t{64} << 20;
// Limit on lines: more hashes with their table would take over 4 GiB, so further tensors are not
// searched.
constexpr std::int64_t kMaxLines = std::int64_t{1} << 26;
// Limit on the length of a line, which must be in memory as a whole.
constexpr std::int64_t kMaxLineBytes = std::int64_t{256} << 20;

std::uint64_t hash_of_line(BytesView line, std::size_t width) {
  const bool is_constant = line.size() <= width ||
                           std::memcmp(line.data(), line.data() + width, line.size() - width) == 0;
  const std::uint64_t hash = hash_of(line).low;
  return is_constant ? hash & ~std::uint64_t{1} : hash | 1;
}

// Blocks [first, last) of a tensor.
struct LineTask {
  std::size_t asked = 0;
  std::uint64_t first = 0, last = 0;
};

class LinePass {
 public:
  LinePass(const Checkpoint& checkpoint, std::span<const LineQuery> asked, Progress* progress)
      : checkpoint_(checkpoint), asked_(asked), progress_(progress), out_(asked.size()) {}

  Result<std::vector<LineHashes>> run() {
    std::int64_t lines = 0;
    for (std::size_t i = 0; i < asked_.size(); ++i) add_tasks(i, lines);
    if (progress_ != nullptr) progress_->begin(Phase::kReadingBytes, bytes_, true);
    std::vector<std::uint8_t> failed(tasks_.size(), 0);
    SHW_CHECK(parallel_for(tasks_.size(), [&](std::size_t i) -> Status {
      if (is_cancelled(progress_)) return cancelled_error();
      failed[i] = run_task(tasks_[i]) ? 0 : 1;
      return {};
    }));
    if (is_cancelled(progress_)) return cancelled_error();
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (failed[i] != 0) out_[tasks_[i].asked] = {};
    }
    return std::move(out_);
  }

 private:
  ExtentsView shape_of(std::size_t i) const { return checkpoint_.shape(asked_[i].tensor); }
  Dtype dtype_of(std::size_t i) const {
    return asked_[i].dtype == Dtype::kUnknown ? checkpoint_.dtype(asked_[i].tensor)
                                              : asked_[i].dtype;
  }
  // Blocks in reading order: contiguous rows, or columns of one matrix.
  Blocks blocks_of(std::size_t i) const {
    const Extents shape = copy_of(shape_of(i));
    const auto width = static_cast<std::int64_t>(size_of(dtype_of(i)));
    const std::int64_t most = std::max<std::int64_t>(kLineBlockBytes / width, 1);
    if (asked_[i].kind == LineKind::kRows) {
      const std::size_t counted = shape.size() - dims_in_line(shape, size_of(dtype_of(i)));
      Extents step =
          block_sizes(ExtentsView(shape).first(counted),
                      std::max<std::int64_t>(most / line_elements(shape, counted), 1), {});
      step.insert(step.end(), shape.begin() + static_cast<std::ptrdiff_t>(counted), shape.end());
      return {shape, step};
    }
    Extents step(shape.size(), 1);
    const std::int64_t rows = shape[shape.size() - 2];
    step[shape.size() - 2] = rows;
    step.back() = std::clamp<std::int64_t>(most / std::max<std::int64_t>(rows, 1), 1, shape.back());
    return {shape, step};
  }
  static std::int64_t line_elements(const Extents& shape, std::size_t counted) {
    return std::max<std::int64_t>(volume(ExtentsView(shape).subspan(counted)).value_or(1), 1);
  }

  void add_tasks(std::size_t i, std::int64_t& lines) {
    const auto elements = volume(shape_of(i));
    const std::size_t width = size_of(dtype_of(i));
    const Extents shape = copy_of(shape_of(i));
    const bool has_columns = shape.size() >= 2;
    // An empty tensor needs no reading.
    if (elements == 0 && width != 0) out_[i] = {copy_of(shape_of(i)), {}, true};
    if (!elements || *elements == 0 || width == 0) return;
    if (asked_[i].kind == LineKind::kColumns && !has_columns) return;
    Extents dims = shape;
    if (asked_[i].kind == LineKind::kRows)
      dims.resize(shape.size() - dims_in_line(shape, width));
    else
      dims.erase(dims.end() - 2);
    const std::int64_t count = volume(dims).value_or(kMaxLines);
    // The shape alone may claim many lines, so memory is allocated only for tensors with data.
    if (count > kMaxLines - lines ||
        *elements / std::max<std::int64_t>(count, 1) >
            kMaxLineBytes / static_cast<std::int64_t>(width) ||
        !pieces_of(checkpoint_, asked_[i].tensor))
      return;
    lines += count;
    bytes_ += static_cast<std::uint64_t>(*elements) * size_of(checkpoint_.dtype(asked_[i].tensor));
    out_[i] = {dims, std::vector<std::uint64_t>(static_cast<std::size_t>(count), 0), true};
    const std::uint64_t bytes = static_cast<std::uint64_t>(*elements) * width;
    const std::uint64_t blocks = blocks_of(i).count();
    const bool is_cut = bytes > kLineTaskBytes && is_stored(asked_[i].tensor);
    const std::uint64_t step =
        is_cut ? std::max<std::uint64_t>(blocks * kLineTaskBytes / bytes, 1) : blocks;
    for (std::uint64_t at = 0; at < blocks; at += step)
      tasks_.push_back({i, at, std::min(blocks, at + step)});
  }
  // True if boxes of all its chunks can be read separately.
  bool is_stored(TensorId tensor) const {
    ItemCursor items(checkpoint_, 0);
    for (ChunkId chunk : checkpoint_.chunks(tensor)) {
      const auto storage = items.storage(chunk);
      if (!storage || !storage->is_stored) return false;
    }
    return true;
  }

  bool run_task(const LineTask& task) {
    const LineQuery& asked = asked_[task.asked];
    const auto tensor = pieces_of(checkpoint_, asked.tensor, asked.dtype, progress_);
    if (!tensor) return false;
    Blocks blocks = blocks_of(task.asked);
    blocks.go_to(task.first);
    Bytes bytes, turned;
    for (std::uint64_t at = task.first; at < task.last && blocks.next(); ++at) {
      if (is_cancelled(progress_) || !tensor->read(blocks.block, bytes)) return false;
      asked.kind == LineKind::kRows ? add_rows(task.asked, blocks.block, bytes)
                                    : add_columns(task.asked, blocks.block, bytes, turned);
    }
    return true;
  }
  void add_rows(std::size_t i, const Box& block, BytesView bytes) {
    LineHashes& lines = out_[i];
    const Extents strides = row_major_strides(lines.dims);
    std::size_t at = 0;
    for (std::size_t d = 0; d < lines.dims.size(); ++d)
      at += static_cast<std::size_t>(block.offsets[d] * strides[d]);
    const std::size_t width = size_of(dtype_of(i));
    const std::size_t length =
        width * static_cast<std::size_t>(line_elements(copy_of(shape_of(i)), lines.dims.size()));
    for (std::size_t byte = 0; byte + length <= bytes.size(); byte += length)
      lines.hashes[at++] = hash_of_line(bytes.subspan(byte, length), width);
  }
  void add_columns(std::size_t i, const Box& block, BytesView bytes, Bytes& turned) {
    LineHashes& lines = out_[i];
    const std::size_t width = size_of(dtype_of(i));
    const std::size_t ndim = block.sizes.size();
    const auto rows = static_cast<std::size_t>(block.sizes[ndim - 2]);
    const auto columns = static_cast<std::size_t>(block.sizes[ndim - 1]);
    transpose_bytes(bytes, rows, columns, width, turned);
    const Extents strides = row_major_strides(lines.dims);
    std::int64_t at = block.offsets[ndim - 1];
    for (std::size_t d = 0; d + 2 < ndim; ++d) at += block.offsets[d] * strides[d];
    for (std::size_t c = 0; c < columns; ++c)
      lines.hashes[static_cast<std::size_t>(at) + c] =
          hash_of_line(BytesView(turned).subspan(c * rows * width, rows * width), width);
  }
  static void transpose_bytes(BytesView bytes, std::size_t rows, std::size_t columns,
                              std::size_t width, Bytes& turned) {
    turned.resize(bytes.size());
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c)
        std::memcpy(turned.data() + (c * rows + r) * width,
                    bytes.data() + (r * columns + c) * width, width);
    }
  }

  const Checkpoint& checkpoint_;
  std::span<const LineQuery> asked_;
  Progress* progress_;
  std::vector<LineHashes> out_;
  std::vector<LineTask> tasks_;
  std::uint64_t bytes_ = 0;  // total to read
};

}  // namespace

std::size_t dims_in_line(ExtentsView shape, std::size_t width) {
  if (shape.empty()) return 0;
  std::size_t merged = 1;
  auto bytes = shape.back() * static_cast<std::int64_t>(width);
  while (merged < shape.size() && bytes < kMinLineBytes) {
    bytes *= shape[shape.size() - 1 - merged];
    ++merged;
  }
  return merged;
}

Result<std::vector<LineHashes>> line_hashes(const Checkpoint& checkpoint,
                                            std::span<const LineQuery> asked, Progress* progress) {
  return LinePass(checkpoint, asked, progress).run();
}

}  // namespace shw

// Reads a slice of a tensor box by box and summarises it in a SliceValues; or two slices and their
// difference.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/progress.h"
#include "core/formats/items/item_cursor.h"
#include "core/tensor/statistics_counter.h"
#include "core/verbs/values/slice_numbers.h"

namespace shw::verbs {

class SliceReader {
 public:
  SliceReader(const Checkpoint& checkpoint, TensorId tensor, SliceValues& out, Progress* progress);
  // Differences B - A as doubles into `out.values`, for the same slice of tensors with one shape.
  SliceReader(SliceReader& a, SliceReader& b, ValuesDifference& out, Progress* progress);

  Status read_statistics();
  Status fill_table();

  // State of an element; a block has some elements of the slice. Element (r, c) of the block has
  // the index r * row_stride + c * column_stride.
  enum : std::uint8_t { kMissing, kThere, kUnread };
  struct Block {
    std::int64_t rows = 0, columns = 0, row_stride = 1, column_stride = 1;
    bool ends_row = true;  // the block contains the row's last column
    BytesView bytes;
    std::span<const std::uint8_t> state;  // one per element
  };
  // Visits all elements row by row, in blocks of whole rows, or several blocks per wide row.
  Status each_block(std::int64_t most_elements, const std::function<Status(const Block&)>& visit);

 private:
  struct Run {
    std::int64_t first = 0, last = 0;
  };
  // A box of the tensor, assembled from the chunks that overlap it.
  struct Patch {
    Box box;
    Bytes bytes;
    std::vector<std::uint8_t> state;  // one per element
  };

  static std::vector<Run> evenly_spaced_runs(std::int64_t extent, std::int64_t wanted,
                                             std::int64_t most_runs);
  static std::int64_t total(const std::vector<Run>& runs);
  Box box_of(ChunkId chunk) const;
  Box box_of(Run rows, Run columns) const;
  Result<Patch> read(const Box& box);
  Result<Patch> read_difference(const Box& box);
  void count(const Patch& patch, Run rows, Run columns);
  ValueCell& cell(std::int64_t row, std::int64_t column);

  const Checkpoint* checkpoint_ = nullptr;  // null: for a difference
  std::optional<ItemCursor> reader_;
  SliceReader *a_ = nullptr, *b_ = nullptr;
  ValuesDifference* difference_ = nullptr;
  SliceValues& out_;
  Progress* progress_;
  std::size_t element_ = 0;
  std::vector<ChunkId> chunks_;
  StatisticsCounter counter_;
  std::vector<double> numbers_;
};

}  // namespace shw::verbs

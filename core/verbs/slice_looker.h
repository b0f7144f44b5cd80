// Reads a slice of a tensor box by box and counts it into a SliceValues; or two of them, and counts
// how they differ.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/progress.h"
#include "core/formats/box_reader.h"
#include "core/tensor/statistics_counter.h"
#include "core/verbs/slice_numbers.h"

namespace shw::verbs {

class SliceLooker {
 public:
  SliceLooker(const Checkpoint& checkpoint, TensorId tensor, SliceValues& out, Progress* progress);
  // Of B less A, as doubles into `out.values`: the same slice of tensors of one shape.
  SliceLooker(SliceLooker& a, SliceLooker& b, ValuesDifference& out, Progress* progress);

  Status look();
  Status fill_table();

  // Some elements of the slice, read. Element (r, c) of the block has the index
  // r * row_stride + c * column_stride.
  enum : std::uint8_t { kMissing, kThere, kUnread };
  struct Block {
    std::int64_t rows = 0, columns = 0, row_stride = 1, column_stride = 1;
    bool ends_row = true;  // the row's last column is in it
    BytesView bytes;
    std::span<const std::uint8_t> state;  // of each element
  };
  // All elements, row by row: blocks of whole rows, or several blocks for one wide row.
  Status each_block(std::int64_t most_elements, const std::function<Status(const Block&)>& visit);

 private:
  struct Run {
    std::int64_t first = 0, last = 0;
  };
  // A box of the tensor, put together from the chunks that cross it.
  struct Patch {
    Box box;
    Bytes bytes;
    std::vector<std::uint8_t> state;  // an element each
  };

  static std::vector<Run> spaced_runs(std::int64_t extent, std::int64_t wanted,
                                      std::int64_t most_runs);
  static std::int64_t total(const std::vector<Run>& runs);
  Box box_of(ChunkId chunk) const;
  Box box_of(Run rows, Run columns) const;
  Result<Patch> read(const Box& box);
  Result<Patch> read_difference(const Box& box);
  void count(const Patch& patch, Run rows, Run columns);
  ValueCell& cell(std::int64_t row, std::int64_t column);

  const Checkpoint* checkpoint_ = nullptr;  // null: of a difference
  std::optional<BoxReader> reader_;
  SliceLooker *a_ = nullptr, *b_ = nullptr;
  ValuesDifference* difference_ = nullptr;
  SliceValues& out_;
  Progress* progress_;
  std::size_t element_ = 0;
  std::vector<ChunkId> chunks_;
  StatisticsCounter counter_;
  std::vector<double> numbers_;
};

}  // namespace shw::verbs

#include "core/repair/lower/lower_to_program.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "core/formats/box_reader.h"
#include "core/repair/lower/lower.h"
#include "core/tensor/strided_copy.h"
#include "core/transform/check_origins.h"

namespace shw {
namespace {

// A chunk whose elements a job reads: its source, and where its elements lie in it.
struct HeldChunk {
  SourceId source{};
  PartStorage storage;
};

// Where the elements of chunks lie that pieces are taken of: read file by file and on every core.
// There may be millions of them, which are 44 bytes each here and 160 in a map.
class HeldChunks {
 public:
  // In the order in which they are asked for: of those that cannot be read the first one is told.
  Status read(const Checkpoint& checkpoint, const std::vector<ChunkId>& chunks) {
    row_of_.assign(checkpoint.chunk_count(), kNoRow);
    rows_.resize(chunks.size());
    for (std::uint32_t i = 0; i < chunks.size(); ++i) row_of_[index_of(chunks[i])] = i;
    std::mutex guard;
    auto keep = [&](std::size_t i, const ChunkStorage& storage) {
      std::lock_guard lock(guard);
      rows_[i] = {storage.offset, storage.length,  storage.first,    keep_strides(storage),
                  storage.file,   SourceId::kNone, storage.is_stored};
    };
    return each_storage(checkpoint, chunks, keep, nullptr, AfterError::kStop);
  }
  bool has(ChunkId chunk) const {
    return index_of(chunk) < row_of_.size() && row_of_[index_of(chunk)] != kNoRow;
  }
  SourceId& source(ChunkId chunk) { return rows_[row_of_[index_of(chunk)]].source; }
  ChunkStorage storage(ChunkId chunk) const {
    const Row& row = rows_[row_of_[index_of(chunk)]];
    const std::int64_t* strides = strides_.data() + row.strides + 1;
    return {row.is_stored,
            row.file,
            row.offset,
            row.length,
            Extents(strides, strides + strides_[row.strides]),
            row.first};
  }

 private:
  static constexpr std::uint32_t kNoRow = 0xFFFFFFFFu;
  struct Row {
    std::uint64_t offset = 0, length = 0;
    std::int64_t first = 0;
    std::uint32_t strides = 0;  // in strides_: how many, then those
    FileId file = FileId::kNone;
    SourceId source = SourceId::kNone;
    bool is_stored = true;
  };

  // Chunks that lie side by side have the same ones, nearly all of them.
  std::uint32_t keep_strides(const ChunkStorage& storage) {
    const Extents& own = storage.strides;
    const bool is_last = !strides_.empty() &&
                         static_cast<std::size_t>(strides_[last_]) == own.size() &&
                         std::equal(own.begin(), own.end(), strides_.begin() + last_ + 1);
    if (is_last) return last_;
    last_ = static_cast<std::uint32_t>(strides_.size());
    strides_.push_back(static_cast<std::int64_t>(own.size()));
    strides_.insert(strides_.end(), own.begin(), own.end());
    return last_;
  }

  std::vector<Row> rows_;
  std::vector<std::uint32_t> row_of_;  // by chunk
  std::vector<std::int64_t> strides_;
  std::uint32_t last_ = 0;
};

struct Lowering {
  const Checkpoint& checkpoint;
  const Plan& plan;
  ProgramBuilder builder{};
  std::vector<const Checkpoint*> inputs{&checkpoint};
  HeldChunks held{};
  std::map<std::pair<std::uint32_t, ChunkId>, HeldChunk> held_to_fill{};  // what is no piece's

  std::uint32_t input_of(const Checkpoint& input) {
    auto found = std::find(inputs.begin(), inputs.end(), &input);
    if (found == inputs.end()) found = inputs.insert(found, &input);
    return static_cast<std::uint32_t>(found - inputs.begin());
  }

  SourceId add_source(std::uint32_t input, ChunkId chunk, const ChunkStorage& storage) {
    const std::string& file = inputs[input]->file(storage.file).path;
    return storage.is_stored ? builder.add_stored(input, file, storage.offset, storage.length)
                             : builder.add_item(input, file, storage.offset, storage.length,
                                                static_cast<std::uint32_t>(chunk));
  }

  // Of all pieces of new chunks that have a place.
  Status read_pieces(std::span<const PayloadPlace> places) {
    std::vector<ChunkId> chunks;
    std::vector<bool> is_asked(checkpoint.chunk_count(), false);
    std::size_t numbers = 0;
    for (const PayloadPlace& place : places) {
      const PlannedTensor& tensor = plan.tensors[place.tensor];
      numbers += 3 * tensor.shape.size();
      for (const Piece& piece : tensor.chunks[place.chunk].pieces) {
        if (is_asked[index_of(piece.chunk)]) continue;
        is_asked[index_of(piece.chunk)] = true;
        chunks.push_back(piece.chunk);
      }
    }
    builder.expect(chunks.size(), places.size(), numbers);
    return held.read(checkpoint, chunks);
  }

  Result<HeldChunk> hold(const Checkpoint& holder, ChunkId chunk) {
    const std::uint32_t input = input_of(holder);
    const auto number = static_cast<std::uint32_t>(index_of(chunk));
    if (input == 0 && held.has(chunk)) {
      ChunkStorage storage = held.storage(chunk);
      SourceId& source = held.source(chunk);
      if (source == SourceId::kNone) source = add_source(input, chunk, storage);
      const std::string& file = holder.file(storage.file).path;
      return HeldChunk{source, {input, file, std::move(storage), number}};
    }
    auto [found, is_new] = held_to_fill.try_emplace({input, chunk});
    if (!is_new) return found->second;
    SHW_TRY(ChunkStorage storage, storage_of(holder, chunk));
    const SourceId source = add_source(input, chunk, storage);
    const std::string& file = holder.file(storage.file).path;
    found->second = {source, {input, file, std::move(storage), number}};
    return found->second;
  }

  // `from`, a box of the chunk, becomes the box of the output that begins at `at`; dim d of the
  // output is dim order[d] of the chunk.
  Status add_box(OutputId output, const Checkpoint& holder, ChunkId chunk, Dtype dtype,
                 const Box& from, const Extents& at, const Extents& order) {
    SHW_TRY(const HeldChunk held_chunk, hold(holder, chunk));
    Box to{at, from.sizes};
    const Extents& lies = held_chunk.storage.lies.strides;
    Extents strides = lies;
    std::int64_t first = held_chunk.storage.lies.first;
    for (std::size_t d = 0; d < at.size(); ++d) {
      first += from.offsets[d] * lies[d];
      std::size_t old = order.empty() ? d : static_cast<std::size_t>(order[d]);
      to.sizes[d] = from.sizes[old];
      strides[d] = lies[old];
    }
    builder.add_copy(output, to, held_chunk.source, dtype, first, strides);
    return {};
  }

  void add_side(OutputId output, const ExternalPiece& side) {
    SourceId source = builder.add_stored(0, side.file, side.offset, side.length);
    builder.add_copy(output, {side.at, side.sizes}, source, side.dtype, 0,
                     byte_strides(side.sizes, size_of(side.dtype)));
  }

  // `box` of the output from the same elements of another tensor, which holds all of them; of those
  // that it holds twice the last one counts.
  Status add_filled(OutputId output, const PlannedTensor& tensor, const PlannedChunk& chunk,
                    const Box& box) {
    bool elsewhere = tensor.fill == Fill::kReference;
    const Checkpoint& holder = elsewhere ? *tensor.fill_source : checkpoint;
    auto from = holder.find(tensor.fill_from);
    if (!from) return cannot_lower(checkpoint, tensor.tensor, "there is nothing to fill it from");
    Box wanted = box;
    for (std::size_t d = 0; d < box.offsets.size(); ++d) wanted.offsets[d] += chunk.box.offsets[d];
    std::vector<Box> open{wanted};
    auto chunks = holder.chunks(*from);
    for (std::uint32_t i = chunks.size(); i-- > 0;) {
      Box saved = box_of(holder, chunks[i]);
      if (saved.offsets.size() != wanted.offsets.size()) continue;
      std::vector<Box> left;
      for (const Box& part : open) {
        auto common = part.sizes.empty() ? std::optional<Box>(part) : intersect(saved, part);
        if (!common) {
          left.push_back(part);
          continue;
        }
        Box source = *common;
        Extents at = common->offsets;
        for (std::size_t d = 0; d < at.size(); ++d) {
          source.offsets[d] -= saved.offsets[d];
          at[d] -= chunk.box.offsets[d];
        }
        SHW_CHECK(add_box(output, holder, chunks[i], holder.dtype(*from), source, at, {}));
        if (part.sizes.empty()) continue;
        for (Box& rest : subtract(part, *common)) left.push_back(std::move(rest));
      }
      open = std::move(left);
    }
    if (open.empty()) return {};
    return cannot_lower(checkpoint, tensor.tensor, "what it would be filled from has holes");
  }

  Result<OutputId> add_chunk(const PlannedTensor& tensor, const PlannedChunk& chunk) {
    Dtype dtype = checkpoint.dtype(tensor.tensor);
    OutputId output =
        builder.add_output(fqn_after(checkpoint, tensor), dtype, tensor.shape, chunk.box);
    for (const Piece& piece : chunk.pieces) {
      SHW_CHECK(add_box(output, checkpoint, piece.chunk, dtype, piece.source, piece.at,
                        piece.permutation));
    }
    for (const ExternalPiece& side : chunk.external) add_side(output, side);
    SHW_TRY(std::vector<Box> rest, rest_of(checkpoint, tensor, chunk));
    if (tensor.fill == Fill::kReference && tensor.fill_source == nullptr && !rest.empty())
      return cannot_lower(checkpoint, tensor.tensor, "there is nothing to fill it from");
    for (const Box& box : rest) {
      if (tensor.fill != Fill::kZero) SHW_CHECK(add_filled(output, tensor, chunk, box));
      if (tensor.fill == Fill::kZero) builder.add_zeros(output, box);
    }
    return output;
  }
};

// A piece of a chunk as a part of the new tensor: the terms in which the program is held against
// the plan.
Part part_of(const PlannedChunk& chunk, const Piece& piece, Dtype dtype) {
  Part part{{chunk.box.offsets, sizes_in_new(piece)}, FromChunk{0, piece.chunk}};
  for (std::size_t d = 0; d < piece.at.size(); ++d) part.box.offsets[d] += piece.at[d];
  part.first = piece.source.offsets;
  part.order = piece.permutation.empty() ? same_order(piece.at.size()) : piece.permutation;
  part.saved = dtype;
  return part;
}

// Fills are no part of it: what they stand for counts as lost.
Status check_pieces(Lowering& lowering, const LoweredPlan& lowered,
                    std::span<const PayloadPlace> places) {
  const Checkpoint& checkpoint = lowering.checkpoint;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const PlannedTensor& tensor = lowering.plan.tensors[places[i].tensor];
    const PlannedChunk& chunk = tensor.chunks[places[i].chunk];
    for (const Piece& piece : chunk.pieces) {
      SHW_TRY(const HeldChunk held, lowering.hold(checkpoint, piece.chunk));
      SHW_CHECK(check_origins(lowered.program, lowered.outputs[i],
                              part_of(chunk, piece, checkpoint.dtype(tensor.tensor)), chunk.box,
                              &held.storage, checkpoint.fqn(tensor.tensor)));
    }
  }
  return {};
}

}  // namespace

Result<LoweredPlan> lower_to_program(const Checkpoint& checkpoint, const Plan& plan,
                                     std::span<const PayloadPlace> places) {
  Lowering lowering{checkpoint, plan};
  SHW_CHECK(lowering.read_pieces(places));
  std::vector<OutputId> made, moved;
  for (const PayloadPlace& place : places) {
    const PlannedTensor& tensor = plan.tensors[place.tensor];
    SHW_TRY(OutputId output, lowering.add_chunk(tensor, tensor.chunks[place.chunk]));
    lowering.builder.place(output, place.file, place.offset);
    made.push_back(output);
  }
  LoweredPlan lowered;
  lowered.program = lowering.builder.take(&moved);
  SHW_CHECK(prove(lowered.program));
  for (OutputId output : made) lowered.outputs.push_back(moved[static_cast<std::size_t>(output)]);
  SHW_CHECK(check_pieces(lowering, lowered, places));
  lowered.inputs = std::move(lowering.inputs);
  return lowered;
}

}  // namespace shw

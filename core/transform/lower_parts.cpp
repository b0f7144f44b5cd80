#include "core/transform/lower_parts.h"

#include <algorithm>
#include <cassert>

#include "core/tensor/strided_copy.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

constexpr std::uint32_t kNoRow = 0xFFFFFFFFu;

// What a part's elements pass through, without the last dtype, which is the output's.
Result<ProgramBuilder::Change> change_of(const Part& part) {
  ProgramBuilder::Change change;
  std::size_t hops = 0;
  std::size_t begin = part.scaling ? 1 : 0;  // scaling itself leads to float32
  for (std::size_t i = begin; i + 1 < part.casts.size(); ++i) {
    if (hops == change.via.size())
      return fail(ErrorKind::kUnsupported, "it is cast more often than one pass can do");
    change.via[hops++] = part.casts[i];
  }
  return change;
}

std::int64_t extent_in(const Box& box, std::int64_t dim) {
  return dim < 0 ? 1 : box.sizes[static_cast<std::size_t>(dim)];
}

}  // namespace

Status PartLowering::prepare(std::uint32_t input, const std::vector<ChunkId>& chunks,
                             Progress* progress) {
  const Checkpoint& holder = *all_.inputs[input];
  places_.resize(std::max<std::size_t>(places_.size(), all_.inputs.size()));
  places_[input].resize(holder.chunk_count(), kNoRow);
  const std::size_t first_row = rows_.size();
  rows_.resize(first_row + chunks.size());
  std::size_t strides = strides_.size();
  for (ChunkId chunk : chunks) strides += holder.sizes(chunk).size();
  if (chunks.size() > 1) strides_.reserve(strides);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    places_[input][index_of(chunks[i])] = static_cast<std::uint32_t>(first_row + i);
    Row& row = rows_[first_row + i];
    row.strides = static_cast<std::uint32_t>(strides_.size());
    row.ndim = static_cast<std::uint16_t>(holder.sizes(chunks[i]).size());
    strides_.resize(strides_.size() + row.ndim);
  }
  auto keep = [&](std::size_t i, const ChunkStorage& storage) {
    Row& row = rows_[first_row + i];
    // It was read as what is recorded of it, which has as many dims.
    assert(storage.strides.size() == row.ndim);
    row.file = storage.file;
    row.is_stored = storage.is_stored;
    row.offset = storage.offset;
    row.length = storage.length;
    row.first = storage.first;
    std::copy(storage.strides.begin(), storage.strides.end(), strides_.begin() + row.strides);
  };
  auto read = each_storage(holder, chunks, keep, progress);
  if (read) return {};
  for (ChunkId chunk : chunks) places_[input][index_of(chunk)] = kNoRow;
  return read;
}

bool PartLowering::is_known(const FromChunk& from) const {
  std::size_t chunk = index_of(from.chunk);
  return from.input < places_.size() && chunk < places_[from.input].size() &&
         places_[from.input][chunk] != kNoRow;
}

PartStorage PartLowering::storage_at(const FromChunk& from) const {
  const Row& row = rows_[places_[from.input][index_of(from.chunk)]];
  PartStorage storage{from.input,
                      all_.inputs[from.input]->file(row.file).path,
                      {},
                      static_cast<std::uint32_t>(index_of(from.chunk))};
  ChunkStorage& lies = storage.lies;
  lies.is_stored = row.is_stored;
  lies.file = row.file;
  lies.offset = row.offset;
  lies.length = row.length;
  lies.first = row.first;
  lies.strides = copy_of(ExtentsView(strides_).subspan(row.strides, row.ndim));
  return storage;
}

Result<PartLowering::Held> PartLowering::hold(const FromChunk& from) {
  if (!is_known(from)) SHW_CHECK(prepare(from.input, {from.chunk}, nullptr));
  PartStorage storage = storage_at(from);
  Row& row = rows_[places_[from.input][index_of(from.chunk)]];
  if (row.source == SourceId::kNone)
    row.source =
        row.is_stored
            ? builder_.add_stored(from.input, storage.file, row.offset, row.length)
            : builder_.add_item(from.input, storage.file, row.offset, row.length, storage.chunk);
  return Held{row.source, std::move(storage)};
}

Result<PartStorage> PartLowering::storage_in(const FromFile& from, Dtype dtype) const {
  const auto& directory = all_.source().directory();
  if (directory == nullptr || !is_safe_relative_path(from.file))
    return fail(ErrorKind::kUsage, "is no file of the checkpoint", {from.file});
  Entry entry = directory->stat(from.file);
  bool inside = entry.kind == EntryKind::kFile && from.offset <= entry.size &&
                from.length <= entry.size - from.offset;
  if (!inside)
    return fail(ErrorKind::kDamaged, "does not hold the bytes that a step takes from it",
                {from.file, from.offset});
  PartStorage storage{0, from.file, {}, 0};
  storage.lies.offset = from.offset;
  storage.lies.length = from.length;
  storage.lies.strides = byte_strides(from.sizes, size_of(dtype));
  return storage;
}

Result<PartLowering::Held> PartLowering::hold_file(const FromFile& from, Dtype dtype) {
  SHW_TRY(PartStorage storage, storage_in(from, dtype));
  auto [known, is_new] = files_.try_emplace({from.file, from.offset, from.length}, SourceId::kNone);
  if (is_new) known->second = builder_.add_stored(0, from.file, from.offset, from.length);
  return Held{known->second, std::move(storage)};
}

Result<PartLowering::Held> PartLowering::hold(const Part& part) {
  const auto* chunk = std::get_if<FromChunk>(&part.from);
  return chunk != nullptr ? hold(*chunk) : hold_file(std::get<FromFile>(part.from), part.saved);
}

Result<PartLowering::Copy> PartLowering::copy_of_part(const Part& part, const Box& tile) {
  SHW_TRY(Held held, hold(part));
  const Extents& strides = held.storage.lies.strides;
  Copy copy{part.box, held.source, part.saved, held.storage.lies.first,
            Extents(part.order.size(), 0)};
  SHW_TRY(copy.change, change_of(part));
  for (std::size_t e = 0; e < part.first.size(); ++e) copy.first += part.first[e] * strides[e];
  for (std::size_t d = 0; d < part.order.size(); ++d) {
    copy.box.offsets[d] -= tile.offsets[d];
    if (part.order[d] >= 0) copy.strides[d] = strides[static_cast<std::size_t>(part.order[d])];
  }
  return copy;
}

Result<ProgramBuilder::Change> PartLowering::factor_at(const Scaling& scaling, const Extents& cell,
                                                       ProgramBuilder::Change change) {
  const ArrangedTensor& factors = *all_.factors[scaling.factors];
  Box one{cell, Extents(cell.size(), 1)};
  std::vector<Part> parts = parts_of_tile(factors, one);
  change.is_scaled = true;
  const auto* constant = parts.empty() ? nullptr : std::get_if<FromConstant>(&parts.front().from);
  if (constant != nullptr) {
    change.factor_bits = constant->bits[0];
    return change;
  }
  if (parts.size() != 1) return cannot_arrange(factors.fqn, "a factor of it lies nowhere");
  SHW_TRY(Copy copy, copy_of_part(parts.front(), one));
  change.factor = copy.source;
  change.factor_at = copy.first;
  return change;
}

// One copy a block: what lies in it has one factor.
Status PartLowering::add_scaled(const Part& part, const Box& tile, std::vector<Copy>& copies) {
  const Scaling& scaling = *part.scaling;
  std::size_t dims = scaling.block.size();
  Extents low(dims), count(dims);
  for (std::size_t e = 0; e < dims; ++e) {
    std::int64_t last = scaling.first[e] + extent_in(part.box, scaling.order[e]) - 1;
    low[e] = scaling.first[e] / scaling.block[e];
    count[e] = last / scaling.block[e] - low[e] + 1;
  }
  Blocks cells{count, Extents(dims, 1)};
  while (cells.next()) {
    Extents cell(dims);
    Box box = part.box;
    for (std::size_t e = 0; e < dims; ++e) {
      cell[e] = low[e] + cells.block.offsets[e];
      if (scaling.order[e] < 0) continue;
      auto d = static_cast<std::size_t>(scaling.order[e]);
      std::int64_t begin = std::max<std::int64_t>(cell[e] * scaling.block[e] - scaling.first[e], 0);
      std::int64_t end =
          std::min((cell[e] + 1) * scaling.block[e] - scaling.first[e], part.box.sizes[d]);
      box.offsets[d] = part.box.offsets[d] + begin;
      box.sizes[d] = end - begin;
    }
    auto own = moved_part(part, staying(std::move(box)));
    if (!own) continue;
    SHW_TRY(Copy copy, copy_of_part(*own, tile));
    SHW_TRY(copy.change, factor_at(scaling, cell, copy.change));
    copies.push_back(std::move(copy));
  }
  return {};
}

Status PartLowering::add_part(const Part& part, const Box& tile, std::vector<Copy>& copies) {
  if (part.scaling) return add_scaled(part, tile, copies);
  SHW_TRY(Copy copy, copy_of_part(part, tile));
  copies.push_back(std::move(copy));
  return {};
}

// `next` goes on where `first` ends, in the output and in the source, along one dim.
bool PartLowering::join(Copy& first, const Copy& next) {
  bool alike =
      first.source == next.source && first.from == next.from && first.change == next.change;
  if (!alike) return false;
  std::size_t ndim = first.box.sizes.size(), along = ndim;
  for (std::size_t d = 0; d < ndim; ++d) {
    bool same_here =
        first.box.offsets[d] == next.box.offsets[d] && first.box.sizes[d] == next.box.sizes[d];
    if (same_here) continue;
    if (along != ndim) return false;
    along = d;
  }
  if (along == ndim || next.box.offsets[along] != first.box.offsets[along] + first.box.sizes[along])
    return false;
  std::int64_t step = next.first - first.first;
  std::int64_t rows = first.box.sizes[along];
  std::int64_t stride = first.strides[along];
  if (rows == 1) stride = step;
  if (step != rows * stride) return false;
  if (next.box.sizes[along] != 1 && next.strides[along] != stride) return false;
  for (std::size_t d = 0; d < ndim; ++d) {
    if (d != along && first.box.sizes[d] != 1 && first.strides[d] != next.strides[d]) return false;
  }
  first.strides[along] = stride;
  first.box.sizes[along] += next.box.sizes[along];
  return true;
}

void PartLowering::merge(std::vector<Copy>& copies) {
  if (copies.size() < 2) return;
  std::size_t ndim = copies.front().box.sizes.size();
  for (std::size_t along = ndim; along-- > 0;) {
    // Neighbours along this dim stand side by side when it counts last.
    std::sort(copies.begin(), copies.end(), [&](const Copy& a, const Copy& b) {
      for (std::size_t d = 0; d < ndim; ++d) {
        if (d != along && a.box.offsets[d] != b.box.offsets[d])
          return a.box.offsets[d] < b.box.offsets[d];
      }
      return a.box.offsets[along] < b.box.offsets[along];
    });
    std::size_t kept = 0;
    for (std::size_t i = 1; i < copies.size(); ++i) {
      if (join(copies[kept], copies[i])) continue;
      if (++kept != i) copies[kept] = std::move(copies[i]);
    }
    copies.resize(kept + 1);
  }
}

Status PartLowering::add(OutputId output, const ArrangedTensor& tensor,
                         const std::vector<Part>& parts, const Box& tile) {
  std::vector<Copy> copies;
  for (const Part& part : parts) {
    if (const auto* constant = std::get_if<FromConstant>(&part.from)) {
      Box box = part.box;
      for (std::size_t d = 0; d < box.offsets.size(); ++d) box.offsets[d] -= tile.offsets[d];
      builder_.add_constant(output, box, constant->bits);
      continue;
    }
    auto added = add_part(part, tile, copies);
    if (!added) {
      if (added.error().place.tensor.empty()) added.error().place.tensor = tensor.fqn;
      return added;
    }
  }
  merge(copies);
  for (const Copy& copy : copies)
    builder_.add_changed(output, copy.box, copy.source, copy.from, copy.first, copy.strides,
                         copy.change);
  return {};
}

Status PartLowering::check(const Program& program, OutputId output, const ArrangedTensor& tensor,
                           const std::vector<Part>& parts, const Box& tile) const {
  for (const Part& part : parts) {
    PartStorage storage;
    const auto* chunk = std::get_if<FromChunk>(&part.from);
    if (chunk != nullptr) {
      assert(is_known(*chunk));
      storage = storage_at(*chunk);
    } else if (const auto* file = std::get_if<FromFile>(&part.from)) {
      SHW_TRY(storage, storage_in(*file, part.saved));
    }
    bool is_made = std::holds_alternative<FromConstant>(part.from);
    SHW_CHECK(check_origins(program, output, part, tile, is_made ? nullptr : &storage, tensor.fqn));
  }
  return {};
}

}  // namespace shw

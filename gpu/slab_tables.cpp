#include "gpu/slab_tables.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "core/exec/executor.h"
#include "core/tensor/dtype.h"
#include "core/tensor/fingerprint.h"
#include "gpu/statistics_tables.h"

namespace shw {
namespace {

// A job without dimensions of size 1.
struct Part {
  int ndim = 0;
  PairDim dims[kLayoutDims] = {};
  std::int64_t source = 0, target = 0;

  PairDim last() const { return ndim == 0 ? PairDim{} : dims[ndim - 1]; }
  void drop(int at) {
    std::copy(dims + at + 1, dims + ndim, dims + at);
    --ndim;
  }
};

Part part_of(const LayoutPair& pair) {
  Part part;
  part.source = pair.source.offset;
  part.target = pair.target.offset;
  for (int d = 0; d < pair.target.ndim; ++d) {
    if (pair.target.shape[d] != 1)
      part.dims[part.ndim++] = {pair.target.shape[d], pair.source.stride[d], pair.target.stride[d]};
  }
  return part;
}

std::int64_t count_of(const Part& part) {
  std::int64_t count = 1;
  for (int d = 0; d < part.ndim; ++d) count *= part.dims[d].size;
  return count;
}

// Kernels use 31-bit indices: larger jobs are split along their longest dimension, so that narrow
// dimensions stay whole.
template <class Visit>
void for_each_split(const Part& part, Visit visit) {
  constexpr std::int64_t kMost = std::int64_t{1} << 27;  // elements of at most 16 bytes
  if (count_of(part) <= kMost) return visit(part);
  Part front = part, back = part;
  const auto longest = static_cast<std::size_t>(
      std::max_element(part.dims, part.dims + part.ndim,
                       [](const PairDim& a, const PairDim& b) { return a.size < b.size; }) -
      part.dims);
  const PairDim& dim = part.dims[longest];
  const std::int64_t half = dim.size >= 512 ? dim.size / 2 / 256 * 256 : dim.size / 2;
  front.dims[longest].size = half;
  back.dims[longest].size = dim.size - half;
  back.source += half * dim.source;
  back.target += half * dim.target;
  for (Part* each : {&front, &back}) {
    if (each->dims[longest].size == 1) each->drop(static_cast<int>(longest));
    for_each_split(*each, visit);
  }
}

DeviceJob device_job(const TileJob& job) {
  DeviceJob out;
  out.op = job.op;
  out.from = job.op == ElementOp::kConstant ? job.to : job.from;
  out.to = job.to;
  out.source_size = static_cast<std::uint8_t>(size_of(out.from));
  out.target_size = static_cast<std::uint8_t>(size_of(job.to));
  out.via = job.via;
  out.factor = job.factor;
  std::copy(job.constant, job.constant + 2, out.constant);
  return out;
}

void set_dims(DeviceJob& job, const Part& part) {
  job.source = part.source;
  job.target = part.target;
  job.ndim = static_cast<std::uint32_t>(part.ndim);
  for (int d = 0; d < part.ndim; ++d) {
    const PairDim& dim = part.dims[d];
    const auto size = static_cast<std::uint32_t>(dim.size);
    job.dims[d] = {size, fast_divisor(size), 0, dim.source, dim.target};
  }
}

void add_items(SlabTables& tables, Kernel kernel, const DeviceJob& job, std::uint64_t units,
               std::uint32_t of_item) {
  const auto index = static_cast<std::uint32_t>(tables.jobs.size());
  tables.jobs.push_back(job);
  for (std::uint64_t first = 0; first < units; first += of_item) {
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(of_item, units - first));
    tables.of(kernel).push_back({index, static_cast<std::uint32_t>(first), count});
  }
}

void add_item_per_element(SlabTables& tables, Kernel kernel, DeviceJob job, const Part& part,
                          std::uint32_t of_item) {
  set_dims(job, part);
  add_items(tables, kernel, job, static_cast<std::uint64_t>(count_of(part)), of_item);
}

// The largest power of two up to `most` that divides all numbers.
std::int64_t largest_common_unit(std::int64_t most, std::initializer_list<std::int64_t> numbers) {
  for (std::int64_t number : numbers) most = std::gcd(most, number);
  return most;
}
std::int64_t source_unit(const Part& part, int ndim, std::int64_t most) {
  most = largest_common_unit(most, {part.source});
  for (int d = 0; d < ndim; ++d) most = largest_common_unit(most, {part.dims[d].source});
  return most;
}
std::int64_t target_unit(const Part& part, int ndim, std::int64_t most) {
  most = largest_common_unit(most, {part.target});
  for (int d = 0; d < ndim; ++d) most = largest_common_unit(most, {part.dims[d].target});
  return most;
}

unsigned log_of(std::int64_t power) {
  return static_cast<unsigned>(std::countr_zero(static_cast<std::uint64_t>(power)));
}

// --- contiguous on both sides

void add_rows(SlabTables& tables, const DeviceJob& job, Part part, std::int64_t element) {
  if (part.ndim == 0) part.dims[part.ndim++] = {1, element, element};
  PairDim& row = part.dims[part.ndim - 1];
  const std::int64_t bytes = row.size * element;
  std::int64_t unit = largest_common_unit(16, {bytes});
  unit = source_unit(part, part.ndim - 1, unit);
  unit = target_unit(part, part.ndim - 1, unit);
  row = {bytes / unit, unit, unit};
  add_item_per_element(tables, sized(Kernel::kRows1, log_of(unit)), job, part, kRowUnits);
}

void add_elements(SlabTables& tables, const DeviceJob& job, const Part& part) {
  add_item_per_element(tables, Kernel::kElements, job, part, kElementUnits);
}

void add_fill(SlabTables& tables, DeviceJob job, Part part) {
  const std::int64_t element = job.target_size;
  if (part.ndim == 0) part.dims[part.ndim++] = {1, 0, element};
  PairDim& row = part.dims[part.ndim - 1];
  const std::int64_t bytes = row.size * element;
  std::int64_t unit = target_unit(part, part.ndim - 1, largest_common_unit(16, {bytes}));
  if (row.target != element || unit < element) return add_elements(tables, job, part);
  auto* pattern = reinterpret_cast<std::byte*>(job.constant);
  for (std::int64_t at = element; at < 16; at += element)
    std::memcpy(pattern + at, pattern, static_cast<std::size_t>(element));
  row = {bytes / unit, 0, unit};
  add_item_per_element(tables, sized(Kernel::kFill1, log_of(unit)), job, part, kRowUnits);
}

void add_conversion(SlabTables& tables, const DeviceJob& job, const Part& part) {
  const std::int64_t before = job.source_size, after = job.target_size;
  const std::int64_t in_unit = 16 / std::max(before, after);
  const PairDim row = part.last();
  const int outer = part.ndim - 1;
  const bool beside = part.ndim > 0 && row.source == before && row.target == after &&
                      source_unit(part, outer, 16) % (in_unit * before) == 0 &&
                      target_unit(part, outer, 16) % (in_unit * after) == 0;
  const std::int64_t whole = beside ? row.size / in_unit * in_unit : 0;
  if (whole != 0) {
    Part units = part;
    units.dims[outer] = {whole / in_unit, in_unit * before, in_unit * after};
    const unsigned kind = log_of(before) * 4 + log_of(after);
    add_item_per_element(tables, sized(Kernel::kChange1To1, kind), job, units, kRowUnits);
  }
  if (part.ndim > 0 && whole == row.size) return;
  Part rest = part;
  rest.source += whole * row.source;
  rest.target += whole * row.target;
  if (part.ndim > 0) rest.dims[outer].size -= whole;
  add_elements(tables, job, rest);
}

// --- transposed planes

void set_tiles(DeviceJob& job, std::uint32_t along_source, std::uint32_t along_target) {
  const std::uint32_t sizes[2] = {along_source, along_target};
  for (unsigned side = 0; side < 2; ++side) {
    const std::uint32_t size = job.dims[job.ndim - 2 + side].size;
    job.tiles[side] = (size + sizes[side] - 1) / sizes[side];
    job.tiles_by[side] = fast_divisor(job.tiles[side]);
  }
}

std::uint64_t tiles_of(const DeviceJob& job) {
  std::uint64_t tiles = std::uint64_t{job.tiles[0]} * job.tiles[1];
  for (std::uint32_t d = 0; d + 2 < job.ndim; ++d) tiles *= job.dims[d].size;
  return tiles;
}

void add_transposed_each(SlabTables& tables, DeviceJob job, const Part& part) {
  if (part.dims[part.ndim - 2].size == 0 || part.dims[part.ndim - 1].size == 0) return;
  const std::uint32_t element = job.target_size, most = transpose_each_elements(element);
  set_dims(job, part);
  const std::uint32_t rows = std::bit_ceil(job.dims[job.ndim - 2].size);
  const std::uint32_t columns = std::bit_ceil(job.dims[job.ndim - 1].size);
  std::uint32_t along_source = std::min(rows, element <= 4 ? 64u : 32u);
  const std::uint32_t along_target = std::min(columns, most / along_source);
  along_source = std::min(rows, most / along_target);
  job.tile_shift[0] = static_cast<std::uint8_t>(log_of(along_source));
  job.tile_shift[1] = static_cast<std::uint8_t>(log_of(along_target));
  set_tiles(job, along_source, along_target);
  add_items(tables, sized(Kernel::kTransposeEach1, log_of(element)), job, tiles_of(job),
            kTransposeTiles);
}

// Separates interleaved parts, or interleaves them, in whole units; returns the remaining columns
// or rows, which are all of them if the plane is not interleaved.
Part add_interleaved(SlabTables& tables, DeviceJob job, Part part) {
  const PairDim rows = part.dims[part.ndim - 2], columns = part.last();
  const std::int64_t element = job.target_size;
  const auto is_parts = [&](std::int64_t size) {
    return size == 2 || size == 4 || (size == 8 && element < 8);
  };
  const bool separates = is_parts(rows.size) && columns.source == rows.size * element;
  if (!separates && !(is_parts(columns.size) && rows.target == columns.size * element)) return part;
  const int of_parts = part.ndim - (separates ? 2 : 1), along = part.ndim - (separates ? 1 : 2);
  const std::int64_t parts = part.dims[of_parts].size;
  const std::int64_t unit =
      interleaved_unit(static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(parts));
  const std::int64_t piece = unit / parts, in_piece = piece / element;
  Part outer = part;
  outer.dims[along].source = outer.dims[along].target = 0;
  (separates ? outer.dims[of_parts].source : outer.dims[of_parts].target) = 0;
  const std::int64_t whole = part.dims[along].size / in_piece * in_piece;
  if (whole == 0 || source_unit(outer, outer.ndim, 16) % (separates ? 16 : piece) != 0 ||
      target_unit(outer, outer.ndim, 16) % (separates ? piece : 16) != 0)
    return part;
  Part units = part, rest = part;
  units.dims[along] = {whole / in_piece, separates ? unit : piece, separates ? piece : unit};
  units.drop(of_parts);
  job.run = static_cast<std::uint32_t>(parts);
  job.along.source = part.dims[of_parts].source;
  job.along.target = part.dims[of_parts].target;
  add_item_per_element(
      tables, sized(separates ? Kernel::kSeparate1 : Kernel::kInterleave1, log_of(element)), job,
      units, kRowUnits);
  rest.source += whole * part.dims[along].source;
  rest.target += whole * part.dims[along].target;
  rest.dims[along].size -= whole;
  return rest;
}

// Splits a plane: whole vectors along the source, then the remaining rows within whole vectors
// along the target, then the remaining columns.
void add_transposed(SlabTables& tables, DeviceJob job, Part part, int along_source) {
  const PairDim rows = part.dims[along_source], columns = part.last();
  part.drop(along_source);
  part.dims[part.ndim - 1] = rows;
  part.dims[part.ndim++] = columns;
  const std::int64_t element = job.target_size;
  if (source_unit(part, part.ndim, element) < element ||
      target_unit(part, part.ndim, element) < element)
    return add_elements(tables, job, part);
  if (element <= 8) {
    Part rest = add_interleaved(tables, job, part);
    if (count_of(rest) != count_of(part)) return add_transposed_each(tables, job, rest);
  }
  const std::int64_t vector = transpose_vector_bytes(job.target_size), in_vector = vector / element;
  Part outer = part;
  outer.dims[part.ndim - 2].source = 0;
  outer.dims[part.ndim - 1].target = 0;
  const bool straight = source_unit(outer, part.ndim, vector) == vector &&
                        target_unit(outer, part.ndim, vector) == vector;
  const std::int64_t whole[2] = {straight ? rows.size / in_vector * in_vector : 0,
                                 straight ? columns.size / in_vector * in_vector : 0};
  // Elements of 16 bytes are whole vectors and never get here.
  if (whole[0] == 0 || whole[1] == 0) return add_transposed_each(tables, job, part);
  Part squares = part;
  PairDim* plane = squares.dims + part.ndim - 2;
  plane[0].size = whole[0];
  plane[1].size = whole[1];
  DeviceJob turned = job;
  set_dims(turned, squares);
  const auto width = static_cast<std::uint32_t>(in_vector * kTransposeVectors);
  set_tiles(turned, width, width);
  add_items(tables, sized(Kernel::kTranspose1, log_of(element)), turned, tiles_of(turned),
            kTransposeTiles);
  Part left = squares;
  left.source += whole[0] * rows.source;
  left.target += whole[0] * rows.target;
  left.dims[part.ndim - 2].size = rows.size - whole[0];
  add_transposed_each(tables, job, left);
  Part below = part;
  below.source += whole[1] * columns.source;
  below.target += whole[1] * columns.target;
  below.dims[part.ndim - 1].size = columns.size - whole[1];
  add_transposed_each(tables, job, below);
}

void add_copy(SlabTables& tables, const DeviceJob& job, const Part& part) {
  const std::int64_t element = job.target_size;
  const PairDim last = part.last();
  if (part.ndim == 0 || (last.source == element && last.target == element))
    return add_rows(tables, job, part, element);
  if (last.target == element) {
    for (int d = part.ndim - 1; d-- > 0;) {
      if (part.dims[d].source == element) return add_transposed(tables, job, part, d);
    }
  }
  add_elements(tables, job, part);
}

// --- fingerprints

bool is_zero_constant(const TileJob& job) {
  return job.op == ElementOp::kConstant && job.constant[0] == 0 && job.constant[1] == 0;
}

// True if 16-byte vectors of the slab coincide with vectors of the tensor blocks.
bool has_aligned_vectors(const Part& part, std::int64_t word) {
  if ((part.source - part.target * word) % 16 != 0) return false;
  for (int d = 0; d + 1 < part.ndim; ++d) {
    if ((part.dims[d].source - part.dims[d].target * word) % 16 != 0) return false;
  }
  return true;
}

// Sums have no order: adjacent threads read along the slab, and each thread proceeds along the
// tensor for one block of elements.
void add_fingerprint_each(SlabTables& tables, DeviceJob job, Part part, std::int64_t words) {
  const std::int64_t each = static_cast<std::int64_t>(kFingerprintBlock) / words;
  const auto is_along = [&](const PairDim& dim) { return dim.target == words; };
  const auto along = std::find_if(part.dims, part.dims + part.ndim, is_along);
  PairDim row;
  if (along != part.dims + part.ndim) {
    row = *along;
    part.drop(static_cast<int>(along - part.dims));
  }
  std::stable_sort(part.dims, part.dims + part.ndim, [](const PairDim& a, const PairDim& b) {
    return magnitude(a.source) > magnitude(b.source);
  });
  const auto side_by_side = static_cast<std::uint32_t>(count_of(part));
  job.along = {static_cast<std::uint32_t>(row.size), fast_divisor(side_by_side), 0, row.source,
               words};
  job.run = static_cast<std::uint32_t>(each);
  std::copy_backward(part.dims, part.dims + part.ndim, part.dims + part.ndim + 1);
  part.dims[0] = {(row.size + each - 1) / each, row.source * each, words * each};
  ++part.ndim;
  add_item_per_element(tables, Kernel::kFingerprintEach, job, part, kFingerprintUnits);
}

void add_fingerprint(SlabTables& tables, DeviceJob job, Part part) {
  constexpr auto kBlock = static_cast<std::int64_t>(kFingerprintBlock);
  const std::int64_t element = job.target_size;
  const auto words = static_cast<std::int64_t>(fingerprint_words_per_element(job.target_size));
  const std::int64_t word = element / words;
  part.target *= words;
  for (int d = 0; d < part.ndim; ++d) part.dims[d].target *= words;
  const PairDim last = part.last();
  const std::int64_t run = last.size * words;
  if (job.op == ElementOp::kCopy && part.ndim > 0 && last.source == element &&
      last.target == words && run >= kBlock / 2 && has_aligned_vectors(part, word)) {
    bool one_phase = true;
    for (int d = 0; d + 1 < part.ndim; ++d)
      one_phase = one_phase && part.dims[d].target % kBlock == 0;
    const std::int64_t most = one_phase ? part.target % kBlock + run + kBlock - 1 : run + 126;
    job.run = static_cast<std::uint32_t>(run);
    part.dims[part.ndim - 1] = {most / kBlock, kBlock * word, kBlock};
    return add_item_per_element(tables, sized(Kernel::kFingerprint1, log_of(word)), job, part,
                                kFingerprintBlocks);
  }
  add_fingerprint_each(tables, job, part, words);
}

}  // namespace

void SlabTables::clear() {
  jobs.clear();
  numbers.clear();
  number_words = 0;
  for (auto& list : items) list.clear();
}

void add_tiles(SlabTables& tables, std::span<const TileJob> jobs) {
  for (const TileJob& job : jobs) {
    if (elements(job.layouts.target) == 0) continue;
    const DeviceJob device = device_job(job);
    for_each_split(part_of(job.layouts), [&](const Part& part) {
      switch (job.op) {
        case ElementOp::kCopy:
          return add_copy(tables, device, part);
        case ElementOp::kConstant:
          return add_fill(tables, device, part);
        case ElementOp::kCast:
        case ElementOp::kScale:
          return add_conversion(tables, device, part);
      }
    });
  }
}

void add_fingerprints(SlabTables& tables, std::span<const TileJob> jobs) {
  for (const TileJob& job : jobs) {
    if (elements(job.layouts.target) == 0 || is_zero_constant(job)) continue;
    const DeviceJob device = device_job(job);
    for_each_split(part_of(job.layouts),
                   [&](const Part& part) { add_fingerprint(tables, device, part); });
  }
}

void add_numbers(SlabTables& tables, std::span<const StatisticsJob> jobs) {
  for (const StatisticsJob& job : jobs) {
    const std::uint64_t size = size_of(job.dtype);
    if (job.count == 0 || size == 0) continue;
    const StatisticsTable table{tables.number_words, table_word_count(job.dtype), job.dtype,
                                job.count, job.sums};
    tables.numbers.push_back(table);
    tables.number_words += table.words;
    DeviceJob device;
    device.from = job.dtype;
    device.source_size = static_cast<std::uint8_t>(size);
    device.target = static_cast<std::int64_t>(table.begin);
    device.magnitude_mask = magnitude_mask(job.dtype);
    const bool counts = size == 1 || number_kind(job.dtype) != NumberKind::kOpaque;
    const Kernel kernel =
        counts ? sized(Kernel::kNumbers1, log_of(static_cast<std::int64_t>(size))) : Kernel::kZeros;
    constexpr std::uint64_t kMost = std::uint64_t{1} << 27;
    for (std::uint64_t first = 0; first < job.count; first += kMost) {
      device.source = static_cast<std::int64_t>(job.begin + first * size);
      device.elements = std::min(kMost, job.count - first);
      add_items(tables, kernel, device, device.elements,
                size == 1   ? kCodeElements
                : size <= 4 ? kNumberElements
                            : kWideElements);
    }
  }
}

void add_slab_work_to_tables(SlabTables& tables, const SlabWork& work) {
  add_tiles(tables, work.tiles);
  add_fingerprints(tables, work.elements);
  add_numbers(tables, work.numbers);
}

}  // namespace shw

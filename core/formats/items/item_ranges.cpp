// Byte ranges of boxes, for readers that need no decoding.
#include "core/formats/items/item_access.h"
#include "core/formats/items/items.h"

namespace shw {
namespace {

// A contiguous run in box and storage, and the dims outside of it.
struct Run {
  std::size_t outer = 0;
  std::int64_t elements = 1;
};

Run run_of(const Box& box, ExtentsView strides) {
  Run run{box.sizes.size(), 1};
  for (std::size_t d = box.sizes.size(); d-- > 0;) {
    if (box.sizes[d] != 1 && strides[d] != run.elements) break;
    run.elements *= box.sizes[d];
    run.outer = d;
  }
  return run;
}

// False for strided innermost dims and for repeated elements, which are
// decoded.
bool has_contiguous_rows(const ItemHeader& header) {
  std::int64_t innermost = 0;
  for (std::size_t d = header.sizes.size(); d-- > 0;) {
    if (header.sizes[d] == 1) continue;
    if (header.strides[d] <= 0) return false;
    if (innermost == 0) innermost = header.strides[d];
  }
  return innermost <= 1;
}

void append(std::vector<ByteRun>& runs, FileId file, std::uint64_t offset, std::uint64_t length) {
  if (!runs.empty() && runs.back().offset + runs.back().length == offset)
    runs.back().length += length;
  else
    runs.push_back({file, offset, length});
}

// storage_needed() bounds every index computed here.
std::vector<ByteRun> runs_of(const ItemHeader& header, const Box& box, FileId file) {
  std::vector<ByteRun> runs;
  Run run = run_of(box, header.strides);
  auto element = static_cast<std::int64_t>(size_of(header.dtype));
  std::int64_t first = header.storage_offset;
  for (std::size_t d = 0; d < box.sizes.size(); ++d) first += box.offsets[d] * header.strides[d];
  Extents at(run.outer, 0);
  while (true) {
    std::int64_t begin = first;
    for (std::size_t d = 0; d < run.outer; ++d) begin += at[d] * header.strides[d];
    append(runs, file, header.payload_offset + static_cast<std::uint64_t>(begin * element),
           static_cast<std::uint64_t>(run.elements * element));
    std::size_t d = run.outer;
    while (d > 0 && ++at[d - 1] == box.sizes[d - 1]) at[--d] = 0;
    if (d == 0) return runs;
  }
}

bool has_to_be_decoded(const ItemHeader& header) {
  return header.compressed || header.conjugate || header.negative ||
         (header.big_endian && size_of(header.dtype) > 1) || !has_contiguous_rows(header);
}

}  // namespace

Result<std::optional<std::vector<ByteRun>>> ranges(const Checkpoint& checkpoint, ChunkId chunk,
                                                   const Box& box) {
  using Ranges = std::optional<std::vector<ByteRun>>;
  ItemFiles files(checkpoint);
  SHW_TRY(OpenItem item, open_item(files, checkpoint, chunk, ItemPart::kHeader));
  const ItemHeader& header = item.header;
  Place place{item.source->name(), header.payload_offset,
              std::string(checkpoint.fqn(checkpoint.tensor_of(chunk)))};
  if (!is_inside(box.offsets, box.sizes, header.sizes))
    return fail(ErrorKind::kUsage, "has no such box", std::move(place));
  if (has_to_be_decoded(header)) return Ranges{};
  if (is_empty(box)) return Ranges{std::in_place};
  return Ranges{runs_of(header, box, checkpoint.item(chunk)->file)};
}

}  // namespace shw

// A part of a raw item: only the bytes around it are read, however large the item is.
#include <algorithm>
#include <cstring>

#include "core/base/checked.h"
#include "core/formats/item_access.h"

namespace shw {
namespace {

// Runs that lie close together are read at once. 4 MiB: a row of runs of 2,560 bytes, every second
// one wanted (spec/failures.md 2.d), costs two passes over the file and no more.
constexpr std::uint64_t kWindow = std::uint64_t{4} << 20;

class Window {
 public:
  Window(const ByteSource& source, std::uint64_t end) : source_(source), end_(end) {}
  Status copy(std::uint64_t at, std::span<std::byte> out) {
    if (out.size() >= kWindow) return source_.read(at, out);
    if (at < begin_ || at + out.size() > begin_ + held_.size()) {
      begin_ = at;
      held_.resize(std::min(kWindow, end_ - at));
      SHW_CHECK(source_.read(begin_, held_));
    }
    std::memcpy(out.data(), held_.data() + (at - begin_), out.size());
    return {};
  }

 private:
  const ByteSource& source_;
  std::uint64_t end_, begin_ = 0;
  Bytes held_;
};

// Elements of the box that lie side by side in a row-major array of `sizes`, and the dimensions
// outside of such a run.
struct Runs {
  std::size_t outer = 0;
  std::int64_t elements = 1;
};
Runs runs_of(const Box& box, ExtentsView sizes) {
  Runs runs;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    runs.elements *= box.sizes[d];
    runs.outer = d;
    if (box.sizes[d] != sizes[d]) break;
  }
  return runs;
}

Result<Bytes> read_runs(const OpenItem& item, const Box& box) {
  std::uint64_t element = size_of(item.header.dtype);
  const Extents& sizes = item.header.sizes;
  Bytes out(static_cast<std::uint64_t>(volume(box.sizes).value_or(0)) * element);
  if (out.empty()) return out;
  Runs runs = runs_of(box, sizes);
  Extents strides = row_major_strides(sizes);
  std::uint64_t length = static_cast<std::uint64_t>(runs.elements) * element;
  Window window(*item.source, item.header.payload_offset + item.header.payload_length);
  Extents at(runs.outer, 0);
  for (std::uint64_t done = 0; done < out.size(); done += length) {
    std::int64_t first = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d)
      first += (box.offsets[d] + (d < runs.outer ? at[d] : 0)) * strides[d];
    SHW_CHECK(window.copy(item.header.payload_offset + static_cast<std::uint64_t>(first) * element,
                          std::span(out).subspan(done, length)));
    for (std::size_t d = runs.outer; d-- > 0;) {
      if (++at[d] < box.sizes[d]) break;
      at[d] = 0;
    }
  }
  return out;
}

}  // namespace

Result<Bytes> read_raw_box(const Checkpoint& checkpoint, ChunkId chunk, const Box& box) {
  ItemFiles files(checkpoint);
  SHW_TRY(OpenItem item, open_item(files, checkpoint, chunk, ItemPart::kPayload));
  Place place{item.source->name(), item.header.payload_offset,
              std::string(checkpoint.fqn(checkpoint.tensor_of(chunk)))};
  if (checkpoint.encoding() != Encoding::kRaw)
    return fail(ErrorKind::kUnsupported, "is no raw item, and is read whole", std::move(place));
  if (!lies_inside(box.offsets, box.sizes, item.header.sizes))
    return fail(ErrorKind::kUsage, "has no such box", std::move(place));
  return read_runs(item, box);
}

}  // namespace shw

#include "core/formats/items/item_access.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/checked.h"
#include "core/base/little_endian.h"
#include "core/base/parallel.h"
#include "core/formats/common/magic.h"
#include "core/io/gather.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// A system call takes as long as everything else for a small item's header. Longer runs gain
// nothing; this fits in a core's cache.
constexpr std::int64_t kMaxAhead = 64 << 10;
constexpr std::int64_t kSmallItem = 16 << 10;

// Files that a thread keeps open. Chunks of a tensor alternate between ranks' files; with
// prefetched runs 16 files hold 1 MiB. All threads together stay far from the usual limit of 1024
// descriptors.
std::size_t max_open_files_per_thread() {
  return std::clamp<std::size_t>(256 / worker_count(), 1, 16);
}

bool is_small(const ItemPlace& place) {
  return place.offset >= 0 && place.length >= 0 && place.length <= kSmallItem &&
         place.offset <= std::numeric_limits<std::int64_t>::max() - kMaxAhead;
}

// A file with a prefetched byte range.
class SourceWithRun final : public ByteSource {
 public:
  // Fills the range without clearing it first.
  static Result<std::shared_ptr<const ByteSource>> read(std::shared_ptr<const ByteSource> file,
                                                        std::uint64_t begin, std::size_t length) {
    auto made = std::make_shared<SourceWithRun>();
    made->begin_ = begin;
    made->length_ = length;
    made->run_ = std::make_unique_for_overwrite<std::byte[]>(length);
    SHW_CHECK(file->read(begin, {made->run_.get(), length}));
    made->file_ = std::move(file);
    return std::shared_ptr<const ByteSource>(std::move(made));
  }

  const std::string& name() const override { return file_->name(); }
  std::uint64_t size() const override { return file_->size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    bool here =
        offset >= begin_ && offset - begin_ <= length_ && out.size() <= length_ - (offset - begin_);
    if (!here) return file_->read(offset, out);
    std::copy_n(run_.get() + (offset - begin_), out.size(), out.begin());
    return {};
  }
  BytesView mapped() const override { return file_->mapped(); }
  void forget(std::uint64_t offset, std::uint64_t length) const override {
    file_->forget(offset, length);
  }
  std::vector<Extent> extents(std::uint64_t offset, std::uint64_t length) const override {
    return file_->extents(offset, length);
  }
  bool is_hole(std::uint64_t offset, std::uint64_t length) const override {
    return file_->is_hole(offset, length);
  }

 private:
  std::shared_ptr<const ByteSource> file_;
  std::uint64_t begin_ = 0, length_ = 0;
  std::unique_ptr<std::byte[]> run_;
};

}  // namespace

Error naming(Error error, std::string_view tensor) {
  if (error.place.tensor.empty()) error.place.tensor = tensor;
  return error;
}

Error recorded_mismatch_error(const Checkpoint& checkpoint, ChunkId chunk,
                              const ItemHeader& header) {
  TensorId tensor = checkpoint.tensor_of(chunk);
  FileId file = checkpoint.item(chunk).value_or(ItemPlace{}).file;
  return {ErrorKind::kDamaged,
          fmt::format("the payload is {} of {}, but the chunk is recorded as {} of {}",
                      to_text(header.sizes), name(header.dtype), to_text(checkpoint.sizes(chunk)),
                      name(checkpoint.dtype(tensor))),
          {file == FileId::kNone ? std::string() : checkpoint.file(file).path,
           header.payload_offset, std::string(checkpoint.fqn(tensor))}};
}

Extents steps_of(const ItemHeader& header) {
  Extents strides = header.strides;
  const auto element = static_cast<std::int64_t>(size_of(header.dtype));
  const bool is_empty = volume(header.sizes).value_or(0) == 0;
  for (std::size_t d = 0; d < strides.size(); ++d)
    strides[d] = header.sizes[d] > 1 && !is_empty ? strides[d] * element : 0;
  return strides;
}

std::vector<Box> split_into_row_boxes(const Extents& sizes, std::int64_t most) {
  std::vector<Box> slabs;
  std::size_t split = sizes.size();
  std::int64_t inner = 1;  // elements per index along `split`
  while (split > 0 && inner * sizes[split - 1] <= most) inner *= sizes[--split];
  if (split == 0) {
    slabs.push_back(whole(sizes));
    return slabs;
  }
  const std::size_t along = split - 1;
  const std::int64_t step = std::max<std::int64_t>(most / inner, 1);
  Box box = whole(sizes);
  for (std::size_t d = 0; d < along; ++d) box.sizes[d] = 1;
  while (true) {
    for (std::int64_t at = 0; at < sizes[along]; at += step) {
      box.offsets[along] = at;
      box.sizes[along] = std::min(step, sizes[along] - at);
      slabs.push_back(box);
    }
    std::size_t d = along;
    while (d > 0 && ++box.offsets[d - 1] == sizes[d - 1]) box.offsets[--d] = 0;
    if (d == 0) return slabs;
  }
}

bool matches_record(const Checkpoint& checkpoint, ChunkId chunk, const ItemHeader& header) {
  return header.dtype == checkpoint.dtype(checkpoint.tensor_of(chunk)) &&
         same(header.sizes, checkpoint.sizes(chunk));
}

bool is_stored_verbatim(const ItemHeader& header) {
  return !header.compressed && is_payload_plain_elements(header);
}

bool is_payload_plain_elements(const ItemHeader& header) {
  auto elements = volume(header.sizes);
  return elements && size_of(header.dtype) != 0 && !header.big_endian &&
         header.storage_offset == 0 && is_row_major(header.sizes, header.strides) &&
         header.payload_length / size_of(header.dtype) == static_cast<std::uint64_t>(*elements) &&
         header.payload_length % size_of(header.dtype) == 0;
}

Status read_elements_of(const OpenItem& item, const ByteSource& storage, std::int64_t first,
                        const Box& box, Bytes& to) {
  const Extents strides = steps_of(item.header);
  first = std::inner_product(box.offsets.begin(), box.offsets.end(), strides.begin(), first);
  SHW_CHECK(read_strided(storage, first, box.sizes, strides, size_of(item.header.dtype), to));
  return apply_flags(item, to);
}

Result<ItemFiles::OpenFile*> ItemFiles::find(FileId file) {
  auto found = std::find_if(open_.begin(), open_.end(),
                            [&](const OpenFile& one) { return one.file == file; });
  if (found != open_.end()) {
    if (found + 1 != open_.end()) std::rotate(found, found + 1, open_.end());
    return &open_.back();
  }
  if (index_of(file) >= checkpoint_.file_count())
    return fail(ErrorKind::kDamaged, "no storage record says where its bytes are");
  const FileRow& row = checkpoint_.file(file);
  if (!row.safe)
    return fail(ErrorKind::kDamaged, "the recorded path points outside the checkpoint folder",
                {row.path});
  if (checkpoint_.directory() == nullptr)
    return fail(ErrorKind::kIo, "the checkpoint has no directory to read from", {row.path});
  SHW_TRY(auto source, checkpoint_.directory()->open(row.path));
  if (open_.size() >= max_open_files_per_thread()) open_.erase(open_.begin());
  open_.push_back({file, std::move(source), nullptr});
  return &open_.back();
}

Result<std::shared_ptr<const ByteSource>> ItemFiles::open(FileId file) {
  SHW_TRY(OpenFile * found, find(file));
  return found->source_with_prefetched_run != nullptr ? found->source_with_prefetched_run
                                                      : found->source;
}

// Errors are ignored here; reading the item reports them.
void ItemFiles::read_run(OpenFile& file, std::int64_t begin, std::int64_t end) {
  file.source_with_prefetched_run = nullptr;
  end = std::min(end, static_cast<std::int64_t>(file.source->size()));
  if (begin >= end) return;
  auto run = SourceWithRun::read(file.source, static_cast<std::uint64_t>(begin),
                                 static_cast<std::size_t>(end - begin));
  if (!run) return;
  file.source_with_prefetched_run = std::move(*run);
  file.run_begin = begin;
  file.run_end = end;
}

void ItemFiles::read_with_following_items(const ItemPlace& place) {
  if (!is_small(place)) return;
  auto file = find(place.file);
  if (!file) return;
  const OpenFile& held = **file;
  const bool is_here = held.source_with_prefetched_run != nullptr &&
                       place.offset >= held.run_begin && place.offset <= held.run_end &&
                       place.length <= held.run_end - place.offset;
  if (!is_here) read_run(**file, place.offset, place.offset + kMaxAhead);
}

Result<ItemRange> find_item(ItemFiles& files, const ItemPlace& place) {
  SHW_TRY(auto source, files.open(place.file));
  if (auto range = range_in_file(place, source->size()))
    return ItemRange{std::move(source), range->offset, range->length};
  if (place.offset < 0 || place.length < 0)
    return fail(
        ErrorKind::kDamaged,
        fmt::format("the item is recorded at byte {} with {} bytes, and neither can be negative",
                    place.offset, place.length),
        {source->name()});
  return fail(ErrorKind::kDamaged,
              fmt::format("ends at byte {}, but the item needs {} bytes from byte {}",
                          source->size(), place.length, place.offset),
              {source->name(), static_cast<std::uint64_t>(place.offset)});
}

Result<EntryItem> open_entry(ItemFiles& files, const ItemPlace& place,
                             std::vector<std::string> transforms) {
  EntryItem entry{{}, 0, std::move(transforms)};
  SHW_TRY(entry.range, find_item(files, place));
  std::array<std::byte, 4> first{};
  if (entry.range.length >= first.size())
    SHW_CHECK(entry.range.source->read(entry.range.offset, first));
  entry.magic = load_little<std::uint32_t>(first);
  if (entry.transforms.empty() && entry.magic == kZstdMagic)
    entry.transforms.emplace_back("stream.zstd/1");
  return entry;
}

// Decides to decompress large items twice, first only to locate the elements: holding an item with
// its archive would need two or three times the memory.
ItemPart part_to_read(const Checkpoint& checkpoint, ChunkId chunk) {
  constexpr std::int64_t kLargeItem = 4 << 20;
  const std::int64_t width = size_of(checkpoint.dtype(checkpoint.tensor_of(chunk)));
  auto bytes = checked_mul(volume(checkpoint.sizes(chunk)).value_or(0), width);
  return bytes && *bytes < kLargeItem ? ItemPart::kPayload : ItemPart::kStreamedPayload;
}

Result<OpenItem> open_item(ItemFiles& files, const Checkpoint& checkpoint, ChunkId chunk,
                           ItemPart part, const Decompression* how) {
  auto open = [&]() -> Result<OpenItem> {
    auto place = checkpoint.item(chunk);
    if (!place) return fail(ErrorKind::kDamaged, "no storage record says where its bytes are");
    SHW_TRY(ItemRange range, find_item(files, *place));
    range.decompression = how;
    const Codec& codec = checkpoint.codec(chunk);
    if (codec.reader == nullptr)
      return fail(ErrorKind::kUnsupported, "holds items of the codec " + std::string(codec.name),
                  {range.source->name(), range.offset});
    return codec.reader->open(checkpoint, chunk, std::move(range), part);
  };
  auto item = open();
  if (item) return item;
  return tl::unexpected<Error>(
      naming(std::move(item).error(), checkpoint.fqn(checkpoint.tensor_of(chunk))));
}

}  // namespace shw

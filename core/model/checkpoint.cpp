#include "core/model/checkpoint.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/base/checked.h"

namespace shw {

TensorId tensor_of(const Diagnosis& diagnosis) {
  return std::visit([](const auto& kind) { return kind.tensor; }, diagnosis);
}

std::span<const PathPart> Checkpoint::path(TensorId tensor) const {
  return index_of(tensor) < tensor_path_.size()
             ? std::span<const PathPart>(tensor_path_[index_of(tensor)])
             : std::span<const PathPart>{};
}

std::span<const PathPart> Checkpoint::object_path(std::size_t object) const {
  return object < object_path_.size() ? std::span<const PathPart>(object_path_[object])
                                      : std::span<const PathPart>{};
}

std::optional<TensorId> Checkpoint::find(std::string_view fqn) const {
  auto found = std::lower_bound(
      by_fqn_.begin(), by_fqn_.end(), fqn,
      [&](std::uint32_t tensor, std::string_view text) { return tensor_fqn_[tensor] < text; });
  if (found == by_fqn_.end() || tensor_fqn_[*found] != fqn) return std::nullopt;
  return TensorId{*found};
}

TensorId Checkpoint::tensor_of(ChunkId chunk) const {
  auto after =
      std::upper_bound(first_chunk_.begin(), first_chunk_.end(), static_cast<std::uint32_t>(chunk));
  return TensorId{static_cast<std::uint32_t>(after - first_chunk_.begin() - 1)};
}

std::optional<FileRange> range_in_file(const ItemPlace& place, std::uint64_t size) {
  auto offset = narrow<std::uint64_t>(place.offset), length = narrow<std::uint64_t>(place.length);
  bool inside = offset && length && *offset <= size && *length <= size - *offset;
  return inside ? std::optional(FileRange{*offset, *length}) : std::nullopt;
}

bool is_reachable(const Checkpoint& checkpoint, const ItemPlace& place) {
  if (place.file == FileId::kNone) return false;
  const FileRow& row = checkpoint.file(place.file);
  return row.safe && row.kind == EntryKind::kFile && range_in_file(place, row.size).has_value();
}

StorageId Checkpoint::storage(ChunkId chunk) const {
  std::size_t i = storage_index(chunk);
  bool recorded = i < storage_file_.size() && storage_file_[i] != FileId::kNone;
  return recorded ? StorageId{static_cast<std::uint32_t>(i)} : StorageId::kNone;
}

std::optional<ItemPlace> Checkpoint::item(ChunkId chunk) const {
  StorageId of = storage(chunk);
  return of == StorageId::kNone ? std::nullopt : std::optional(place(of));
}

std::optional<std::uint32_t> Checkpoint::writer(ChunkId chunk) const {
  StorageId of = storage(chunk);
  if (of == StorageId::kNone) return std::nullopt;
  if (!chunk_writer_.empty() && chunk_writer_[index_of(chunk)] != kWriterOfFile)
    return chunk_writer_[index_of(chunk)];
  return files_[index_of(storage_file_[index_of(of)])].rank;
}

std::optional<StorageView> Checkpoint::view(ChunkId chunk) const {
  auto row = std::lower_bound(views_.begin(), views_.end(), chunk,
                              [](const ViewRow& view, ChunkId one) { return view.chunk < one; });
  if (row == views_.end() || row->chunk != chunk) return std::nullopt;
  return StorageView{row->offset,
                     row->strides == kRowMajor ? ExtentsView{} : coordinates(row->strides)};
}

std::span<const Replica> Checkpoint::replicas(ChunkId chunk) const {
  struct ByChunk {
    bool operator()(const Replica& row, ChunkId one) const { return row.of < one; }
    bool operator()(ChunkId one, const Replica& row) const { return one < row.of; }
  };
  auto [first, last] = std::equal_range(replicas_.begin(), replicas_.end(), chunk, ByChunk{});
  return {first, last};
}

bool Checkpoint::writers_are_owners(TensorId tensor) const {
  const auto& reordered = provenance_.reordered;
  return !std::binary_search(reordered.begin(), reordered.end(), tensor_fqn_[index_of(tensor)]);
}

std::span<const std::string> Checkpoint::transforms(StorageId storage) const {
  return coding(index_of(storage)).transforms;
}

const Codec& Checkpoint::codec(StorageId storage) const {
  static constexpr Codec kUnread{"unknown"};
  const Codec* own = coding(index_of(storage)).codec;
  if (own != nullptr) return *own;
  return format_->codec != nullptr ? *format_->codec : kUnread;
}

std::span<const std::string> Checkpoint::transforms(ChunkId chunk) const {
  StorageId of = storage(chunk);
  return of == StorageId::kNone ? std::span<const std::string>{} : transforms(of);
}

const Codec& Checkpoint::codec(ChunkId chunk) const {
  StorageId of = storage(chunk);
  return codec(of == StorageId::kNone ? StorageId{0} : of);
}

std::uint32_t Checkpoint::rank_count() const {
  std::set<std::uint32_t> ranks;
  for (const FileRow& file : files_) {
    if (file.rank) ranks.insert(*file.rank);
  }
  for (std::uint32_t writer : chunk_writer_) {
    if (writer != kWriterOfFile) ranks.insert(writer);
  }
  return static_cast<std::uint32_t>(ranks.size());
}

std::uint64_t Checkpoint::tensor_bytes() const {
  std::uint64_t total = 0;
  for (std::uint32_t t = 0; t < tensor_count(); ++t) {
    std::uint64_t element = size_of(tensor_dtype_[t]);
    for (ChunkId chunk : chunks(TensorId{t})) {
      auto elements = volume(sizes(chunk));
      auto bytes =
          elements ? checked_mul(static_cast<std::uint64_t>(*elements), element) : std::nullopt;
      auto sum = bytes ? checked_add(total, *bytes) : std::nullopt;
      if (!sum) return std::numeric_limits<std::uint64_t>::max();
      total = *sum;
    }
  }
  return total;
}

Box box_of(const Checkpoint& checkpoint, ChunkId chunk) {
  return {copy_of(checkpoint.offsets(chunk)), copy_of(checkpoint.sizes(chunk))};
}

std::vector<Box> chunk_boxes(const Checkpoint& checkpoint, TensorId tensor) {
  std::vector<Box> boxes;
  boxes.reserve(checkpoint.chunks(tensor).size());
  for (ChunkId chunk : checkpoint.chunks(tensor)) boxes.push_back(box_of(checkpoint, chunk));
  return boxes;
}

}  // namespace shw

// The contents of a checkpoint as recorded on disk: immutable columns indexed by typed ids. Sized
// for 4 million chunks: 28 bytes per chunk plus 8 bytes per dimension for offsets (equal sizes are
// stored once), at most 64 bytes with up to four dimensions. A column is empty if every chunk has
// the default value: its own whole storage, the format's codec, its file's writer.
//
// Invalid values are kept as written (a chunk of the wrong rank, an offset of 2^62, a missing
// file); rules report them later.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/ids.h"
#include "core/io/source.h"
#include "core/model/finding.h"
#include "core/model/format.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

// Location of an item as recorded: offset and length may be negative or beyond the file.
struct ItemPlace {
  FileId file = FileId::kNone;
  std::int64_t offset = 0;
  std::int64_t length = 0;
};

// The byte range of an item in a file of `size` bytes; nullopt if it is not inside the file.
struct FileRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};
std::optional<FileRange> range_in_file(const ItemPlace& place, std::uint64_t size);

// The elements of a storage that form a chunk: the first element and the strides. Without strides
// the elements are contiguous, row-major.
struct StorageView {
  std::int64_t offset = 0;  // in elements
  ExtentsView strides = {};
};

// A redundant copy of a chunk by another rank, which loaders ignore.
struct Replica {
  ChunkId of{};
  StorageId storage = StorageId::kNone;
  std::optional<std::uint32_t> writer;
};

struct FileRow {
  std::string path;                   // as recorded, relative to the checkpoint
  std::optional<std::uint32_t> rank;  // the writer's rank, if the format records it
  EntryKind kind = EntryKind::kMissing;
  std::uint64_t size = 0;
  bool safe = true;  // false: the recorded path leaves the checkpoint, so the file is never opened
  bool referenced = true;  // false: the file exists but nothing refers to it
};

// One part of a path in the state dict: a key or a list index.
using PathPart = std::variant<std::string, std::int64_t>;

// A value inside another value's pickle, i.e. without an item of its own.
struct InlinedValue {
  std::string opcodes;    // pickle opcodes that rebuild the value (formats/common/plain_pickle.h)
  std::string not_plain;  // the class that prevents encoding, e.g. "argparse.Namespace"
  // False if the opcodes omit something: shared sub-objects or the exact class.
  bool is_all = true;
};

struct NonTensorEntry {  // an entry that is not a tensor (BYTES in DCP)
  std::string fqn;
  std::optional<ItemPlace> item;
  std::vector<std::string> transforms = {};  // as Checkpoint::transforms()
  std::optional<InlinedValue> inlined = {};  // set: the entry has no item of its own
  // Items of other ranks for this entry, if every rank has its own metadata and loads its own
  // value.
  std::vector<ItemPlace> of_other_ranks = {};
};

// A storage record to which no tensor chunk and no other entry refers.
struct UnclaimedStorageRecord {
  std::string fqn;
  std::optional<Extents> offsets;
  ItemPlace item;
  std::vector<std::string> transforms = {};  // as Checkpoint::transforms()
};

// What is known about the program that wrote the checkpoint; empty fields are unknown.
struct Provenance {
  std::string torch;  // "2.14" or "2.7 to 2.8", derived from the recorded fields
  std::string
      path_class;       // pickled class of checkpoint_id: "pathlib._local.PosixPath", "str", or ""
  std::string version;  // Metadata.version
  int properties_arity = 0;  // 5, or 6 since torch 2.15; 0 if unknown
  int pickle_protocol = 0;
  std::string save_id;
  bool has_planner_data = false;
  bool has_storage_meta = false;
  // Names in planner_data without an entry, at most kMaxOnlyInPlanner.
  std::vector<std::string> only_in_planner = {};
  static constexpr std::size_t kMaxOnlyInPlanner = 4096;
  std::vector<std::string> extra_attributes;  // "mcore_data", "all_local_plans"
  // The extra attributes that hold plain data only, with the pickle opcodes that rebuild them; a
  // repair keeps them.
  std::vector<std::pair<std::string, std::string>> plain_attributes;
  // Sorted FQNs of tensors whose rows an earlier repair reordered: the writer of a chunk no longer
  // implies which rows it holds. Stored in a .metadata attribute that only Shardwright writes and
  // torch ignores.
  std::vector<std::string> reordered;
};

class Checkpoint {
 public:
  using ChunkRange = IdRange<ChunkId>;

  const Format& format() const { return *format_; }
  const Provenance& provenance() const { return provenance_; }
  // The folder that was opened, to which relative paths refer. Null in tests without
  // files.
  const std::shared_ptr<const Directory>& directory() const { return directory_; }

  // Tensors, in recorded order.
  std::uint32_t tensor_count() const { return static_cast<std::uint32_t>(tensor_fqn_.size()); }
  IdRange<TensorId> tensors() const { return {0, tensor_count()}; }
  std::string_view fqn(TensorId tensor) const { return tensor_fqn_[index_of(tensor)]; }
  Dtype dtype(TensorId tensor) const { return tensor_dtype_[index_of(tensor)]; }
  bool requires_grad(TensorId tensor) const { return tensor_requires_grad_[index_of(tensor)] != 0; }
  ExtentsView shape(TensorId tensor) const { return coordinates(tensor_shape_[index_of(tensor)]); }
  ChunkRange chunks(TensorId tensor) const {
    return {first_chunk_[index_of(tensor)], first_chunk_[index_of(tensor) + 1]};
  }
  // Path in the state dict (planner_data); empty if not recorded.
  std::span<const PathPart> path(TensorId tensor) const;
  std::optional<TensorId> find(std::string_view fqn) const;

  // Chunks; those of one tensor are contiguous.
  std::uint32_t chunk_count() const { return static_cast<std::uint32_t>(chunk_offsets_.size()); }
  ChunkRange chunks() const { return {0, chunk_count()}; }
  TensorId tensor_of(ChunkId chunk) const;  // O(log tensors)
  ExtentsView offsets(ChunkId chunk) const { return coordinates(chunk_offsets_[index_of(chunk)]); }
  ExtentsView sizes(ChunkId chunk) const { return coordinates(chunk_sizes_[index_of(chunk)]); }
  // nullopt if the chunk has no storage record (rule storage-dangling).
  std::optional<ItemPlace> item(ChunkId chunk) const;
  std::optional<std::uint32_t> writer(ChunkId chunk) const;
  // True if the rank that wrote a chunk can be assumed to own its rows.
  bool writers_are_owners(TensorId tensor) const;
  // Stream transforms to undo before the item can be read, in this order: "stream.zstd/1".
  std::span<const std::string> transforms(ChunkId chunk) const;
  const Codec& codec(ChunkId chunk) const;
  // The storage of a chunk; several chunks may share one.
  StorageId storage(ChunkId chunk) const;
  std::optional<StorageView> view(ChunkId chunk) const;  // nullopt: the whole storage, row-major
  std::span<const Replica> replicas(ChunkId chunk) const;

  // Storages: byte runs that chunks view. A storage without a file has no record.
  std::uint32_t storage_count() const { return static_cast<std::uint32_t>(storage_file_.size()); }
  ItemPlace place(StorageId storage) const {
    std::size_t i = index_of(storage);
    return {storage_file_[i], storage_offset_[i], storage_length_[i]};
  }
  std::span<const std::string> transforms(StorageId storage) const;
  const Codec& codec(StorageId storage) const;

  // Files: first the referenced ones, then the others in the directory.
  std::uint32_t file_count() const { return static_cast<std::uint32_t>(files_.size()); }
  const FileRow& file(FileId file) const { return files_[index_of(file)]; }
  std::span<const FileRow> files() const { return files_; }

  std::span<const NonTensorEntry> objects() const { return objects_; }
  std::span<const PathPart> object_path(std::size_t object) const;
  std::span<const UnclaimedStorageRecord> unclaimed_records() const { return unclaimed_records_; }
  // Findings of the format reader: unsafe-pickle, path-escape, bad-record.
  std::span<const Finding> opening_findings() const { return findings_; }

  // Number of distinct ranks among data files that exist or are referenced.
  std::uint32_t rank_count() const;
  // Sum of elements * element size over all chunks as recorded; saturates.
  std::uint64_t tensor_bytes() const;

 private:
  friend class CheckpointBuilder;
  using Coordinates = std::uint32_t;  // index in pool_: dimension count, coordinates

  ExtentsView coordinates(Coordinates at) const {
    return {pool_.data() + at + 1, static_cast<std::size_t>(pool_[at])};
  }

  // Codec and stream transforms of a storage.
  struct Coding {
    const Codec* codec = nullptr;
    std::vector<std::string> transforms = {};
    friend bool operator==(const Coding&, const Coding&) = default;
  };
  struct ViewRow {
    ChunkId chunk{};
    std::int64_t offset = 0;
    Coordinates strides = kRowMajor;
  };
  static constexpr Coordinates kRowMajor = 0xFFFFFFFFu;
  static constexpr std::uint32_t kWriterOfFile = 0xFFFFFFFFu;

  std::size_t storage_index(ChunkId chunk) const {
    return chunk_storage_.empty() ? index_of(chunk) : index_of(chunk_storage_[index_of(chunk)]);
  }
  const Coding& coding(std::size_t storage) const {
    return codings_[storage_coding_.empty() ? 0 : storage_coding_[storage]];
  }

  const Format* format_ = &kUnknownFormat;
  Provenance provenance_;
  std::shared_ptr<const Directory> directory_;

  std::vector<std::int64_t> pool_;
  std::vector<std::string> tensor_fqn_;
  std::vector<Dtype> tensor_dtype_;
  std::vector<std::uint8_t> tensor_requires_grad_;
  std::vector<Coordinates> tensor_shape_;
  std::vector<std::uint32_t> first_chunk_{0};
  std::vector<std::uint32_t> by_fqn_;  // sorted by FQN, for find()

  std::vector<Coordinates> chunk_offsets_, chunk_sizes_;
  std::vector<StorageId> chunk_storage_;     // empty: storage i belongs to chunk i
  std::vector<std::uint32_t> chunk_writer_;  // empty or kWriterOfFile: the file's writer
  std::vector<ViewRow> views_;               // by chunk; chunks without a row use the whole storage
  std::vector<Replica> replicas_;            // by chunk

  std::vector<FileId> storage_file_;  // kNone: no storage record
  std::vector<std::int64_t> storage_offset_, storage_length_;
  std::vector<std::uint8_t> storage_coding_;  // index in codings_; empty: all 0
  std::vector<Coding> codings_{1};

  std::vector<std::vector<PathPart>> tensor_path_, object_path_;
  std::vector<FileRow> files_;
  std::vector<NonTensorEntry> objects_;
  std::vector<UnclaimedStorageRecord> unclaimed_records_;
  std::vector<Finding> findings_;
};

// The chunk's box as recorded, which may exceed its tensor.
Box box_of(const Checkpoint& checkpoint, ChunkId chunk);
std::vector<Box> chunk_boxes(const Checkpoint& checkpoint, TensorId tensor);

// True if the item can exist: a safe path, an existing file, a range inside the file.
bool is_reachable(const Checkpoint& checkpoint, const ItemPlace& place);

}  // namespace shw

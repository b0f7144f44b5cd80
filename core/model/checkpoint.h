// A checkpoint as it lies on disk: immutable columns, ids for rows, no pointers. Built for 4
// million chunks: 28 bytes a chunk and its offsets (8 bytes a dimension; equal sizes are stored
// once), so 64 bytes at most up to four dimensions. Columns that say the same of every chunk are
// empty: a storage of its own, all of it, with the format's codec, written by its file's writer.
//
// What is wrong in it is kept as it was written (a chunk of the wrong rank, an offset of 2^62, a
// file that is not there): rules look at it later.
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

// Where an item lies, exactly as recorded: offset and length may be negative or beyond the file.
struct ItemPlace {
  FileId file = FileId::kNone;
  std::int64_t offset = 0;
  std::int64_t length = 0;
};

// The part of a file of `size` bytes that an item takes; nothing where it does not lie in it.
struct FileRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};
std::optional<FileRange> range_in_file(const ItemPlace& place, std::uint64_t size);

// Which elements of a storage a chunk is: the first, and how they follow each other. Without
// strides they lie side by side, row-major.
struct StorageView {
  std::int64_t offset = 0;  // in elements
  ExtentsView strides = {};
};

// The same box once more, in another storage: another rank's copy, passed over by loading.
struct Replica {
  ChunkId of{};
  StorageId storage = StorageId::kNone;
  std::optional<std::uint32_t> writer;
};

struct FileRow {
  std::string path;                   // as recorded, relative to the checkpoint
  std::optional<std::uint32_t> rank;  // who wrote it, as far as the format tells
  EntryKind kind = EntryKind::kMissing;
  std::uint64_t size = 0;
  bool safe = true;        // false: the recorded path leaves the checkpoint; it is never opened
  bool referenced = true;  // false: lies there, nothing points to it
};

// A part of the path in the state dict: a key, or an index of a list.
using PathPart = std::variant<std::string, std::int64_t>;

// A value in the middle of a pickle that holds more.
struct InlinedValue {
  std::string opcodes;    // that make it again, without a memo (formats/common/plain_pickle.h)
  std::string not_plain;  // why there are none: "argparse.Namespace"
  // They say all that it is: not that something in it is there twice, or of which class it is.
  bool is_all = true;
};

struct ObjectRow {  // a BYTES entry: anything that is no tensor
  std::string fqn;
  std::optional<ItemPlace> item;
  std::vector<std::string> transforms = {};  // as those of a chunk
  std::optional<InlinedValue> inlined = {};  // then it has no item of its own
  // Of further ranks, each of which gets its own back: where every rank has its own metadata.
  std::vector<ItemPlace> of_other_ranks = {};
};

// A storage record that belongs to no chunk and no object.
struct StrayRecord {
  std::string fqn;
  std::optional<Extents> offsets;
  ItemPlace item;
  std::vector<std::string> transforms = {};  // as those of a chunk
};

// What is known about who wrote it; empty where nothing is.
struct Provenance {
  std::string torch;  // "2.14", "2.7 to 2.8": from the fields that are there
  std::string
      path_class;       // the pickled class of checkpoint_id: "pathlib._local.PosixPath", "str", ""
  std::string version;  // Metadata.version
  int properties_arity = 0;  // 5, or 6 since torch 2.15; 0 where unknown
  int pickle_protocol = 0;
  std::string save_id;
  bool has_planner_data = false;
  bool has_storage_meta = false;
  // Names of planner_data that no entry has: kMostOnlyInPlanner at most.
  std::vector<std::string> only_in_planner = {};
  static constexpr std::size_t kMostOnlyInPlanner = 4096;
  std::vector<std::string> extra_attributes;  // "mcore_data", "all_local_plans"
  // Those of them that are nothing but data, with the opcodes that make their value again: a repair
  // carries them over.
  std::vector<std::pair<std::string, std::string>> plain_attributes;
  // Tensors whose rows an earlier repair put in another order, sorted: since then the writer of a
  // tile no longer says whose rows it holds. An attribute of .metadata that only Shardwright
  // writes; torch passes over it.
  std::vector<std::string> reordered;
};

class Checkpoint {
 public:
  using ChunkRange = IdRange<ChunkId>;

  const Format& format() const { return *format_; }
  const Provenance& provenance() const { return provenance_; }
  // Where it was opened; what relative paths are relative to. May be null in tests that look at
  // columns only.
  const std::shared_ptr<const Directory>& directory() const { return directory_; }

  // Tensors, in the order in which they are recorded.
  std::uint32_t tensor_count() const { return static_cast<std::uint32_t>(tensor_fqn_.size()); }
  IdRange<TensorId> tensors() const { return {0, tensor_count()}; }
  std::string_view fqn(TensorId tensor) const { return tensor_fqn_[index_of(tensor)]; }
  Dtype dtype(TensorId tensor) const { return tensor_dtype_[index_of(tensor)]; }
  bool requires_grad(TensorId tensor) const { return tensor_requires_grad_[index_of(tensor)] != 0; }
  ExtentsView shape(TensorId tensor) const { return coordinates(tensor_shape_[index_of(tensor)]); }
  ChunkRange chunks(TensorId tensor) const {
    return {first_chunk_[index_of(tensor)], first_chunk_[index_of(tensor) + 1]};
  }
  // Path in the state dict (planner_data); empty where the checkpoint has none.
  std::span<const PathPart> path(TensorId tensor) const;
  std::optional<TensorId> find(std::string_view fqn) const;

  // Chunks, those of one tensor side by side.
  std::uint32_t chunk_count() const { return static_cast<std::uint32_t>(chunk_offsets_.size()); }
  ChunkRange chunks() const { return {0, chunk_count()}; }
  TensorId tensor_of(ChunkId chunk) const;  // log(tensors)
  ExtentsView offsets(ChunkId chunk) const { return coordinates(chunk_offsets_[index_of(chunk)]); }
  ExtentsView sizes(ChunkId chunk) const { return coordinates(chunk_sizes_[index_of(chunk)]); }
  // Nothing where no storage record belongs to the chunk (rule storage-dangling).
  std::optional<ItemPlace> item(ChunkId chunk) const;
  std::optional<std::uint32_t> writer(ChunkId chunk) const;
  // Whether the writer of a tile may be taken for the owner of its rows.
  bool writers_are_owners(TensorId tensor) const;
  // Stream transforms to undo before the item can be read, in read order: "stream.zstd/1".
  std::span<const std::string> transforms(ChunkId chunk) const;
  const Codec& codec(ChunkId chunk) const;
  // Which part of its storage it is; several chunks may share one.
  StorageId storage(ChunkId chunk) const;
  std::optional<StorageView> view(ChunkId chunk) const;  // nothing: all of the storage, row-major
  std::span<const Replica> replicas(ChunkId chunk) const;

  // Storages: the runs of bytes that chunks view. A row without a file belongs to nobody.
  std::uint32_t storage_count() const { return static_cast<std::uint32_t>(storage_file_.size()); }
  ItemPlace place(StorageId storage) const {
    std::size_t i = index_of(storage);
    return {storage_file_[i], storage_offset_[i], storage_length_[i]};
  }
  std::span<const std::string> transforms(StorageId storage) const;
  const Codec& codec(StorageId storage) const;

  // Files: those referenced first, then what else lies in the directory.
  std::uint32_t file_count() const { return static_cast<std::uint32_t>(files_.size()); }
  const FileRow& file(FileId file) const { return files_[index_of(file)]; }
  std::span<const FileRow> files() const { return files_; }

  std::span<const ObjectRow> objects() const { return objects_; }
  std::span<const PathPart> object_path(std::size_t object) const;
  std::span<const StrayRecord> strays() const { return strays_; }
  // What opening saw: unsafe-pickle, path-escape, bad-record.
  std::span<const Finding> opening_findings() const { return findings_; }

  // Distinct ranks among the data files that are there or are referenced.
  std::uint32_t rank_count() const;
  // Sum over chunks of elements * element size, as recorded; saturates.
  std::uint64_t tensor_bytes() const;

 private:
  friend class CheckpointBuilder;
  using Coordinates = std::uint32_t;  // index into pool_: ndim, then that many numbers

  ExtentsView coordinates(Coordinates at) const {
    return {pool_.data() + at + 1, static_cast<std::size_t>(pool_[at])};
  }

  // Codecs and what was done to the bytes on top of them, of all storages.
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
  std::vector<std::uint32_t> by_fqn_;  // tensors sorted by FQN, for find()

  std::vector<Coordinates> chunk_offsets_, chunk_sizes_;
  std::vector<StorageId> chunk_storage_;     // empty: the storage of the same number
  std::vector<std::uint32_t> chunk_writer_;  // empty, or kWriterOfFile: who wrote its file
  std::vector<ViewRow> views_;               // by chunk; of no row: all of the storage
  std::vector<Replica> replicas_;            // by chunk

  std::vector<FileId> storage_file_;  // kNone: no storage record
  std::vector<std::int64_t> storage_offset_, storage_length_;
  std::vector<std::uint8_t> storage_coding_;  // empty: all have the first
  std::vector<Coding> codings_{1};

  std::vector<std::vector<PathPart>> tensor_path_, object_path_;
  std::vector<FileRow> files_;
  std::vector<ObjectRow> objects_;
  std::vector<StrayRecord> strays_;
  std::vector<Finding> findings_;
};

// As recorded: it may be no box of its tensor.
Box box_of(const Checkpoint& checkpoint, ChunkId chunk);
std::vector<Box> chunk_boxes(const Checkpoint& checkpoint, TensorId tensor);

// True if the item's bytes can be there: a safe path, a file, a range inside it.
bool is_reachable(const Checkpoint& checkpoint, const ItemPlace& place);

}  // namespace shw

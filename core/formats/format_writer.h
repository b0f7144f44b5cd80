// Writes a format in two phases: all file positions are fixed first, so that chunks can be
// written in any order by any number of ranks; data that depends on the written bytes follows
// last.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/formats/common/carried_storages.h"
#include "core/formats/output_tiles.h"
#include "core/io/sink.h"
#include "core/model/checkpoint.h"

namespace shw {

// --- contents of the new checkpoint

struct OutputTensor {
  std::string fqn;
  Dtype dtype = Dtype::kUnknown;
  bool requires_grad = false;
  Extents shape;
  OutputTiles tiles;
  std::vector<PathPart> path = {};      // empty: the single part {fqn}
  std::optional<TensorId> before = {};  // the tensor in the source
};
// A non-tensor entry: an item of the source, or a given value.
struct OutputObject {
  std::string fqn;
  std::optional<ItemPlace> place = {};
  std::vector<std::string> transforms = {};
  std::vector<PathPart> path = {};
  // Pickle opcodes of the value (common/carried_pickle.h), which formats that keep no source items
  // store as an item of their own. Empty: only the item exists.
  std::string plain = {};
  std::vector<CarriedStorage> storages = {};  // storages used by the opcodes, by number
  std::string unsaid = {};                    // why there are no opcodes, for people
};

// A storage record without chunk or entry; its owner may be found later.
struct OutputUnclaimedRecord {
  std::string fqn;
  std::optional<Extents> offsets;
  ItemPlace place;
  std::vector<std::string> transforms = {};
};

struct Outputs {
  // The source of elements. If it has the writer's format, items can be kept and its details are
  // preserved (source_if_of_writer_format); otherwise, or if null, everything is new.
  const Checkpoint* source = nullptr;
  std::vector<OutputTensor> tensors;
  std::vector<OutputObject> objects = {};
  std::vector<OutputUnclaimedRecord> unclaimed_records =
      {};                                         // records to keep if files of the source stay
  std::vector<std::string> only_in_planner = {};  // Provenance::only_in_planner
  std::string checkpoint_id = {};                 // text only
  std::string save_id = {};
  std::vector<std::string> reordered = {};  // Provenance::reordered
  // Provenance::plain_attributes.
  std::vector<std::pair<std::string, std::string>> attributes = {};
  // Tensors with elements that repairs have filled, and the record about some of them.
  std::vector<std::string> filled = {};
  std::function<std::string(const std::vector<std::string>& fqns)> filled_text = nullptr;
  // Keep no file of the source: kept items are copied into new files.
  bool all_new = false;
  // Maximum bytes of tensors per new file, if the format stores several per file; larger tensors
  // get a file each. 0: one file.
  std::uint64_t shard_bytes = 0;
};

// --- positions in files

// A chunk to be written: its elements, row-major and little-endian, and its item.
struct WrittenTile {
  std::uint32_t tensor = 0, tile = 0;  // indices in Outputs
  std::uint32_t file = 0;              // index in LaidOut::files
  std::uint64_t offset = 0, length = 0;
  std::uint64_t item_offset = 0, item_length = 0;
};
struct OutputBytes {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  Bytes bytes;
};
// A byte range copied from a source file into a new file.
struct OutputCopy {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::string from;
  std::uint64_t begin = 0, length = 0;
  bool is_inside = false;  // part of a larger item whose parts must stay contiguous
};
struct LaidOut {
  struct File {
    std::string path;  // a new path, or a source file that is rewritten
    std::uint64_t size = 0;
    bool is_beside = false;  // contains no tensor: the writer neither lays it out nor seals it
  };
  std::vector<File> files;
  std::vector<WrittenTile> made;  // in the order of Outputs
  // Indices in `made` grouped by file, so that sealing a file does not scan all of them.
  std::vector<std::uint32_t> made_by_file = {};
  std::vector<OutputBytes> before;  // headers that do not depend on chunk data
  std::vector<OutputCopy> copies;
  // If everything is new: items of kept chunks and of entries, in the order of Outputs.
  struct Item {
    std::uint32_t file = 0;
    std::uint64_t offset = 0, length = 0;
  };
  std::vector<Item> kept, objects;
  std::vector<Item> given;         // entries given as values, in the order of Outputs
  std::set<std::string> replaced;  // source files that seal() replaces
};

// --- after all chunks are written

using CreateFile = std::function<Result<std::unique_ptr<ByteSink>>(const std::string& path)>;
using WriteBytesAt = std::function<Status(std::uint64_t offset, BytesView bytes)>;

struct FormatWriter {
  Result<LaidOut> (*lay_out)(const Outputs& outputs);
  // The bytes of one file that depend on its chunks' data; null if there are none. `checksums`:
  // CRC-32 of every chunk. Called by whichever rank wrote the file.
  Result<std::vector<OutputBytes>> (*seal_file)(const Outputs& outputs, const LaidOut& laid_out,
                                                std::uint32_t file,
                                                std::span<const std::uint32_t> checksums);
  // Writes index and metadata, after all files.
  Status (*seal)(Outputs outputs, const LaidOut& laid_out, const CreateFile& create);
  // True if items may be moved apart to align them for block sharing: readers locate items by
  // metadata only.
  bool may_have_gaps = false;
  // Lengthens the header of a file by `by` bytes, a multiple of 8, without changing its meaning;
  // false if readers would reject it. Used for alignment if may_have_gaps is false.
  bool (*widen_header)(Bytes& header, std::uint64_t by) = nullptr;
  // Like seal_file() for some chunks of a file (indices in LaidOut::made, one checksum each), so
  // that small chunks are written together with their checksums. Null if files are sealed as a
  // whole.
  Status (*seal_tiles)(const Outputs& outputs, const LaidOut& laid_out,
                       std::span<const std::uint32_t> tiles,
                       std::span<const std::uint32_t> checksums, const WriteBytesAt& put) = nullptr;
};

// The source if its format uses this writer; null if everything is new.
const Checkpoint* source_if_of_writer_format(const Outputs& outputs, const FormatWriter& writer);
// Bytes of a chunk; nullopt if its box or dtype is invalid.
std::optional<std::uint64_t> bytes_of(const OutputTensor& tensor, const OutputTile& tile);
// True if the tensor must be written as one chunk.
bool is_whole(const OutputTensor& tensor);
// Places a storage at `offset` of a new file. Its bytes stay contiguous, because chunks view it.
void place_storage(const CarriedStorage& storage, std::uint32_t file, std::uint64_t offset,
                   LaidOut& laid_out);
// The source item of a kept chunk.
std::optional<ItemPlace> kept_item_place(const Outputs& outputs, const OutputTile& tile);

}  // namespace shw

// Writing a format: where every byte of a new checkpoint goes is fixed before one moves, so that
// tiles can be written in any order, by any number of workers; what depends on the bytes comes
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

// --- what it is to hold

struct OutputTensor {
  std::string fqn;
  Dtype dtype = Dtype::kUnknown;
  bool requires_grad = false;
  Extents shape;
  OutputTiles tiles;
  std::vector<PathPart> path = {};      // empty: the one part {fqn}
  std::optional<TensorId> before = {};  // what it was in the source
};
// An entry that is no tensor: an item of the source, as it is, or a value that is given.
struct OutputObject {
  std::string fqn;
  std::optional<ItemPlace> place = {};
  std::vector<std::string> transforms = {};
  std::vector<PathPart> path = {};
  // The opcodes that make the value (common/carried_pickle.h): a format that keeps no item of the
  // source writes them as one of its own. Empty: there is only the item.
  std::string plain = {};
  std::vector<CarriedStorage> storages = {};  // that they name, by number
  std::string unsaid = {};                    // why there are no opcodes, for people
};

// A record that belongs to no tile and no entry: what it is of may be found yet.
struct OutputStray {
  std::string fqn;
  std::optional<Extents> offsets;
  ItemPlace place;
  std::vector<std::string> transforms = {};
};

struct Outputs {
  // Where elements come from. Of the writer's own format it is also what items are kept of, and
  // whose form what is written takes (source_in_form); of another, or null: everything is new.
  const Checkpoint* source = nullptr;
  std::vector<OutputTensor> tensors;
  std::vector<OutputObject> objects = {};
  std::vector<OutputStray> strays = {};  // where files of the source stay, and an index has records
  std::vector<std::string> only_in_planner = {};  // Provenance::only_in_planner
  std::string checkpoint_id = {};                 // text only
  std::string save_id = {};
  std::vector<std::string> reordered = {};  // Provenance::reordered
  // Provenance::plain_attributes.
  std::vector<std::pair<std::string, std::string>> attributes = {};
  // Tensors that repairs have filled elements of, and the record of it for some of them.
  std::vector<std::string> filled = {};
  std::function<std::string(const std::vector<std::string>& fqns)> filled_text = nullptr;
  // No file of the source stays: items that are kept are copied into new files, as they are.
  bool all_new = false;
  // At most that many bytes of tensors in a new file, where a format lays them side by side; a
  // tensor of more has one for itself. 0: all of them in one file.
  std::uint64_t shard_bytes = 0;
};

// --- where it goes

// A tile that is made: its elements, row-major and little-endian, and the item around them.
struct MadeTile {
  std::uint32_t tensor = 0, tile = 0;  // of Outputs
  std::uint32_t file = 0;              // of LaidOut::files
  std::uint64_t offset = 0, length = 0;
  std::uint64_t item_offset = 0, item_length = 0;
};
struct OutputBytes {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  Bytes bytes;
};
// Bytes of a file of the source that stand in a file that is made.
struct OutputCopy {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::string from;
  std::uint64_t begin = 0, length = 0;
  bool is_inside = false;  // of something larger, whose parts stay side by side
};
struct LaidOut {
  struct File {
    std::string path;  // a new one, or one of the source that is made anew
    std::uint64_t size = 0;
  };
  std::vector<File> files;
  std::vector<MadeTile> made;  // in the order of Outputs
  // Indices in `made`, file by file: sealing a file must not look through all of them.
  std::vector<std::uint32_t> made_by_file = {};
  std::vector<OutputBytes> before;  // headers that no tile's bytes change
  std::vector<OutputCopy> copies;
  // Where all is new: the items of kept tiles and of objects, in the order of Outputs.
  struct Item {
    std::uint32_t file = 0;
    std::uint64_t offset = 0, length = 0;
  };
  std::vector<Item> kept, objects;
  std::vector<Item> given;         // of objects that are given as values, in the order of Outputs
  std::set<std::string> replaced;  // of the source's files, what seal() makes anew
};

// --- what is left when all tiles are there

using CreateFile = std::function<Result<std::unique_ptr<ByteSink>>(const std::string& path)>;
using PutBytes = std::function<Status(std::uint64_t offset, BytesView bytes)>;

struct FormatWriter {
  Result<LaidOut> (*lay_out)(const Outputs& outputs);
  // What stands around the tiles of one file and depends on their bytes; null where nothing does.
  // `checksums`: the CRC-32 of every made tile. Whoever wrote the tiles of a file can do it.
  Result<std::vector<OutputBytes>> (*seal_file)(const Outputs& outputs, const LaidOut& laid_out,
                                                std::uint32_t file,
                                                std::span<const std::uint32_t> checksums);
  // Index and metadata, when all files are there.
  Status (*seal)(Outputs outputs, const LaidOut& laid_out, const CreateFile& create);
  // What may be done so that long runs stand at the same places of blocks as in the source.
  // Readers take each item from where the metadata say, and look at nothing between two of them.
  bool may_have_gaps = false;
  // Else: makes what stands at the beginning of a file that much longer, a multiple of 8, and says
  // the same; false where no reader would take it.
  bool (*widen_header)(Bytes& header, std::uint64_t by) = nullptr;
  // What seal_file() says, of some tiles of a file alone (by index in LaidOut::made, `checksums` as
  // many): small ones are written together with it, and of millions it is never there at once. Null
  // where a file is sealed as a whole.
  Status (*seal_tiles)(const Outputs& outputs, const LaidOut& laid_out,
                       std::span<const std::uint32_t> tiles,
                       std::span<const std::uint32_t> checksums, const PutBytes& put) = nullptr;
};

// The source where its format has this writer; null where everything is new.
const Checkpoint* source_in_form(const Outputs& outputs, const FormatWriter& writer);
// The bytes that a tile takes; nothing where its box or dtype cannot be.
std::optional<std::uint64_t> bytes_of(const OutputTensor& tensor, const OutputTile& tile);
// It is to be written in one piece.
bool is_whole(const OutputTensor& tensor);
// The bytes of a storage at a place of a file that is made, where nothing may move apart.
void put_storage(const CarriedStorage& storage, std::uint32_t file, std::uint64_t offset,
                 LaidOut& laid_out);
// Where the item of a kept tile lies.
std::optional<ItemPlace> kept_place(const Outputs& outputs, const OutputTile& tile);

}  // namespace shw

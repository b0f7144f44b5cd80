// Objects of an HDF5 file, read without the library. All bytes are untrusted, and errors name
// offsets.
//
//   file      superblock  object header of the root group
//   object    version 1: messages, continued elsewhere; version 2: "OHDR", the same, "OCHK"
//   group     symbol table: B-tree ("TREE") of nodes ("SNOD") with names in a heap ("HEAP"); or
//   link
//             messages in its header. Links of a large group of the newer form are in a fractal
//             heap: not read
//   dataset   messages: dataspace, datatype, layout, attributes
//   extension what a superblock of version 2 or 3 says next to itself: an object of messages
//
// HDF5 File Format Specification, version 3.0; offsets and lengths of 8 bytes, which is what every
// writer takes unless it is told otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/io/source.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

inline constexpr std::uint64_t kHdf5NoAddress = ~std::uint64_t{0};

struct Hdf5Message {
  std::uint16_t type = 0;
  bool is_shared = false;
  std::uint64_t offset = 0;  // of its body in the file
  Bytes body;
};
enum class Hdf5LinkKind : std::uint8_t {
  kHard,
  kSoft,      // a path in this file
  kExternal,  // into another file, which is not opened
  kOther,     // user-defined
};
struct Hdf5Link {
  std::string name;
  std::uint64_t address = 0;  // of hard links
  Hdf5LinkKind kind = Hdf5LinkKind::kHard;
  std::string target = {};  // of soft and external links
};

// Valid but unsupported.
enum class Hdf5Unsupported : std::uint8_t {
  kNothing,
  kChunked,
  kFiltered,
  kExternal,
  kVirtual,
  kBigEndian,
  kOtherType,   // compound, strings, enumerations, floats without torch equivalent
  kSharedType,  // a named datatype
  kAttributes,  // in a heap; they might contain the dataset's place
  kCount
};

// A chunk of a dataset in HDF5's sense. Those at the dataset's end exceed it.
struct Hdf5Tile {
  Extents offsets;
  std::uint64_t offset = 0, length = 0;  // in the file
};

// The value of unwritten elements.
struct Hdf5Fill {
  bool is_defined = true;    // false: undefined
  std::uint64_t offset = 0;  // in the file
  Bytes value = {};          // of one element; empty: zeros
};

// A range of bytes in the file.
struct Hdf5Run {
  std::uint64_t begin = 0, end = 0;
};

// Description of a dataset.
struct Hdf5Array {
  Dtype dtype = Dtype::kUnknown;  // kUnknown for unsupported types
  Extents shape;
  Hdf5Unsupported unread = Hdf5Unsupported::kNothing;
  std::uint64_t unread_offset = 0;  // in the file
  // Offset of contiguous row-major elements; empty if they were never written.
  std::optional<std::uint64_t> offset = {};
  std::uint64_t length = 0;
  // Written tiles, if the dataset is not contiguous.
  bool is_tiled = false;
  Extents tile_shape = {};
  std::vector<Hdf5Tile> tiles = {};
  Hdf5Fill fill = {};
  bool is_shuffled = false, is_deflated = false;  // each tile separately
  std::uint64_t shuffled_by = 0;                  // element size in bytes for shuffling
  bool is_compact = false;                        // elements are inside the header
  // Attributes of a shard of a larger tensor.
  std::optional<Extents> offsets = {}, global_shape = {};
};

class Hdf5Objects {
 public:
  // Reads the superblock. Errors add `begin`, the offset of the source in its file.
  static Result<Hdf5Objects> open(std::shared_ptr<const ByteSource> source,
                                  std::uint64_t begin = 0);
  std::uint64_t begin() const { return begin_; }
  std::uint64_t root() const { return root_; }
  // According to the superblock; truncated files are shorter.
  std::uint64_t end_of_file() const { return end_; }
  std::uint64_t size() const { return source_->size(); }
  // A writer did not close it, so libhdf5 rejects the file.
  bool was_left_open() const { return was_not_closed_; }
  const std::string& file() const { return source_->name(); }

  // Messages of a group, a dataset or a named type; there are no other objects.
  Result<std::vector<Hdf5Message>> known(std::uint64_t address);
  static bool is_dataset(const std::vector<Hdf5Message>& messages);
  static bool is_group(const std::vector<Hdf5Message>& messages);
  // Links of a group. Nodes may only be read once, so call it once per group.
  Result<std::vector<Hdf5Link>> links(const std::vector<Hdf5Message>& messages);
  Result<Hdf5Array> array(const std::vector<Hdf5Message>& messages);
  // Metadata read so far, which elements of datasets must not overlap.
  const std::vector<Hdf5Run>& described() const { return described_; }

 private:
  Result<std::vector<Hdf5Message>> messages(std::uint64_t address);
  // Bytes of the file from `offset`; messages start at `first`.
  struct Hdf5Block {
    std::uint64_t offset = 0;
    std::size_t first = 0;
    Bytes bytes;
  };
  // type, size (2 bytes), flags, and ignored bytes.
  struct MessageHead {
    std::size_t type_bytes = 2, passed_over = 3;
  };
  // Names of a group, and the number of bytes not yet used by a name.
  struct Hdf5Heap {
    Bytes bytes;
    std::uint64_t left = 0;
    std::map<int, std::uint64_t> next_of_level = {};
    std::vector<std::string> met = {};  // in ascending order
  };
  Hdf5Objects(std::shared_ptr<const ByteSource> source, std::uint64_t begin)
      : source_(std::move(source)), begin_(begin) {}
  Result<Bytes> read(std::uint64_t offset, std::uint64_t length) const;
  tl::unexpected<Error> damaged(std::string message, std::uint64_t offset) const;
  tl::unexpected<Error> not_read(std::string message, std::uint64_t offset) const;
  Result<Bytes> read_and_record(std::uint64_t offset, std::uint64_t length);
  Result<Bytes> read_checked(std::uint64_t offset, std::uint64_t length);
  Status read_extension(std::uint64_t address);
  Status add_messages(const Hdf5Block& block, const MessageHead& head,
                      std::vector<Hdf5Message>& messages) const;
  Result<Hdf5Block> continuation_block(const Hdf5Message& message, bool is_new);
  Result<std::vector<Hdf5Message>> all_messages(const Hdf5Block& first, const MessageHead& head);
  Result<std::vector<Hdf5Message>> new_messages(std::uint64_t address);
  Result<std::string> claim_name(std::uint64_t at, Hdf5Heap& heap, std::uint64_t asked_at) const;
  static std::optional<std::string_view> key_at(std::uint64_t at, const Hdf5Heap& heap);
  Status follow(Hdf5Heap& names, int level, std::uint64_t node, std::uint64_t next) const;
  Status check_free(std::uint64_t at, const Hdf5Heap& names, std::uint64_t heap) const;
  Status add_symbols(std::uint64_t tree, Hdf5Heap& names, int depth, std::vector<Hdf5Link>& links);
  Status add_symbol_node(std::uint64_t address, Hdf5Heap& names, std::vector<Hdf5Link>& links);
  Result<Hdf5Link> link_of(const Hdf5Message& message) const;
  Status add_attribute(const Hdf5Message& message, Hdf5Array& array) const;
  Status place_tiles(const Hdf5Message& message, Hdf5Array& array);
  // A node of the B-tree with the parent's keys around it, which limit what HDF5 finds.
  struct Hdf5TileNode {
    std::uint64_t address = 0;
    int above = -1;  // level of the parent
    std::optional<std::pair<Extents, Extents>> between = {};
  };
  // State of the traversal: visited nodes, and the expected right sibling for each
  // level.
  struct Hdf5TileTraversal {
    std::set<std::uint64_t> seen = {};
    std::map<int, std::uint64_t> next_of_level = {};
  };
  Status add_tiles(const Hdf5TileNode& node, Hdf5TileTraversal& way, Hdf5Array& array);
  Status place_array(const Hdf5Message& message, Hdf5Array& array);

  std::shared_ptr<const ByteSource> source_;
  std::uint64_t begin_ = 0;
  std::uint64_t root_ = 0, end_ = kHdf5NoAddress;
  bool was_not_closed_ = false;
  // Capacities of nodes. Newer files do not store the one of old-style groups; these are HDF5's
  // defaults.
  std::uint32_t symbols_ = 8, children_ = 32, tiles_ = 64;
  std::set<std::uint64_t> nodes_;  // nodes of groups that were read
  std::vector<Hdf5Run> described_;
};

}  // namespace shw

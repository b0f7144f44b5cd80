// Contents of a Metadata pickle before they are added to a builder: names by number, boxes by
// handle.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/pickle/pickle.h"
#include "core/model/builder.h"

namespace shw {

using ExtentsHandle = CheckpointBuilder::Handle;
inline constexpr ExtentsHandle kNoExtents{0xFFFFFFFFu};
inline constexpr std::uint32_t kNoName = 0xFFFFFFFFu;

// FQNs by number. Texts refer to the file's bytes.
class NameTable {
 public:
  std::uint32_t intern(std::string_view text);
  std::string_view text(std::uint32_t name) const { return texts_[name]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(texts_.size()); }

 private:
  void grow();
  std::vector<std::string_view> texts_;
  std::vector<std::uint32_t> slots_;  // open addressing; name + 1, 0 if free
};

struct DcpChunkRow {
  ExtentsHandle offsets = kNoExtents;
  ExtentsHandle sizes = kNoExtents;
};
struct DcpKeyRow {
  std::uint32_t name = kNoName;
  std::int32_t hint = -1;  // position in the tensor's chunks; may be wrong
  ExtentsHandle offsets = kNoExtents;
};

// Rows that the shortcut parsed directly. NodeIds with the top bit set refer to them: two bits of
// kind, 29 of row.
struct DcpRows {
  static constexpr std::uint32_t kChunk = 0x80000000u;
  static constexpr std::uint32_t kKey = 0xA0000000u;
  static constexpr std::uint32_t kPlace = 0xC0000000u;
  static constexpr std::uint32_t kKindMask = 0xE0000000u;
  static constexpr std::uint32_t kMaxRows = 0x1FFFFFFFu;

  std::vector<DcpChunkRow> chunks;
  std::vector<DcpKeyRow> keys;
  std::vector<ItemPlace> places;

  template <class Row>
  static const Row* find(const std::vector<Row>& rows, std::uint32_t kind, NodeId id) {
    auto bits = static_cast<std::uint32_t>(id);
    if (id == NodeId::kAbsent || (bits & kKindMask) != kind) return nullptr;
    return &rows[bits & kMaxRows];
  }
  const DcpChunkRow* chunk(NodeId id) const { return find(chunks, kChunk, id); }
  const DcpKeyRow* key(NodeId id) const { return find(keys, kKey, id); }
  const ItemPlace* place(NodeId id) const { return find(places, kPlace, id); }
};

// The names in a place's transform_descriptors. Falsy values mean none; values that are not
// iterable make torch fail.
std::vector<std::string> dcp_transforms(const PickleTree& tree, NodeId descriptors);

// Fills the builder from a decoded pickle. `file_size` limits allocations. If `progress` is
// cancelled, the result is incomplete and must be discarded.
Status build_dcp(const PickleTree& tree, const DcpRows& rows, NameTable& names,
                 const std::string& file, std::uint64_t file_size, CheckpointBuilder& builder,
                 const Progress* progress);

// Removes "./" as pathlib and POSIX do: "./__0_0.distcp" and ".//__0_0.distcp" are the same file.
// Absolute paths are unchanged.
inline std::string_view without_leading_dot_slash(std::string_view path) {
  while (path.starts_with("./")) {
    path.remove_prefix(2);
    while (path.starts_with('/')) path.remove_prefix(1);
  }
  return path;
}

}  // namespace shw

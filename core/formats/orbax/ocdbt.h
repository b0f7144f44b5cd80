// OCDBT, the B+tree of keys and values in which tensorstore stores small files for Orbax.
//
//   file      = magic(u32 BE) length(u64) version(varint) compression(varint) body crc32c(u32)
//   manifest  = magic 0cdb3a2a; its body: config files versions ...
//   config    = uuid[16] kind inline-limit node-limit arity(u8) compression [level(u32)]
//   versions  = count, then column by column: generation, height(u8), file, offset, length, ...
//   node      = magic 0cdb20de; its body: height(u8) files count keys entries
//   files     = count, then: shared prefixes, suffix lengths, lengths of base paths, suffixes
//   keys      = shared prefixes, suffix lengths, [prefixes that a child leaves out], suffixes
//   leaf      = value lengths, kinds(u8), for values of kind 1: file, offset; values of kind 0
//   interior  = columns: file, offset, length, keys, tree bytes, value bytes
//
// Numbers are varints unless noted; a body may be a zstd frame. Source: tensorstore,
// kvstore/ocdbt/format.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

inline constexpr std::string_view kOcdbtManifest = "manifest.ocdbt";

struct OcdbtValue {
  std::string key;
  std::string file;  // relative to the database; for a value inside a node, the decoded node's name
  std::uint64_t offset = 0, length = 0;
};

// A node of the tree that contains values.
struct OcdbtNode {
  std::string file;
  std::uint64_t offset = 0, length = 0;
  std::uint64_t decoded = 0;  // bytes of its decoded body
};

struct OcdbtDatabase {
  std::vector<OcdbtValue> values;          // sorted by key
  std::map<std::string, OcdbtNode> nodes;  // by the file name that their values use
};

// Reads the newest version of the database in `directory`. Verifies the checksums of the manifest
// and of all nodes.
Result<OcdbtDatabase> read_ocdbt(const Directory& directory, const Progress* progress);

// The decoded body of a node.
Result<Bytes> read_ocdbt_node(const ByteSource& source, const OcdbtNode& node);

}  // namespace shw

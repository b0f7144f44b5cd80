#include "core/formats/orbax/ocdbt.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/checked.h"
#include "core/formats/common/crc32c.h"
#include "core/formats/orbax/ocdbt_cursor.h"
#include "core/formats/zip/zstd_stream.h"

namespace shw {
namespace {

constexpr std::uint32_t kManifestMagic = 0x0CDB3A2A, kNodeMagic = 0x0CDB20DE;
// tensorstore itself limits a decoded node to 100 MB.
constexpr std::uint64_t kMaxNodeBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kMaxKey = 4096;
constexpr unsigned kMaxHeight = 32;
constexpr std::size_t kHead = 14, kTail = 4;  // bytes before and after a body

tl::unexpected<Error> damaged_ocdbt_error(const std::string& file, std::uint64_t offset,
                                          std::string what) {
  return fail(ErrorKind::kDamaged, std::move(what), {file, offset});
}

// The bytes between the file's head and its checksum, decompressed.
Result<Bytes> read_ocdbt_body(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                              std::uint32_t magic) {
  const std::string& file = source.name();
  SHW_TRY(Bytes all, read_bytes(source, offset, length));
  if (all.size() < kHead + kTail)
    return damaged_ocdbt_error(file, offset,
                               fmt::format("has {} bytes, too few for OCDBT", all.size()));
  if (__builtin_bswap32(load_little<std::uint32_t>(all)) != magic)
    return damaged_ocdbt_error(file, offset, "does not begin like an OCDBT file");
  if (load_little<std::uint64_t>(all, 4) != all.size())
    return damaged_ocdbt_error(file, offset,
                               fmt::format("should have {} bytes, but has {}",
                                           load_little<std::uint64_t>(all, 4), all.size()));
  const std::uint32_t expected = load_little<std::uint32_t>(all, all.size() - kTail);
  const std::uint32_t actual = crc32c_of(BytesView(all).first(all.size() - kTail));
  if (expected != actual)
    return damaged_ocdbt_error(
        file, offset,
        fmt::format("does not match its checksum: {:08x} recorded, {:08x} computed", expected,
                    actual));
  const unsigned version = std::to_integer<unsigned>(all[12]);
  const unsigned compression = std::to_integer<unsigned>(all[13]);
  if (version != 0 || compression > 1)
    return fail(ErrorKind::kUnsupported,
                fmt::format("has OCDBT version {} and compression {}, which are not supported",
                            version, compression),
                {file, offset});
  const std::uint64_t size = all.size() - kHead - kTail;
  if (compression == 1) return read_zstd(source, offset + kHead, size, kMaxNodeBytes);
  return Bytes(all.begin() + kHead, all.end() - kTail);
}

// Reads a text that shares a prefix with the previous one.
bool consume_joined(OcdbtCursor& cursor, std::uint64_t shared, std::uint64_t rest,
                    std::string& text) {
  if (shared > text.size() || rest > kMaxKey || shared + rest > kMaxKey) {
    cursor.fail();
    return false;
  }
  const BytesView bytes = cursor.take(rest);
  text.resize(static_cast<std::size_t>(shared));
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return cursor.ok();
}

std::vector<std::uint64_t> shared_of(OcdbtCursor& cursor, std::uint64_t count) {
  std::vector<std::uint64_t> shared = cursor.numbers(count == 0 ? 0 : count - 1);
  if (count != 0) shared.insert(shared.begin(), 0);
  return shared;
}

// Paths of data files; paths of a nested database begin with its folder.
struct OcdbtFiles {
  std::vector<std::string> paths, bases;
};

OcdbtFiles consume_files(OcdbtCursor& cursor, const std::string& around) {
  OcdbtFiles files;
  const std::uint64_t count = cursor.number();
  const auto shared = shared_of(cursor, count);
  const auto rest = cursor.numbers(count), bases = cursor.numbers(count);
  std::string path;
  for (std::size_t i = 0; cursor.ok() && i < rest.size(); ++i) {
    if (!consume_joined(cursor, shared[i], rest[i], path) || bases[i] > path.size()) {
      cursor.fail();
      break;
    }
    if (around.size() > kMaxKey) cursor.fail();
    files.bases.push_back(around + path.substr(0, static_cast<std::size_t>(bases[i])));
    files.paths.push_back(around + path);
  }
  return files;
}

struct OcdbtPlace {
  std::string file, base;
  std::uint64_t offset = 0, length = 0;
  unsigned height = 0;
};

class OcdbtReader {
 public:
  OcdbtReader(const Directory& directory, const Progress* progress)
      : directory_(directory), progress_(progress) {}

  // The root of the newest version; nullopt if the database is empty.
  Result<std::optional<OcdbtPlace>> root() {
    const std::string file(kOcdbtManifest);
    SHW_TRY(auto source, directory_.open(file));
    SHW_TRY(Bytes body, read_ocdbt_body(*source, 0, source->size(), kManifestMagic));
    OcdbtCursor cursor(body);
    cursor.take(16);
    if (const std::uint64_t kind = cursor.number(); cursor.ok() && kind != 0)
      return fail(ErrorKind::kUnsupported,
                  "keeps its manifest in numbered files, which is not supported", {file, 0});
    cursor.numbers(2);
    cursor.byte();
    if (cursor.number() == 1) cursor.take(4);
    const OcdbtFiles files = consume_files(cursor, "");
    const std::uint64_t count = cursor.number();
    const auto generations = cursor.numbers(count);
    const BytesView heights = cursor.take(count);
    const auto ids = cursor.numbers(count), offsets = cursor.numbers(count),
               lengths = cursor.numbers(count), keys = cursor.numbers(count);
    if (!cursor.ok()) return damaged_ocdbt_error(file, 0, "its list of versions cannot be read");
    if (count == 0) return std::optional<OcdbtPlace>();
    const auto newest = static_cast<std::size_t>(
        std::max_element(generations.begin(), generations.end()) - generations.begin());
    if (keys[newest] == 0 && lengths[newest] == 0) return std::optional<OcdbtPlace>();
    if (ids[newest] >= files.paths.size())
      return damaged_ocdbt_error(file, 0, "the file of its newest version is not named");
    const auto id = static_cast<std::size_t>(ids[newest]);
    return std::optional(OcdbtPlace{files.paths[id], files.bases[id], offsets[newest],
                                    lengths[newest], std::to_integer<unsigned>(heights[newest])});
  }

  Status add(const OcdbtPlace& place, const std::string& prefix) {
    if (is_cancelled(progress_)) return cancelled_error();
    if (place.height > kMaxHeight || prefix.size() > kMaxKey ||
        !seen_.insert({place.file, place.offset}).second)
      return damaged_ocdbt_error(place.file, place.offset, "the tree contains a cycle");
    auto source = directory_.open(place.file);
    if (!source) {
      Error error = std::move(source).error();
      error.message = "a part of the OCDBT database cannot be opened: " + error.message;
      return tl::unexpected<Error>(std::move(error));
    }
    SHW_TRY(Bytes body, read_ocdbt_body(**source, place.offset, place.length, kNodeMagic));
    OcdbtCursor cursor(body);
    if (cursor.byte() != place.height)
      return damaged_ocdbt_error(place.file, place.offset,
                                 "a node does not have the recorded height");
    const OcdbtFiles files = consume_files(cursor, place.base);
    const Keys keys = parse_keys(cursor, place.height > 0);
    const bool is_read =
        cursor.ok() &&
        (place.height > 0 ? true : add_values(cursor, place, prefix, keys, files, body));
    if (!is_read) return damaged_ocdbt_error(place.file, place.offset, "a node cannot be read");
    return place.height > 0 ? add_children(cursor, place, prefix, keys, files) : Status{};
  }

  OcdbtDatabase database;

 private:
  struct Keys {
    std::vector<std::string> keys;
    std::vector<std::uint64_t> left_out;  // number of key bytes that a child's keys omit
  };

  Keys parse_keys(OcdbtCursor& cursor, bool is_interior) {
    Keys keys;
    const std::uint64_t count = cursor.number();
    const auto shared = shared_of(cursor, count);
    const auto rest = cursor.numbers(count);
    if (is_interior) keys.left_out = cursor.numbers(count);
    std::string key;
    for (std::size_t i = 0; cursor.ok() && i < rest.size(); ++i) {
      if (!consume_joined(cursor, shared[i], rest[i], key)) break;
      key_bytes_ += key.size();
      if (key_bytes_ > kMaxKeyBytes) cursor.fail();
      keys.keys.push_back(key);
    }
    return keys;
  }

  bool add_values(OcdbtCursor& cursor, const OcdbtPlace& place, const std::string& prefix,
                  const Keys& keys, const OcdbtFiles& files, const Bytes& body) {
    const std::size_t count = keys.keys.size();
    const auto lengths = cursor.numbers(count);
    const BytesView kinds = cursor.take(count);
    const auto apart = static_cast<std::uint64_t>(
        std::count_if(kinds.begin(), kinds.end(), [](std::byte b) { return b != std::byte{0}; }));
    const auto ids = cursor.numbers(apart), offsets = cursor.numbers(apart);
    const std::string node = fmt::format("{} (node at byte {})", place.file, place.offset);
    std::size_t next = 0;
    for (std::size_t i = 0; cursor.ok() && i < count; ++i) {
      OcdbtValue value{prefix + keys.keys[i], node, cursor.at(), lengths[i]};
      if (kinds[i] == std::byte{0}) {
        cursor.take(lengths[i]);
        database.nodes.try_emplace(node,
                                   OcdbtNode{place.file, place.offset, place.length, body.size()});
      } else {
        if (kinds[i] != std::byte{1} || ids[next] >= files.paths.size()) return false;
        value.file = files.paths[static_cast<std::size_t>(ids[next])];
        value.offset = offsets[next++];
      }
      database.values.push_back(std::move(value));
    }
    return cursor.ok();
  }

  Status add_children(OcdbtCursor& cursor, const OcdbtPlace& place, const std::string& prefix,
                      const Keys& keys, const OcdbtFiles& files) {
    const std::size_t count = keys.keys.size();
    const auto ids = cursor.numbers(count), offsets = cursor.numbers(count),
               lengths = cursor.numbers(count);
    if (!cursor.ok()) return damaged_ocdbt_error(place.file, place.offset, "a node cannot be read");
    for (std::size_t i = 0; i < count; ++i) {
      if (ids[i] >= files.paths.size() || keys.left_out[i] > keys.keys[i].size())
        return damaged_ocdbt_error(place.file, place.offset, "a node cannot be read");
      const auto id = static_cast<std::size_t>(ids[i]);
      SHW_CHECK(add({files.paths[id], files.bases[id], offsets[i], lengths[i], place.height - 1},
                    prefix + keys.keys[i].substr(0, static_cast<std::size_t>(keys.left_out[i]))));
    }
    return {};
  }

  static constexpr std::uint64_t kMaxKeyBytes = std::uint64_t{1} << 30;

  const Directory& directory_;
  const Progress* progress_;
  std::set<std::pair<std::string, std::uint64_t>> seen_;
  std::uint64_t key_bytes_ = 0;
};

}  // namespace

Result<OcdbtDatabase> read_ocdbt(const Directory& directory, const Progress* progress) {
  OcdbtReader reader(directory, progress);
  SHW_TRY(std::optional<OcdbtPlace> root, reader.root());
  if (root) SHW_CHECK(reader.add(*root, ""));
  std::stable_sort(reader.database.values.begin(), reader.database.values.end(),
                   [](const OcdbtValue& a, const OcdbtValue& b) { return a.key < b.key; });
  return std::move(reader.database);
}

Result<Bytes> read_ocdbt_node(const ByteSource& source, const OcdbtNode& node) {
  return read_ocdbt_body(source, node.offset, node.length, kNodeMagic);
}

}  // namespace shw

#include "core/formats/common/legacy_torch_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/base/checked.h"
#include "core/base/little_endian.h"
#include "core/formats/pickle/pickle.h"
#include "core/tensor/dtype.h"

namespace shw {
namespace {

// The magic number as opcode LONG1, its length and the number; protocols 0 and 1 write it as text.
constexpr auto kMagicNumber = std::to_array<unsigned char>(
    {0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19});
constexpr std::string_view kMagicText = "L119547037146038801333356L\n.";
// The magic number begins within these bytes: protocols 4 and later put a frame header before it.
constexpr std::size_t kMagicReach = 32;
constexpr std::int64_t kOldProtocol = 1001;
// Limits of the pickles: a state dict of 100,000 parameters takes some 20 MB.
constexpr std::uint64_t kFirstWindow = 1 << 20, kMaxPickled = std::uint64_t{1} << 28;
constexpr PickleLimits kOldLimits{1u << 27, 200, 1u << 14};

struct LegacyStorage {
  std::uint64_t count = 0, unit = 0;
};

// The pickles before the storages.
struct LegacyHead {
  std::uint64_t object_at = 0, object_end = 0, end = 0;
  std::vector<std::string> keys = {};
  std::map<std::string, LegacyStorage, std::less<>> storages = {};
};

class HeadReader {
 public:
  HeadReader(BytesView bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  Result<LegacyHead> run() {
    SHW_TRY(PickleTree magic, next());
    SHW_TRY(PickleTree protocol, next());
    if (protocol.integer(protocol.root()) != kOldProtocol)
      return damaged("the protocol number of the legacy format must be 1001, but differs");
    SHW_TRY(PickleTree system, next());
    if (system.kind(system.root()) != NodeKind::kDict)
      return damaged("the system information record is missing");
    LegacyHead head;
    head.object_at = at_;
    SHW_TRY(PickleTree object, next());
    head.object_end = at_;
    SHW_CHECK(read_storages(object, head));
    begin_ = at_;
    SHW_TRY(PickleTree keys, next());
    SHW_CHECK(read_storage_keys(keys, head));
    head.end = at_;
    return head;
  }

 private:
  tl::unexpected<Error> damaged(std::string what, std::optional<std::uint64_t> at = {}) const {
    return fail(ErrorKind::kDamaged, std::move(what), {file_, at.value_or(begin_)});
  }

  Result<PickleTree> next() {
    begin_ = at_;
    SHW_TRY(PickleTree tree, decode_pickle(bytes_.subspan(at_), file_, at_, kOldLimits));
    if (tree.refused()) return damaged(tree.refused()->what, tree.refused()->at);
    at_ += tree.end();
    return tree;
  }

  // Storages named in another form are reported when their tensors are read.
  Status read_storages(const PickleTree& tree, LegacyHead& head) const {
    for (std::uint32_t i = 0; i < tree.node_count(); ++i) {
      const auto ids = tree.kind(NodeId{i}) == NodeKind::kPersistentId ? tree.items(NodeId{i})
                                                                       : std::span<const NodeId>{};
      const auto id = ids.size() == 1 ? tree.items(ids[0]) : std::span<const NodeId>{};
      const PickleGlobal* type = id.size() > 4 ? tree.global(id[1]) : nullptr;
      const auto key = type != nullptr ? tree.text(id[2]) : std::nullopt;
      const auto count = key ? tree.integer(id[4]) : std::nullopt;
      if (!count || *count < 0) continue;
      const auto dtype = dtype_from_storage_class(type->name);
      const std::uint64_t unit = dtype ? size_of(*dtype) : type->name == "UntypedStorage" ? 1 : 0;
      const LegacyStorage said{static_cast<std::uint64_t>(*count), unit};
      auto [known, is_new] = head.storages.try_emplace(std::string(*key), said);
      if (!is_new && (known->second.count != said.count || known->second.unit != said.unit))
        return damaged(
            fmt::format("two tensors give different lengths for one storage: {} and {} elements",
                        known->second.count, said.count),
            tree.at(NodeId{i}));
    }
    return {};
  }

  Status read_storage_keys(const PickleTree& tree, LegacyHead& head) const {
    if (tree.kind(tree.root()) != NodeKind::kList)
      return damaged("the storage list after the pickle is missing");
    std::set<std::string_view> seen;
    for (NodeId item : tree.items(tree.root())) {
      const auto key = tree.text(item);
      if (!key || !head.storages.contains(*key))
        return damaged(
            "the storage list names a storage that no tensor uses: torch.load fails there",
            tree.at(item));
      if (!seen.insert(*key).second)
        return damaged("the storage list names a storage twice", tree.at(item));
      head.keys.emplace_back(*key);
    }
    return {};
  }

  BytesView bytes_;
  const std::string& file_;
  std::uint64_t at_ = 0, begin_ = 0;
};

// The end of the pickles is only known after parsing: reads more of the file until they are
// complete.
Result<LegacyHead> read_head(const ByteSource& source) {
  for (std::uint64_t window = kFirstWindow;; window *= 4) {
    const std::uint64_t length = std::min(window, source.size());
    SHW_TRY(Bytes bytes, read_bytes(source, 0, length));
    auto head = HeadReader(bytes, source.name()).run();
    const bool may_end_later = length < source.size() && window < kMaxPickled;
    if (head || !may_end_later || head.error().kind != ErrorKind::kDamaged) return head;
  }
}

// The element count before a storage; nullopt if the file ends first.
Result<std::optional<std::uint64_t>> read_element_count_at(const ByteSource& source,
                                                           std::uint64_t at) {
  if (at > source.size() || source.size() - at < sizeof(std::uint64_t)) return std::nullopt;
  SHW_TRY(Bytes bytes, read_bytes(source, at, sizeof(std::uint64_t)));
  return load_little<std::uint64_t>(bytes);
}

}  // namespace

bool is_legacy_torch_file(BytesView first) {
  const BytesView reach = first.first(std::min(first.size(), kMagicReach));
  const std::string_view text(reinterpret_cast<const char*>(reach.data()), reach.size());
  if (text.starts_with(kMagicText)) return true;
  const auto number = std::as_bytes(std::span(kMagicNumber));
  return text.starts_with('\x80') &&
         std::search(reach.begin(), reach.end(), number.begin(), number.end()) != reach.end();
}

Result<bool> is_legacy_torch_file(const ByteSource& source) {
  SHW_TRY(Bytes first, read_bytes(source, 0, std::min<std::uint64_t>(kMagicReach, source.size())));
  return is_legacy_torch_file(BytesView(first));
}

bool is_tar_of_torch(BytesView first) {
  constexpr std::size_t kTarName = 100;
  std::string_view text(reinterpret_cast<const char*>(first.data()),
                        std::min(first.size(), kTarName));
  text = text.substr(0, text.find('\0'));
  if (text.starts_with("./")) text.remove_prefix(2);
  return text == "sys_info" || text == "storages" || text == "tensors" || text == "pickle";
}

Result<ZipReader> read_legacy_torch_file(std::shared_ptr<const ByteSource> source) {
  SHW_TRY(LegacyHead head, read_head(*source));
  std::vector<ZipEntry> entries;
  auto add = [&](std::string name, std::uint64_t at, std::uint64_t length) {
    ZipEntry& entry = entries.emplace_back();
    entry.name = "archive/" + std::move(name);
    entry.header_offset = at;
    entry.stored_length = entry.length = length;
  };
  add("data.pkl", head.object_at, head.object_end - head.object_at);
  std::uint64_t at = head.end;
  for (const std::string& key : head.keys) {
    const LegacyStorage& storage = head.storages.at(key);
    SHW_TRY(auto count, read_element_count_at(*source, at));
    if (count && *count != storage.count && storage.unit != 0)
      return fail(ErrorKind::kDamaged,
                  fmt::format("the storage \"{}\" has {} elements by the pickle, but {} by its own "
                              "count: torch.load fails there",
                              key.substr(0, 80), storage.count, *count),
                  {source->name(), at});
    // A storage with elements is reported as missing when it is read.
    if (!count && storage.count == 0)
      return fail(ErrorKind::kDamaged,
                  fmt::format("is truncated before the storage \"{}\"", key.substr(0, 80)),
                  {source->name(), source->size()});
    // The position of the next storage depends on this one's element size.
    if (storage.unit == 0)
      return fail(ErrorKind::kUnsupported,
                  fmt::format("the storage \"{}\" has an unknown class, so the start of the next "
                              "storage is not known",
                              key.substr(0, 80)),
                  {source->name(), at});
    const auto length = checked_mul(storage.count, storage.unit);
    const auto data = checked_add(at, sizeof(std::uint64_t));
    const auto end = length && data ? checked_add(*data, *length) : std::nullopt;
    if (!end || *end > (std::uint64_t{1} << 62))
      return fail(ErrorKind::kDamaged, "a storage is recorded as longer than any file",
                  {source->name(), at});
    add("data/" + key, *data, *length);
    at = *end;
  }
  return ZipReader::from_unarchived_records(std::move(source), std::move(entries));
}

}  // namespace shw

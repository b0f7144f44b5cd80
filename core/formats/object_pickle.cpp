#include "core/formats/object_pickle.h"

#include <algorithm>
#include <array>

#include "core/base/little_endian.h"
#include "core/base/words.h"
#include "core/formats/common/magic.h"
#include "core/formats/common/torch_archive_check.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/items/item_access.h"
#include "core/formats/zip/zip.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostDecompressed = std::uint64_t{1} << 30;
constexpr std::size_t kMaxNamesReported = 256;
// 4 million nodes take 128 MB briefly; no optimizer state has more.
constexpr PickleLimits kObjectLimits{1u << 22, 1000, 1u << 16};
// torch.save before zip: five pickles, then the storages.
constexpr int kPicklesInARow = 5;

void add_names(const PickleTree& tree, ObjectPickle& out) {
  for (const PickleGlobal& global : tree.globals()) {
    NameKind kind = classify_pickled_name(global);
    if (kind == NameKind::kKnown || out.names.size() == kMaxNamesReported) continue;
    out.names.push_back({global.module, global.name, global.called_at.value_or(global.at),
                         global.called_at.has_value(), kind});
  }
  if (!out.unusual_call_at) out.unusual_call_at = tree.unusual_call_at();
}

Status scan_archive(const ItemRange& range, ObjectPickle& out) {
  SHW_TRY(ZipReader zip, ZipReader::open(range.source, range.offset, range.length));
  const ZipEntry* record = zip.find("data.pkl");
  if (record == nullptr) return zip.damaged(0, "the archive has no record data.pkl");
  SHW_TRY(std::uint64_t at, zip.data_offset(*record));
  if (record->length > kMaxBytes) {
    out.not_read = "its pickle of " + human_count(record->length) + " bytes is too large";
    return {};
  }
  // torch does not verify the checksum before unpickling.
  SHW_TRY(Bytes bytes, zip.read(*record, kMaxBytes));
  SHW_TRY(PickleTree tree, decode_pickle(bytes, zip.source().name(), at, kObjectLimits));
  // Python executes everything before a damaged opcode.
  add_names(tree, out);
  if (tree.refused()) return zip.damaged(tree.refused()->at - zip.base(), tree.refused()->what);
  for (const PickleGlobal& global : tree.globals()) {
    if (auto known = similar_known_name(global.module, global.name))
      return zip.damaged(global.at - zip.base(), corrupted_name_text(global, *known));
  }
  SHW_CHECK(check_is_torch_save_archive(zip));
  SHW_TRY([[maybe_unused]] bool is_big, is_big_endian(zip));
  return check_storages(zip, tree);
}

Status scan_pickles(const ItemRange& range, ObjectPickle& out) {
  std::uint64_t length = std::min(range.length, kMaxBytes);
  SHW_TRY(Bytes bytes, read_bytes(*range.source, range.offset, length));
  std::uint64_t at = 0;
  for (int i = 0; i < kPicklesInARow && at < length; ++i) {
    auto rest = BytesView(bytes).subspan(at);
    auto tree = decode_pickle(rest, range.source->name(), range.offset + at, kObjectLimits);
    if (!tree && i == 0) return tl::unexpected<Error>(std::move(tree).error());
    if (!tree) return {};  // what follows a pickle need not be one
    add_names(*tree, out);
    if (tree->refused() && i == 0)
      return fail(ErrorKind::kDamaged,
                  std::string("Python cannot load it: ") + tree->refused()->what,
                  {range.source->name(), tree->refused()->at});
    at += tree->end();
  }
  return {};
}

// Protocol 2 and later begin with these bytes. Protocols 0 and 1 matter only with imports and begin
// with a mark, list, dict or import.
bool may_be_pickle(std::byte first) {
  constexpr std::string_view kFirst = "\x80(]}c";
  return kFirst.find(static_cast<char>(first)) != std::string_view::npos;
}

Status scan_range(const ItemRange& range, ObjectPickle& out) {
  std::array<std::byte, 4> magic{};
  if (range.length >= magic.size()) SHW_CHECK(range.source->read(range.offset, magic));
  if (load_little<std::uint32_t>(magic) == kZipMagic) return scan_archive(range, out);
  if (range.length != 0 && may_be_pickle(magic[0])) return scan_pickles(range, out);
  return fail(ErrorKind::kDamaged, "it is neither an archive of torch.save nor a pickle",
              {range.source->name(), range.offset});
}

Status scan_item(const Checkpoint& checkpoint, const ItemPlace& place, ObjectPickle& out) {
  ItemFiles files(checkpoint);
  SHW_TRY(ItemRange range, find_item(files, place));
  out.file = range.source->name();
  std::array<std::byte, 4> magic{};
  if (range.length >= magic.size()) SHW_CHECK(range.source->read(range.offset, magic));
  if (load_little<std::uint32_t>(magic) != kZstdMagic) return scan_range(range, out);
  std::vector<std::string> transforms{"stream.zstd/1"};
  SHW_TRY(ItemRange plain,
          undo_transforms(range, transforms, kMostDecompressed, ItemPart::kPayload, nullptr));
  SHW_CHECK(scan_range(plain, out));
  for (UnknownName& name : out.names) name.at = range.offset;
  if (out.unusual_call_at) out.unusual_call_at = range.offset;
  return {};
}

}  // namespace

Result<ObjectPickle> scan_object(const Checkpoint& checkpoint, std::size_t object) {
  const NonTensorEntry& row = checkpoint.objects()[object];
  ObjectPickle out;
  if (row.inlined) return out;  // its names were examined with the enclosing pickle
  std::vector<ItemPlace> items = row.of_other_ranks;
  if (row.item) items.insert(items.begin(), *row.item);
  std::optional<Error> damaged;
  if (!row.item)
    damaged = Error{ErrorKind::kDamaged, "no storage record says where its bytes are", {}};
  // Scans the items in the order in which torch loads them, and continues after a damaged item.
  for (const ItemPlace& item : items) {
    ObjectPickle one;
    auto status = scan_item(checkpoint, item, one);
    const bool is_telling = !one.names.empty() || one.unusual_call_at.has_value();
    if (is_telling && out.names.empty() && !out.unusual_call_at) out = std::move(one);
    if (status) continue;
    // Beyond our limits: not examined, but not damaged.
    if (status.error().kind == ErrorKind::kUnsupported)
      out.not_read = status.error().message;
    else if (!damaged)
      damaged = std::move(status).error();
  }
  if (!damaged) return out;
  const bool says_nothing = out.names.empty() && !out.unusual_call_at && out.not_read.empty();
  Error error = naming(std::move(*damaged), row.fqn);
  if (says_nothing) return tl::unexpected<Error>(std::move(error));
  out.damaged = std::move(error);
  return out;
}

}  // namespace shw

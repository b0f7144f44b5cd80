#include "core/formats/plain_value.h"
#include "core/formats/carried_values.h"
#include "core/tensor/element_text.h"

#include <algorithm>
#include <array>

#include "core/base/little_endian.h"
#include "core/formats/common/magic.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/items/item_access.h"
#include "core/formats/pickle/plain_pickle.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

constexpr PickleLimits kValueLimits{1u << 20, 100, 1u << 12};
constexpr int kMaxValueDepth = 32;
// A list of a million parameter indices takes about 10 MB.
constexpr std::uint64_t kMaxPlain = std::uint64_t{64} << 20;
constexpr PickleLimits kPlainLimits{1u << 24, 200, 1u << 12};
constexpr std::size_t kMaxText = 4096;

class ValueWalk {
 public:
  // Shared nodes are visited once: some hundred bytes of pickle can form 2^64 paths, so the walk
  // and its result are bounded by the number of nodes.
  ValueWalk(const PickleTree& tree, const ZipReader* zip, const std::string& file)
      : tree_(tree), zip_(zip), file_(file), visits_left_(2 * tree.node_count() + 64) {}

  Result<PlainValue> run() {
    PlainValue value = visit(tree_.root(), 0);
    if (!is_not_plain_) return value;
    return fail(ErrorKind::kUnsupported, "the pickled structure is too complex to read", {file_});
  }

 private:
  PlainValue visit(NodeId node, int depth);
  bool is_torch_size(NodeId node) const {
    return tree_.is_global(tree_.callable(node), "torch", "Size") &&
           tree_.items(tree_.arguments(node)).size() == 1;
  }
  PlainValue tensor(NodeId node) const;

  const PickleTree& tree_;
  const ZipReader* zip_;
  const std::string& file_;
  std::uint64_t visits_left_;
  bool is_not_plain_ = false;
};

PlainValue number(double value) {
  PlainValue out;
  out.kind = PlainValue::Kind::kNumber;
  out.number = value;
  return out;
}

PlainValue ValueWalk::visit(NodeId node, int depth) {
  PlainValue out;
  if (is_not_plain_ || visits_left_ == 0 || depth > kMaxValueDepth) {
    is_not_plain_ = true;
    return out;
  }
  --visits_left_;
  switch (tree_.kind(node)) {
    case NodeKind::kNone:
      out.kind = PlainValue::Kind::kNone;
      return out;
    case NodeKind::kBool:
    case NodeKind::kInt:
      return number(static_cast<double>(tree_.integer(node).value_or(0)));
    case NodeKind::kFloat:
      return number(tree_.real(node).value_or(0));
    case NodeKind::kString:
      out.kind = PlainValue::Kind::kText;
      out.text = tree_.text(node).value_or("").substr(0, kMaxText);
      return out;
    case NodeKind::kTuple:
    case NodeKind::kList:
    case NodeKind::kSet:
    case NodeKind::kDict:
      out.kind =
          tree_.kind(node) == NodeKind::kDict ? PlainValue::Kind::kDict : PlainValue::Kind::kList;
      for (NodeId item : tree_.items(node)) out.items.push_back(visit(item, depth + 1));
      return out;
    case NodeKind::kReduce:
      if (is_tensor_call(tree_, node)) return tensor(node);
      if (is_torch_size(node)) return visit(tree_.items(tree_.arguments(node))[0], depth + 1);
      [[fallthrough]];
    case NodeKind::kObject:
      if (tree_.contents(node) != NodeId::kAbsent) return visit(tree_.contents(node), depth + 1);
      return out;
    default:
      return out;
  }
}

PlainValue ValueWalk::tensor(NodeId node) const {
  if (zip_ == nullptr) return {};
  auto pickled = pickled_tensor(tree_, node, file_);
  if (!pickled || volume(pickled->sizes) != 1 || pickled->negative) return {};
  std::uint32_t width = size_of(pickled->dtype);
  auto header = header_of(*zip_, *pickled, false);
  const ZipEntry* record = zip_->find_storage(pickled->storage_key);
  if (!header || record == nullptr || record->deflated || width == 0 || width > 8) return {};
  auto at = header->payload_offset + static_cast<std::uint64_t>(header->storage_offset) * width;
  auto bytes = read_bytes(zip_->source(), at, width);
  if (!bytes) return {};
  if (header->dtype == Dtype::kInt64)
    return number(static_cast<double>(load_little<std::int64_t>(*bytes)));
  if (header->dtype == Dtype::kInt32) return number(load_little<std::int32_t>(*bytes));
  auto real = cast_elements(header->dtype, *bytes, Dtype::kFloat64);
  return real ? number(load_little<double>(*real)) : PlainValue{};
}

// The pickle of an item in any container. `bytes` must outlive the tree.
struct ItemPickle {
  Bytes bytes;
  std::optional<ZipReader> zip = {};
  bool is_big = false;              // storages are not read
  bool was_packed_in_file = false;  // not the bytes in the file any more
  std::string file = {};
  std::uint64_t at = 0;
};

// `limit`: for the item; `most_pickle`: for the pickle in an archive.
Result<ItemPickle> read_item_pickle(ItemRange range, std::uint64_t limit,
                                    std::uint64_t most_pickle) {
  if (range.length > limit)
    return fail(ErrorKind::kUnsupported, "is larger than the limit for such an entry",
                {range.source->name(), range.offset});
  std::array<std::byte, 4> magic{};
  if (range.length >= magic.size()) SHW_CHECK(range.source->read(range.offset, magic));
  const bool is_packed = load_little<std::uint32_t>(magic) == kZstdMagic;
  if (is_packed) {
    // Transforms are recorded for chunks only; compressed entries are recognised by their first
    // bytes.
    const std::string transform = "stream.zstd/1";
    SHW_TRY(range,
            undo_transforms(range, std::span(&transform, 1), limit, ItemPart::kPayload, nullptr));
    if (range.length >= magic.size()) SHW_CHECK(range.source->read(range.offset, magic));
  }
  ItemPickle out;
  out.was_packed_in_file = is_packed;
  out.file = range.source->name();
  out.at = range.offset;
  if (load_little<std::uint32_t>(magic) == kZipMagic) {
    SHW_TRY(ZipReader zip, ZipReader::open(range.source, range.offset, range.length));
    SHW_TRY(out.bytes, read_pickle_record(zip, most_pickle));
    SHW_TRY(out.at, zip.data_offset(*zip.find("data.pkl")));
    SHW_TRY(bool big, is_big_endian(zip));
    out.is_big = big;
    out.zip = std::move(zip);
    return out;
  }
  SHW_TRY(out.bytes, read_bytes(*range.source, range.offset, range.length));
  return out;
}

Result<PlainValue> plain_value_of(const ItemPickle& item) {
  SHW_TRY(PickleTree tree, decode_pickle(item.bytes, item.file, item.at, kValueLimits));
  return ValueWalk(tree, item.zip && !item.is_big ? &*item.zip : nullptr, item.file).run();
}

Result<std::string> plain_opcodes(const ItemPickle& pickle) {
  SHW_TRY(PickleTree tree, decode_pickle(pickle.bytes, pickle.file, pickle.at, kPlainLimits));
  auto opcodes = plain_pickle(tree, tree.root(), kMaxPlain);
  if (opcodes) return std::move(*opcodes);
  return fail(ErrorKind::kUnsupported,
              "holds more than plain data: " + non_plain_value_reason(tree, tree.root()),
              {pickle.file, pickle.at});
}

// Adds the missing end to make a complete pickle.
ItemPickle pickle_of(const InlinedValue& value) {
  auto bytes = std::as_bytes(std::span(value.opcodes));
  ItemPickle out{.bytes = {bytes.begin(), bytes.end()}};
  out.bytes.push_back(static_cast<std::byte>('.'));
  return out;
}

// Reads the item of an entry; errors name the entry.
template <class Read>
auto read_entry_value(const Checkpoint& checkpoint, std::size_t object, const Read& read) {
  const NonTensorEntry& row = checkpoint.objects()[object];
  auto done = [&]() -> decltype(read(ItemRange{})) {
    if (!row.item) return fail(ErrorKind::kDamaged, "no storage record says where its bytes are");
    ItemFiles files(checkpoint);
    SHW_TRY(ItemRange range, find_item(files, *row.item));
    return read(std::move(range));
  }();
  if (!done) done = tl::unexpected<Error>(naming(std::move(done).error(), row.fqn));
  return done;
}

Result<CarriedValue> carried_item(ItemRange range, const std::string& file, Progress* progress) {
  std::array<std::byte, 4> magic{};
  if (range.length >= magic.size()) SHW_CHECK(range.source->read(range.offset, magic));
  // In an uncompressed archive only the pickle is read completely.
  const bool is_archive = load_little<std::uint32_t>(magic) == kZipMagic;
  const std::uint64_t limit = is_archive ? range.length : kMaxPlain;
  SHW_TRY(ItemPickle item, read_item_pickle(std::move(range), limit, kMaxPlain));
  SHW_TRY(PickleTree tree, decode_pickle(item.bytes, item.file, item.at, kPlainLimits));
  if (tree.refused())
    return fail(ErrorKind::kDamaged, std::string("Python cannot load it: ") + tree.refused()->what,
                {item.file, tree.refused()->at});
  const CarriedFrom from{tree, item.bytes, item.at, item.zip ? &*item.zip : nullptr,
                         item.was_packed_in_file ? std::string() : file};
  return carry_value(from, tree.root(), kMaxPlain, progress);
}

Result<std::map<std::size_t, Result<CarriedValue>>> carry_inlined_values(
    const Checkpoint& checkpoint, Progress* progress) {
  const Codec* codec = checkpoint.format().codec;
  std::map<std::size_t, Result<CarriedValue>> values;
  const bool asks = codec != nullptr && codec->reader != nullptr && codec->reader->carry_inlined;
  if (asks) SHW_CHECK(codec->reader->carry_inlined(checkpoint, values, progress));
  return values;
}

constexpr std::uint64_t kStorageAtOnce = std::uint64_t{4} << 20;

Result<Bytes> storage_piece(const ByteSource* file, const CarriedStorage& storage,
                            std::uint64_t first, std::uint64_t length) {
  if (file != nullptr) return read_bytes(*file, storage.offset + first, length);
  auto begin = storage.bytes.begin() + static_cast<std::ptrdiff_t>(first);
  return Bytes(begin, begin + static_cast<std::ptrdiff_t>(length));
}

Result<bool> is_same_storage(const Checkpoint& a, const CarriedStorage& one, const Checkpoint& b,
                             const CarriedStorage& two, Progress* progress) {
  if (one.length != two.length) return false;
  std::shared_ptr<const ByteSource> left, right;
  if (!one.file.empty()) {
    SHW_TRY(left, a.directory()->open(one.file));
  }
  if (!two.file.empty()) {
    SHW_TRY(right, b.directory()->open(two.file));
  }
  for (std::uint64_t at = 0; at < one.length; at += kStorageAtOnce) {
    if (is_cancelled(progress)) return cancelled_error();
    const std::uint64_t length = std::min(kStorageAtOnce, one.length - at);
    SHW_TRY(Bytes here, storage_piece(left.get(), one, at, length));
    SHW_TRY(Bytes there, storage_piece(right.get(), two, at, length));
    if (here != there) return false;
  }
  return true;
}

}  // namespace

const PlainValue* find(const PlainValue& dict, std::string_view key) {
  if (dict.kind != PlainValue::Kind::kDict) return nullptr;
  // The last duplicate wins, as in Python.
  for (std::size_t i = dict.items.size() / 2; i-- > 0;) {
    const PlainValue& name = dict.items[2 * i];
    if (name.kind == PlainValue::Kind::kText && name.text == key) return &dict.items[2 * i + 1];
  }
  return nullptr;
}

std::string to_text(const PlainValue& value) {
  switch (value.kind) {
    case PlainValue::Kind::kNone:
      return "None";
    case PlainValue::Kind::kNumber:
      return element_text(Dtype::kFloat64, std::as_bytes(std::span(&value.number, 1)), 0);
    case PlainValue::Kind::kText:
      return value.text.substr(0, 80);
    case PlainValue::Kind::kList: {
      std::string text;
      for (std::size_t i = 0; i < value.items.size() && i < 4; ++i)
        text += (i == 0 ? "" : ", ") + to_text(value.items[i]);
      return "(" + text + (value.items.size() > 4 ? ", ...)" : ")");
    }
    case PlainValue::Kind::kDict:
    case PlainValue::Kind::kOther:
      break;
  }
  return "something else";
}

Result<PlainValue> read_plain_value(std::shared_ptr<const ByteSource> source, std::uint64_t offset,
                                    std::uint64_t length, std::uint64_t limit) {
  SHW_TRY(ItemPickle item, read_item_pickle({std::move(source), offset, length}, limit, limit));
  return plain_value_of(item);
}

Result<PlainValue> read_plain_value(const Checkpoint& checkpoint, std::size_t object,
                                    std::uint64_t limit) {
  if (const auto& inlined = checkpoint.objects()[object].inlined)
    return inlined->opcodes.empty() ? PlainValue{} : plain_value_of(pickle_of(*inlined));
  return read_entry_value(checkpoint, object, [&](ItemRange range) {
    return read_plain_value(range.source, range.offset, range.length, limit);
  });
}

Result<std::string> read_plain_opcodes(const Checkpoint& checkpoint, const ItemPlace& item) {
  ItemFiles files(checkpoint);
  SHW_TRY(ItemRange range, find_item(files, item));
  SHW_TRY(ItemPickle pickle, read_item_pickle(std::move(range), kMaxPlain, kMaxPlain));
  return plain_opcodes(pickle);
}

Result<std::string> read_plain_opcodes(const Checkpoint& checkpoint, std::size_t object) {
  const NonTensorEntry& row = checkpoint.objects()[object];
  if (row.inlined && !row.inlined->opcodes.empty()) return row.inlined->opcodes;
  if (row.inlined)
    return fail(ErrorKind::kUnsupported, "holds more than plain data: " + row.inlined->not_plain,
                Place{.file = {}, .tensor = row.fqn});
  return read_entry_value(checkpoint, object, [&](ItemRange range) -> Result<std::string> {
    SHW_TRY(ItemPickle pickle, read_item_pickle(std::move(range), kMaxPlain, kMaxPlain));
    return plain_opcodes(pickle);
  });
}

Result<CarriedValue> CarriedValues::of(std::size_t object) {
  const NonTensorEntry& row = checkpoint_.objects()[object];
  if (!row.inlined) {
    return read_entry_value(checkpoint_, object, [&](ItemRange range) {
      return carried_item(std::move(range), checkpoint_.file(row.item->file).path, progress_);
    });
  }
  if (!row.inlined->opcodes.empty() && row.inlined->is_all)
    return CarriedValue{row.inlined->opcodes};
  if (!inlined_) {
    SHW_TRY(inlined_, carry_inlined_values(checkpoint_, progress_));
  }
  auto found = inlined_->find(object);
  if (found != inlined_->end() && found->second) return *found->second;
  Error error = found == inlined_->end()
                    ? Error{ErrorKind::kUnsupported, "is no longer found in its file", {}}
                    : found->second.error();
  return tl::unexpected<Error>(naming(std::move(error), row.fqn));
}

Result<bool> is_same_value(const Checkpoint& a, const CarriedValue& one, const Checkpoint& b,
                           const CarriedValue& two, Progress* progress) {
  if (one.opcodes != two.opcodes || one.storages.size() != two.storages.size()) return false;
  for (std::size_t i = 0; i < one.storages.size(); ++i) {
    SHW_TRY(bool same, is_same_storage(a, one.storages[i], b, two.storages[i], progress));
    if (!same) return false;
  }
  return true;
}

}  // namespace shw

#include "core/formats/plain_value.h"
#include "core/tensor/element_text.h"

#include <algorithm>
#include <array>

#include "core/base/little_endian.h"
#include "core/formats/common/magic.h"
#include "core/formats/common/plain_pickle.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/item_access.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

constexpr PickleLimits kValueLimits{1u << 20, 100, 1u << 12};
constexpr int kMaxValueDepth = 32;
// A list of a million parameters' numbers takes some 10 MB.
constexpr std::uint64_t kMostPlain = std::uint64_t{64} << 20;
constexpr PickleLimits kPlainLimits{1u << 24, 200, 1u << 12};
constexpr std::size_t kMaxText = 4096;

class ValueWalk {
 public:
  // A shared node is reached once for each path to it: a pickle of some hundred bytes can name 2^64
  // paths. What a walk visits, and so what it makes, is bounded by the nodes there are.
  ValueWalk(const PickleTree& tree, const ZipReader* zip, const std::string& file)
      : tree_(tree), zip_(zip), file_(file), visits_left_(2 * tree.node_count() + 64) {}

  Result<PlainValue> run() {
    PlainValue value = visit(tree_.root(), 0);
    if (!entangled_) return value;
    return fail(ErrorKind::kUnsupported, "the structure is too entangled to be walked", {file_});
  }

 private:
  PlainValue visit(NodeId node, int depth);
  PlainValue tensor(NodeId node) const;

  const PickleTree& tree_;
  const ZipReader* zip_;
  const std::string& file_;
  std::uint64_t visits_left_;
  bool entangled_ = false;
};

PlainValue number(double value) {
  PlainValue out;
  out.kind = PlainValue::Kind::kNumber;
  out.number = value;
  return out;
}

PlainValue ValueWalk::visit(NodeId node, int depth) {
  PlainValue out;
  if (entangled_ || visits_left_ == 0 || depth > kMaxValueDepth) {
    entangled_ = true;
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
  const ZipEntry* record = zip_->find("data/" + pickled->storage_key);
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

// The pickle of an item, in whatever it lies. `bytes` must live as long as the tree.
struct ItemPickle {
  Bytes bytes;
  std::optional<ZipReader> zip = {};  // little-endian: its storages can be read
  std::string file = {};
  std::uint64_t at = 0;
};

Result<ItemPickle> read_item_pickle(ItemRange range, std::uint64_t limit) {
  if (range.length > limit)
    return fail(ErrorKind::kUnsupported, "is larger than what is read of an entry like it",
                {range.source->name(), range.offset});
  std::array<std::byte, 4> magic{};
  if (range.length >= magic.size()) SHW_CHECK(range.source->read(range.offset, magic));
  if (load_little<std::uint32_t>(magic) == kZstdMagic) {
    // Transforms are recorded for chunks only; a compressed entry shows by its first bytes.
    const std::string transform = "stream.zstd/1";
    SHW_TRY(range,
            undo_transforms(range, std::span(&transform, 1), limit, ItemPart::kPayload, nullptr));
    if (range.length >= magic.size()) SHW_CHECK(range.source->read(range.offset, magic));
  }
  ItemPickle out;
  out.file = range.source->name();
  out.at = range.offset;
  if (load_little<std::uint32_t>(magic) == kZipMagic) {
    SHW_TRY(ZipReader zip, ZipReader::open(range.source, range.offset, range.length));
    SHW_TRY(out.bytes, read_pickle_record(zip, limit));
    SHW_TRY(out.at, zip.data_offset(*zip.find("data.pkl")));
    SHW_TRY(bool big, is_big_endian(zip));
    if (!big) out.zip = std::move(zip);
    return out;
  }
  SHW_TRY(out.bytes, read_bytes(*range.source, range.offset, range.length));
  return out;
}

Result<PlainValue> plain_value_of(const ItemPickle& item) {
  SHW_TRY(PickleTree tree, decode_pickle(item.bytes, item.file, item.at, kValueLimits));
  return ValueWalk(tree, item.zip ? &*item.zip : nullptr, item.file).run();
}

Result<std::string> plain_opcodes(const ItemPickle& pickle) {
  SHW_TRY(PickleTree tree, decode_pickle(pickle.bytes, pickle.file, pickle.at, kPlainLimits));
  auto opcodes = plain_pickle(tree, tree.root(), kMostPlain);
  if (opcodes) return std::move(*opcodes);
  return fail(ErrorKind::kUnsupported,
              "holds more than plain data: " + what_is_not_plain(tree, tree.root()),
              {pickle.file, pickle.at});
}

// Opcodes alone are a pickle but for their end.
ItemPickle pickle_of(const InlinedValue& value) {
  auto bytes = std::as_bytes(std::span(value.opcodes));
  ItemPickle out{.bytes = {bytes.begin(), bytes.end()}};
  out.bytes.push_back(static_cast<std::byte>('.'));
  return out;
}

// `read` of the item of an object; its errors name the object.
template <class Read>
auto of_object(const Checkpoint& checkpoint, std::size_t object, const Read& read) {
  const ObjectRow& row = checkpoint.objects()[object];
  auto done = [&]() -> decltype(read(ItemRange{})) {
    if (!row.item) return fail(ErrorKind::kDamaged, "no storage record says where its bytes are");
    ItemFiles files(checkpoint);
    SHW_TRY(ItemRange range, find_item(files, *row.item));
    return read(std::move(range));
  }();
  if (!done) done = tl::unexpected<Error>(naming(std::move(done).error(), row.fqn));
  return done;
}

}  // namespace

const PlainValue* find(const PlainValue& dict, std::string_view key) {
  if (dict.kind != PlainValue::Kind::kDict) return nullptr;
  // The last one where it is there twice, as in Python.
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
  SHW_TRY(ItemPickle item, read_item_pickle({std::move(source), offset, length}, limit));
  return plain_value_of(item);
}

Result<PlainValue> read_plain_value(const Checkpoint& checkpoint, std::size_t object,
                                    std::uint64_t limit) {
  if (const auto& inlined = checkpoint.objects()[object].inlined)
    return inlined->opcodes.empty() ? PlainValue{} : plain_value_of(pickle_of(*inlined));
  return of_object(checkpoint, object, [&](ItemRange range) {
    return read_plain_value(range.source, range.offset, range.length, limit);
  });
}

Result<std::string> read_plain_opcodes(const Checkpoint& checkpoint, const ItemPlace& item) {
  ItemFiles files(checkpoint);
  SHW_TRY(ItemRange range, find_item(files, item));
  SHW_TRY(ItemPickle pickle, read_item_pickle(std::move(range), kMostPlain));
  return plain_opcodes(pickle);
}

Result<std::string> read_plain_opcodes(const Checkpoint& checkpoint, std::size_t object) {
  const ObjectRow& row = checkpoint.objects()[object];
  if (row.inlined && !row.inlined->opcodes.empty()) return row.inlined->opcodes;
  if (row.inlined)
    return fail(ErrorKind::kUnsupported, "holds more than plain data: " + row.inlined->not_plain,
                Place{.file = {}, .tensor = row.fqn});
  return of_object(checkpoint, object, [&](ItemRange range) -> Result<std::string> {
    SHW_TRY(ItemPickle pickle, read_item_pickle(std::move(range), kMostPlain));
    return plain_opcodes(pickle);
  });
}

}  // namespace shw

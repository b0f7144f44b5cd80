#include "core/formats/plain_value.h"
#include "core/tensor/element_text.h"

#include <algorithm>
#include <array>

#include "core/base/little_endian.h"
#include "core/formats/common/magic.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/item_access.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

constexpr PickleLimits kValueLimits{1u << 20, 100, 1u << 12};
constexpr int kMaxValueDepth = 32;
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

Result<PlainValue> read_pickle(BytesView pickle, const ZipReader* zip, const std::string& file,
                               std::uint64_t at) {
  SHW_TRY(PickleTree tree, decode_pickle(pickle, file, at, kValueLimits));
  return ValueWalk(tree, zip, file).run();
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
  ItemRange range{std::move(source), offset, length};
  auto too_large = [&] {
    return fail(ErrorKind::kUnsupported, "is larger than what is read of an entry like it",
                {range.source->name(), range.offset});
  };
  if (range.length > limit) return too_large();
  std::array<std::byte, 4> magic{};
  if (range.length >= magic.size()) SHW_CHECK(range.source->read(range.offset, magic));
  if (load_little<std::uint32_t>(magic) == kZstdMagic) {
    // Transforms are recorded for chunks only; a compressed entry shows by its first bytes.
    const std::string transform = "stream.zstd/1";
    SHW_TRY(range,
            undo_transforms(range, std::span(&transform, 1), limit, ItemPart::kPayload, nullptr));
    if (range.length >= magic.size()) SHW_CHECK(range.source->read(range.offset, magic));
  }
  if (load_little<std::uint32_t>(magic) == kZipMagic) {
    SHW_TRY(ZipReader zip, ZipReader::open(range.source, range.offset, range.length));
    SHW_TRY(Bytes pickle, read_pickle_record(zip, limit));
    SHW_TRY(std::uint64_t at, zip.data_offset(*zip.find("data.pkl")));
    SHW_TRY(bool big, is_big_endian(zip));
    return read_pickle(pickle, big ? nullptr : &zip, range.source->name(), at);
  }
  SHW_TRY(Bytes bytes, read_bytes(*range.source, range.offset, range.length));
  return read_pickle(bytes, nullptr, range.source->name(), range.offset);
}

Result<PlainValue> read_plain_value(const Checkpoint& checkpoint, std::size_t object,
                                    std::uint64_t limit) {
  const ObjectRow& row = checkpoint.objects()[object];
  auto read = [&]() -> Result<PlainValue> {
    if (!row.item) return fail(ErrorKind::kDamaged, "no storage record says where its bytes are");
    ItemFiles files(checkpoint);
    SHW_TRY(ItemRange range, find_item(files, *row.item));
    return read_plain_value(range.source, range.offset, range.length, limit);
  }();
  if (read) return read;
  return tl::unexpected<Error>(naming(std::move(read).error(), row.fqn));
}

}  // namespace shw

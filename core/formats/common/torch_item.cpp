#include "core/formats/common/torch_item.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/base/checked.h"
#include "core/formats/common/torch_archive_check.h"
#include "core/formats/pickle/pickle_safety.h"
#include "core/formats/pickle/weights_only.h"
#include "core/formats/zip/crc32.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// The pickle of one tensor takes 154 bytes, and about ten per dimension.
constexpr std::uint64_t kMaxTensorPickle = 1 << 20;
constexpr PickleLimits kTensorLimits{1u << 16, 100, 256};
constexpr int kMaxWrappers = 8;

struct Reader {
  const PickleTree& tree;
  const std::string& file;

  tl::unexpected<Error> damaged(NodeId node, std::string message) const {
    return fail(ErrorKind::kDamaged, std::move(message), {file, tree.at(node)});
  }
  tl::unexpected<Error> unsupported(NodeId node, std::string message) const {
    return fail(ErrorKind::kUnsupported, std::move(message), {file, tree.at(node)});
  }
};

std::string name_of(const PickleGlobal& global) {
  return global.module + "." + global.name;
}

bool is_torch_utils_global(const PickleTree& tree, NodeId node, std::string_view function) {
  return tree.is_global(node, "torch._utils", function);
}

// A tuple or list of integers, or its torch.Size.
Result<Extents> extents_of(const Reader& in, NodeId node, std::string_view what) {
  const PickleTree& tree = in.tree;
  if (tree.kind(node) == NodeKind::kReduce &&
      tree.is_global(tree.callable(node), "torch", "Size")) {
    auto arguments = tree.items(tree.arguments(node));
    if (arguments.size() == 1) node = arguments[0];
  }
  if (tree.kind(node) != NodeKind::kTuple && tree.kind(node) != NodeKind::kList)
    return in.damaged(node, "the tensor's " + std::string(what) + " are not a tuple");
  auto items = tree.items(node);
  if (items.size() > kMaxDims)
    return in.damaged(
        node, fmt::format("the tensor has {} dimensions; torch allows {}", items.size(), kMaxDims));
  Extents extents;
  for (NodeId item : items) {
    auto value = tree.integer(item);
    if (!value || *value < 0)
      return in.damaged(
          item, "one of the tensor's " + std::string(what) + " is not a number from 0 to 2^63 - 1");
    extents.push_back(*value);
  }
  return extents;
}

// Modules in which torch looks up storage classes; torch.load fails for other modules.
bool is_module_of_storages(std::string_view module) {
  return module == "torch" || module == "torch.storage" || module == "torch.cuda";
}

Status read_storage(const Reader& in, NodeId node, bool untyped_dtype_follows,
                    PickledTensor& tensor) {
  const PickleTree& tree = in.tree;
  if (tree.kind(node) != NodeKind::kPersistentId)
    return in.damaged(node, "the tensor has no storage in this archive");
  auto ids = tree.items(node);
  auto id = ids.size() == 1 ? tree.items(ids[0]) : std::span<const NodeId>{};
  // torch unpacks exactly four items after the word "storage". The format before zip has a fifth:
  // the storage of which this one is a view.
  if (id.size() < 5 || id.size() > 6 || tree.text(id[0]) != "storage")
    return in.damaged(node, "the tensor's storage is named in a form that torch does not write");
  const PickleGlobal* storage_class = tree.global(id[1]);
  auto key = tree.text(id[2]);
  auto count = tree.integer(id[4]);
  if (storage_class == nullptr || !key || !count || *count < 0)
    return in.damaged(node, "the tensor's storage is named in a form that torch does not write");
  if (!is_module_of_storages(storage_class->module))
    return in.damaged(id[1], "the tensor's storage is of the class " + name_of(*storage_class) +
                                 ", but torch storages are in the module torch");
  tensor.storage_key = *key;
  tensor.has_view_metadata = id.size() == 6;
  if (tensor.has_view_metadata && tree.kind(id[5]) != NodeKind::kNone)
    return in.unsupported(
        id[5],
        "its storage is a view of another one (torch 0.3 and before), which is not supported");

  std::uint64_t unit = 1;
  if (storage_class->name == "UntypedStorage") {
    tensor.is_untyped = true;
    if (!untyped_dtype_follows) tensor.dtype = Dtype::kUint8;
  } else {
    auto dtype = dtype_from_storage_class(storage_class->name);
    if (!dtype)
      return in.unsupported(
          id[1], "storages of the class " + name_of(*storage_class) + " are not supported");
    unit = size_of(*dtype);
    if (!untyped_dtype_follows) tensor.dtype = *dtype;
  }
  auto bytes = checked_mul(static_cast<std::uint64_t>(*count), unit);
  if (!bytes)
    return in.damaged(id[4], "the tensor's storage is recorded as larger than 2^64 bytes");
  tensor.storage_bytes = *bytes;
  tensor.storage_unit = unit;
  return {};
}

// Flags with false values are ignored, as torch does.
Status read_flags(const Reader& in, NodeId node, PickledTensor& tensor) {
  const PickleTree& tree = in.tree;
  const NodeKind kind = tree.kind(node);
  if (kind == NodeKind::kNone || tree.integer(node) == 0) return {};
  if (kind != NodeKind::kDict)
    return in.damaged(node, "the tensor's flags are not a dict, so torch fails there");
  tensor.conjugate = tree.integer(tree.find(node, "conj")).value_or(0) != 0;
  tensor.negative = tree.integer(tree.find(node, "neg")).value_or(0) != 0;
  if (tensor.conjugate && !is_complex(tensor.dtype))
    return in.damaged(node, fmt::format("the tensor is marked as conjugate, which {} cannot be",
                                        name(tensor.dtype)));
  return {};
}

Status read_requires_grad(const Reader& in, NodeId node, PickledTensor& tensor) {
  if (in.tree.kind(node) != NodeKind::kBool)
    return in.damaged(node, "requires_grad is neither true nor false");
  tensor.requires_grad = in.tree.integer(node).value_or(0) != 0;
  return {};
}

// Only floats and complex numbers can require gradients.
bool can_require_grad(Dtype dtype) {
  constexpr auto kWhole = std::to_array<Dtype>({Dtype::kBool, Dtype::kUint8, Dtype::kInt8,
                                                Dtype::kUint16, Dtype::kInt16, Dtype::kUint32,
                                                Dtype::kInt32, Dtype::kUint64, Dtype::kInt64});
  return std::find(kWhole.begin(), kWhole.end(), dtype) == kWhole.end();
}

Dtype dtype_of_int_repr(Dtype quantised) {
  if (quantised == Dtype::kQint8) return Dtype::kInt8;
  if (quantised == Dtype::kQuint8) return Dtype::kUint8;
  return quantised == Dtype::kQint32 ? Dtype::kInt32 : quantised;
}

Result<PickledTensor> plain_tensor(const Reader& in, NodeId function, NodeId arguments) {
  const PickleTree& tree = in.tree;
  auto given = tree.items(arguments);
  bool v3 = is_torch_utils_global(tree, function, "_rebuild_tensor_v3");
  bool v1 = is_torch_utils_global(tree, function, "_rebuild_tensor");
  // A quantised tensor has its quantizer before the last two arguments; int_repr() is read.
  bool quantised = is_torch_utils_global(tree, function, "_rebuild_qtensor");
  if (given.size() < (v3 || quantised ? 7u : v1 ? 4u : 6u))
    return in.damaged(arguments, fmt::format("the tensor's rebuild call has {} arguments, too few",
                                             given.size()));
  if (given.size() > (v3 ? 8u : v1 ? 4u : 7u))
    return in.damaged(arguments, fmt::format("the tensor's rebuild call has {} arguments, too many",
                                             given.size()));
  PickledTensor tensor;
  SHW_CHECK(read_storage(in, given[0], v3, tensor));
  if (quantised) tensor.dtype = dtype_of_int_repr(tensor.dtype);
  auto offset = tree.integer(given[1]);
  if (!offset || *offset < 0 || tree.kind(given[1]) != NodeKind::kInt)
    return in.damaged(given[1], "the tensor's storage offset is not a number from 0 to 2^63 - 1");
  tensor.storage_offset = *offset;
  SHW_TRY(tensor.sizes, extents_of(in, given[2], "sizes"));
  SHW_TRY(tensor.strides, extents_of(in, given[3], "strides"));
  if (tensor.sizes.size() != tensor.strides.size())
    return in.damaged(arguments, fmt::format("the tensor has {} sizes but {} strides",
                                             tensor.sizes.size(), tensor.strides.size()));
  if (given.size() > 4) SHW_CHECK(read_requires_grad(in, given[quantised ? 5 : 4], tensor));
  if (v3) {
    const PickleGlobal* dtype = tree.global(given[6]);
    auto known =
        dtype != nullptr && dtype->module == "torch" ? dtype_from_torch(dtype->name) : std::nullopt;
    if (!known)
      return in.unsupported(
          given[6], "the dtype " + (dtype != nullptr ? name_of(*dtype) : std::string("given")) +
                        " is not known");
    tensor.dtype = *known;
  }
  if (tensor.requires_grad && !can_require_grad(tensor.dtype))
    return in.damaged(given[4], fmt::format("the tensor requires a gradient, which {} cannot",
                                            name(tensor.dtype)));
  tensor.fails_in_torch_load = v3 && tensor.requires_grad;
  std::size_t flags = v3 ? 7 : 6;
  if (!v1 && !quantised && given.size() > flags) SHW_CHECK(read_flags(in, given[flags], tensor));
  return tensor;
}

bool is_plain_type(const PickleTree& tree, NodeId type) {
  return tree.is_global(type, "torch", "Tensor") ||
         tree.is_global(type, "torch._tensor", "Tensor") ||
         tree.is_global(type, "torch.nn.parameter", "Parameter") ||
         tree.is_global(type, "torch.nn.parameter", "Buffer");
}

Result<PickledTensor> rebuild(const Reader& in, NodeId function, NodeId arguments, int wrappers);

Result<PickledTensor> rebuild(const Reader& in, NodeId node, int wrappers) {
  const PickleTree& tree = in.tree;
  if (tree.kind(node) == NodeKind::kReduce)
    return rebuild(in, tree.callable(node), tree.arguments(node), wrappers);
  if (tree.kind(node) == NodeKind::kObject) {
    const PickleGlobal* type = tree.global(tree.callable(node));
    return in.unsupported(node, "holds an object of the class " +
                                    (type != nullptr ? name_of(*type) : std::string("unknown")) +
                                    ", which is not supported as a tensor");
  }
  return in.damaged(node, "holds no tensor");
}

Result<PickledTensor> rebuild(const Reader& in, NodeId function, NodeId arguments, int wrappers) {
  const PickleTree& tree = in.tree;
  auto given = tree.items(arguments);
  if (wrappers > kMaxWrappers) return in.damaged(arguments, "a tensor wrapped too many times");
  if (is_torch_utils_global(tree, function, "_rebuild_tensor_v2") ||
      is_torch_utils_global(tree, function, "_rebuild_tensor_v3") ||
      is_torch_utils_global(tree, function, "_rebuild_tensor") ||
      is_torch_utils_global(tree, function, "_rebuild_qtensor"))
    return plain_tensor(in, function, arguments);
  if ((is_torch_utils_global(tree, function, "_rebuild_parameter") ||
       is_torch_utils_global(tree, function, "_rebuild_parameter_with_state")) &&
      !given.empty()) {
    SHW_TRY(PickledTensor tensor, rebuild(in, given[0], wrappers + 1));
    if (given.size() > 1) SHW_CHECK(read_requires_grad(in, given[1], tensor));
    return tensor;
  }
  const PickleGlobal* called = tree.global(function);
  if (tree.is_global(function, "torch._tensor", "_rebuild_from_type_v2") && given.size() >= 3) {
    if (is_plain_type(tree, given[1])) return rebuild(in, given[0], given[2], wrappers + 1);
    called = tree.global(given[1]);
  } else if (is_torch_utils_global(tree, function, "_rebuild_wrapper_subclass") && !given.empty()) {
    called = tree.global(given[0]);
  }
  return in.unsupported(arguments, "holds a tensor of the kind " +
                                       (called != nullptr ? name_of(*called) : "unknown") +
                                       ", which is not supported");
}

}  // namespace

bool is_tensor_call(const PickleTree& tree, NodeId node) {
  if (tree.kind(node) != NodeKind::kReduce) return false;
  const PickleGlobal* called = tree.global(tree.callable(node));
  return called != nullptr &&
         (called->module == "torch._utils" || called->module == "torch._tensor") &&
         called->name.starts_with("_rebuild");
}

bool is_parameter_call(const PickleTree& tree, NodeId node) {
  return tree.kind(node) == NodeKind::kReduce &&
         (is_torch_utils_global(tree, tree.callable(node), "_rebuild_parameter") ||
          is_torch_utils_global(tree, tree.callable(node), "_rebuild_parameter_with_state"));
}

NodeId tensor_attributes(const PickleTree& tree, NodeId node) {
  auto given = tree.items(tree.arguments(node));
  const bool has_state =
      is_torch_utils_global(tree, tree.callable(node), "_rebuild_parameter_with_state") ||
      tree.is_global(tree.callable(node), "torch._tensor", "_rebuild_from_type_v2");
  return has_state && given.size() > 3 ? given[3] : NodeId::kAbsent;
}

std::optional<std::string_view> storage_key(const PickleTree& tree, NodeId node) {
  auto ids =
      tree.kind(node) == NodeKind::kPersistentId ? tree.items(node) : std::span<const NodeId>{};
  auto id = ids.size() == 1 ? tree.items(ids[0]) : std::span<const NodeId>{};
  if (id.size() < 5 || tree.text(id[0]) != "storage") return std::nullopt;
  return tree.text(id[2]);
}

Result<PickledTensor> pickled_tensor(const PickleTree& tree, NodeId node, const std::string& file) {
  return rebuild(Reader{tree, file}, node, 0);
}

namespace {
// The storage id has five items in a zip archive and six in the format before zip.
Status check_storage_words(const ZipReader& zip, const PickledTensor& tensor) {
  if (tensor.has_view_metadata == zip.is_bare()) return {};
  return zip.damaged(0, "the tensor's storage is named in a form that torch does not write");
}
}  // namespace

Result<ItemHeader> header_of(const ZipReader& zip, const PickledTensor& tensor, bool big_endian) {
  SHW_CHECK(check_storage_words(zip, tensor));
  const ZipEntry* record = zip.find_storage(tensor.storage_key);
  if (record == nullptr)
    return zip.damaged(0, "the archive has no record data/" + tensor.storage_key.substr(0, 80));
  SHW_TRY(std::uint64_t data, zip.data_offset(*record));
  if (record->length != tensor.storage_bytes)
    return zip.damaged(
        record->header_offset,
        fmt::format("the record \"{}\" holds {} bytes, but the tensor's storage needs {}",
                    record->name, record->length, tensor.storage_bytes));
  auto needed = storage_needed(tensor.sizes, tensor.strides, tensor.storage_offset);
  std::uint64_t elements = tensor.storage_bytes / size_of(tensor.dtype);
  if (!needed || static_cast<std::uint64_t>(*needed) > elements)
    return zip.damaged(
        record->header_offset,
        fmt::format("the tensor of sizes {}, strides {} and storage offset {} reaches beyond its "
                    "storage of {} elements",
                    to_text(tensor.sizes), to_text(tensor.strides), tensor.storage_offset,
                    elements));
  // _rebuild_tensor_v3 uses untyped storages, where torch 2.15 swaps single bytes.
  if (big_endian && tensor.storage_unit != size_of(tensor.dtype))
    return zip.unsupported(
        record->header_offset,
        fmt::format(
            "the archive is big-endian, and torch swaps the bytes of \"{}\" by the width of its "
            "storage's elements ({}), not by that of {} ({}): a load gives wrong values",
            record->name, tensor.storage_unit, name(tensor.dtype), size_of(tensor.dtype)));
  ItemHeader header;
  header.dtype = tensor.dtype;
  header.sizes = tensor.sizes;
  header.strides = tensor.strides;
  header.storage_offset = tensor.storage_offset;
  header.payload_offset = data;
  header.payload_length = record->length;
  if (!zip.lacks_crcs()) header.payload_crc = record->crc;
  header.big_endian = big_endian;
  header.conjugate = tensor.conjugate;
  header.negative = tensor.negative;
  return header;
}

Status check_storages(const ZipReader& zip, const PickleTree& tree) {
  const Reader in{tree, zip.source().name()};
  if (tree.module_id_at() && !zip.is_bare())
    return fail(ErrorKind::kDamaged,
                "a class is named as in the legacy format before zip: torch.load fails there",
                {in.file, *tree.module_id_at()});
  for (std::uint32_t i = 0; i < tree.node_count(); ++i) {
    const NodeId node{i};
    if (tree.kind(node) != NodeKind::kPersistentId) continue;
    PickledTensor said;
    Status read = read_storage(in, node, true, said);
    // The record must exist even if the class is unknown.
    const bool is_known = read.has_value();
    if (!read && read.error().kind != ErrorKind::kUnsupported) return read;
    SHW_CHECK(check_storage_words(zip, said));
    const ZipEntry* record = zip.find_storage(said.storage_key);
    if (record == nullptr)
      return zip.damaged(0, "the archive has no record data/" + said.storage_key.substr(0, 80));
    if (is_known && record->length != said.storage_bytes)
      return zip.damaged(record->header_offset,
                         fmt::format("the record \"{}\" holds {} bytes, but its storage needs {}",
                                     record->name, record->length, said.storage_bytes));
  }
  return {};
}

namespace {

std::size_t count_storages(const PickleTree& tree) {
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < tree.node_count(); ++i)
    count += tree.kind(NodeId{i}) == NodeKind::kPersistentId ? 1 : 0;
  return count;
}

// Limits memory by file size: deflate expands up to a thousandfold, and pickle values take forty
// times their bytes.
Status check_inflated(const ZipReader& zip, const ZipEntry& record) {
  constexpr std::uint64_t kRoom = 1 << 20, kRatio = 100;
  if (!record.deflated || record.length <= kRoom ||
      (record.length - kRoom) / kRatio <= record.stored_length)
    return {};
  return zip.unsupported(record.header_offset,
                         fmt::format("the record \"{}\" is compressed, and its {} bytes would "
                                     "expand to {}, which no torch.save pickle does",
                                     record.name, record.stored_length, record.length));
}

}  // namespace

Result<Bytes> read_pickle_record(const ZipReader& zip, std::uint64_t limit, std::string_view name) {
  const ZipEntry* record = zip.find(name);
  if (record == nullptr) return zip.damaged(0, fmt::format("the archive has no record {}", name));
  SHW_CHECK(check_inflated(zip, *record));
  SHW_TRY(Bytes bytes, zip.read(*record, limit));
  // The bytes are in memory: a flipped bit is reported as damage here, and not as an unknown
  // class.
  if (!zip.lacks_crcs() && crc32_of(bytes) != record->crc)
    return zip.damaged(
        record->header_offset,
        fmt::format("the record {} changed after it was written: its checksum differs", name));
  return bytes;
}

Result<bool> is_big_endian(const ZipReader& zip) {
  const ZipEntry* record = zip.find("byteorder");
  if (record == nullptr) return false;
  SHW_TRY(Bytes bytes, zip.read(*record, 64));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text == "little") return false;
  if (text == "big") return true;
  return zip.damaged(record->header_offset, "the record byteorder says neither little nor big");
}

namespace {

// Adjacent chunks of a tensor have equal pickles: the result of the last pickle on this thread
// is reused for equal bytes. Reading headers of 218,304 items takes two thirds of the CPU
// time.
Result<PickledTensor> tensor_in(const ZipReader& zip, const Bytes& pickle, const std::string& file,
                                std::uint64_t pickle_at) {
  thread_local Bytes last;
  thread_local PickledTensor said;
  if (!pickle.empty() && pickle == last && !said.names_other_storages) return said;
  SHW_TRY(PickleTree tree, decode_pickle(pickle, file, pickle_at, kTensorLimits));
  if (tree.refused())
    return fail(ErrorKind::kDamaged, std::string("Python cannot load it: ") + tree.refused()->what,
                {file, tree.refused()->at});
  if (const auto& odd = tree.weights_only_violation())
    return fail(ErrorKind::kDamaged,
                fmt::format("its pickle has the opcode {}, which torch's reader of tensors "
                            "(weights_only) refuses",
                            name_of_opcode(odd->opcode)),
                {file, odd->at});
  for (const PickleGlobal& global : tree.globals()) {
    if (auto known = similar_known_name(global.module, global.name))
      return fail(ErrorKind::kDamaged, corrupted_name_text(global, *known), {file, global.at});
  }
  SHW_TRY(PickledTensor tensor, pickled_tensor(tree, tree.root(), file));
  tensor.names_other_storages = count_storages(tree) > 1;
  if (tensor.names_other_storages) SHW_CHECK(check_storages(zip, tree));
  said = tensor;
  last = pickle;
  return tensor;
}

}  // namespace

Result<TorchItem> open_torch_item(std::shared_ptr<const ByteSource> source, std::uint64_t base,
                                  std::uint64_t length, ZipEnds read) {
  SHW_TRY(ZipReader zip, ZipReader::open(std::move(source), base, length, std::move(read)));
  SHW_CHECK(check_is_torch_save_archive(zip));
  SHW_TRY(Bytes pickle, read_pickle_record(zip, kMaxTensorPickle));
  const std::string& file = zip.source().name();
  SHW_TRY(std::uint64_t pickle_at, zip.data_offset(*zip.find("data.pkl")));
  SHW_TRY(PickledTensor tensor, tensor_in(zip, pickle, file, pickle_at));
  SHW_TRY(bool big, is_big_endian(zip));
  SHW_TRY(ItemHeader header, header_of(zip, tensor, big));
  return TorchItem{std::move(zip), std::move(header), std::move(tensor.storage_key)};
}

}  // namespace shw

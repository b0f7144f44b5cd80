#include "core/formats/common/torch_file_tensors.h"

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/little_endian.h"
#include "core/base/words.h"
#include "core/formats/common/item_reader.h"
#include "core/formats/common/torch_file_records.h"
#include "core/formats/common/torch_item.h"
#include "core/tensor/even_cut.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// A state dict of 100,000 parameters takes about 60 MB of pickle.
constexpr std::uint64_t kMaxPickle = std::uint64_t{1} << 30;
constexpr PickleLimits kSideLimits{1u << 26, 200, 1u << 14};
// Depth limit. Shared nodes are visited once: some hundred bytes of pickle can form 2^64 paths, so
// the walk is also bounded by the number of nodes.
constexpr int kMaxSideDepth = 64;
constexpr std::uint64_t kMaxMesh = 1 << 22;

// Text for a key that is a string, a dtype, a class or a tuple of these; nullopt for other keys.
std::optional<std::string> pickled_key_text(const PickleTree& tree, NodeId key) {
  constexpr std::size_t kMaxWords = 8;
  if (auto text = tree.text(key)) return std::string(*text);
  if (const PickleGlobal* named = tree.global(key)) return named->name;
  const auto items = tree.items(key);
  if (tree.kind(key) != NodeKind::kTuple || items.empty() || items.size() > kMaxWords)
    return std::nullopt;
  std::string words;
  for (NodeId item : items) {
    const PickleGlobal* named = tree.global(item);
    const auto number = tree.integer(item);
    const auto text = tree.text(item);
    if (named == nullptr && !number && !text) return std::nullopt;
    words += (words.empty() ? "" : "-") + (named != nullptr ? named->name
                                           : number         ? std::to_string(*number)
                                                            : std::string(*text));
  }
  return words;
}

class TorchFileWalk {
 public:
  TorchFileWalk(const PickleTree& tree, const ZipReader& zip, bool big_endian)
      : tree_(tree), zip_(zip), big_endian_(big_endian), visits_left_(4 * tree.node_count() + 64) {}

  Result<SideFile> run() {
    SHW_CHECK(visit(tree_.root(), 0));
    return std::move(file_);
  }
  NodeId dtensor_state(NodeId node) const;
  DTensorSharding sharding(NodeId spec, NodeId arguments) const;

 private:
  Status visit(NodeId node, int depth);
  Status visit_dict(NodeId dict, int depth);
  void add(NodeId node);
  Result<TorchFileTensor> read(NodeId node) const;
  Result<TorchFileTensor> read_plain(NodeId node) const;
  DTensorMesh mesh(NodeId node) const;
  std::vector<std::int64_t> read_mesh_ranks(NodeId mesh) const;
  std::string placement(NodeId node) const;
  Extents extents(NodeId node) const;
  bool is_class(NodeId node, std::string_view name) const {
    const PickleGlobal* global = tree_.global(node);
    return global != nullptr && global->name == name;
  }

  const PickleTree& tree_;
  const ZipReader& zip_;
  bool big_endian_;
  std::uint64_t visits_left_;
  std::vector<PathPart> path_;
  SideFile file_;
};

Status TorchFileWalk::visit(NodeId node, int depth) {
  if (visits_left_-- == 0 || depth > kMaxSideDepth)
    return fail(ErrorKind::kUnsupported, "the pickled structure is too complex to read",
                {zip_.source().name(), tree_.at(node)});
  switch (tree_.kind(node)) {
    case NodeKind::kDict:
      return visit_dict(node, depth);
    case NodeKind::kTuple:
    case NodeKind::kList:
    case NodeKind::kSet: {
      std::int64_t index = 0;
      for (NodeId item : tree_.items(node)) {
        path_.emplace_back(index++);
        SHW_CHECK(visit(item, depth + 1));
        path_.pop_back();
      }
      return {};
    }
    case NodeKind::kReduce:
      if (is_tensor_call(tree_, node)) {
        add(node);
        return {};
      }
      [[fallthrough]];
    case NodeKind::kObject:
      // OrderedDict and other containers have contents and attributes.
      if (tree_.contents(node) != NodeId::kAbsent)
        SHW_CHECK(visit(tree_.contents(node), depth + 1));
      if (tree_.attributes(node) != NodeId::kAbsent)
        SHW_CHECK(visit(tree_.attributes(node), depth + 1));
      return {};
    default:
      return {};
  }
}

Status TorchFileWalk::visit_dict(NodeId dict, int depth) {
  auto items = tree_.items(dict);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    if (auto words = pickled_key_text(tree_, items[i]))
      path_.emplace_back(std::move(*words));
    else
      path_.emplace_back(tree_.integer(items[i]).value_or(static_cast<std::int64_t>(i / 2)));
    SHW_CHECK(visit(items[i + 1], depth + 1));
    path_.pop_back();
  }
  return {};
}

void TorchFileWalk::add(NodeId node) {
  auto tensor = read(node);
  if (tensor) {
    tensor->path = path_;
    file_.tensors.push_back(std::move(*tensor));
  } else {
    file_.unreadable.push_back({path_, std::move(tensor).error()});
  }
}

Result<TorchFileTensor> TorchFileWalk::read_plain(NodeId node) const {
  SHW_TRY(PickledTensor pickled, pickled_tensor(tree_, node, zip_.source().name()));
  SHW_TRY(ItemHeader header, header_of(zip_, pickled, big_endian_));
  if (zip_.find_storage(pickled.storage_key)->deflated || pickled.conjugate || pickled.negative)
    return fail(ErrorKind::kUnsupported,
                "is compressed, conjugated or negated, which is not supported",
                {zip_.source().name(), header.payload_offset});
  TorchFileTensor tensor;
  tensor.dtype = header.dtype;
  tensor.sizes = header.sizes;
  tensor.strides = header.strides;
  tensor.storage_offset = header.storage_offset;
  tensor.payload_offset = header.payload_offset;
  tensor.payload_length = header.payload_length;
  tensor.crc = header.payload_crc;
  tensor.big_endian = big_endian_;
  return tensor;
}

// For _rebuild_from_type_v2(_rebuild_wrapper_subclass, DTensor, (DTensor, dtype, size, ...),
// state): `state` is (None, {"_local_tensor", "_spec"}) or the dict alone.
NodeId TorchFileWalk::dtensor_state(NodeId node) const {
  auto given = tree_.items(tree_.arguments(node));
  if (!is_class(tree_.callable(node), "_rebuild_from_type_v2") || given.size() < 4 ||
      !is_class(given[1], "DTensor"))
    return NodeId::kAbsent;
  NodeId state = given[3];
  if (tree_.kind(state) == NodeKind::kTuple) {
    for (NodeId part : tree_.items(state)) {
      if (tree_.kind(part) == NodeKind::kDict) state = part;
    }
  }
  return tree_.kind(state) == NodeKind::kDict ? state : NodeId::kAbsent;
}

Result<TorchFileTensor> TorchFileWalk::read(NodeId node) const {
  NodeId state = dtensor_state(node);
  if (state == NodeId::kAbsent) return read_plain(node);
  NodeId local = tree_.find(state, "_local_tensor");
  if (local == NodeId::kAbsent)
    return fail(ErrorKind::kDamaged, "holds a DTensor without its local tensor",
                {zip_.source().name(), tree_.at(node)});
  SHW_TRY(TorchFileTensor tensor, read_plain(local));
  tensor.sharding = sharding(tree_.find(state, "_spec"), tree_.items(tree_.arguments(node))[2]);
  return tensor;
}

DTensorSharding TorchFileWalk::sharding(NodeId spec, NodeId arguments) const {
  DTensorSharding out;
  // The size of the wrapper; equals DTensorSpec.tensor_meta[0].
  auto given = tree_.items(arguments);
  if (given.size() > 2) out.global_shape = extents(given[2]);
  NodeId meta = tree_.attribute(spec, "tensor_meta");
  auto parts = tree_.items(tree_.arguments(meta));
  if (out.global_shape.empty() && !parts.empty()) out.global_shape = extents(parts[0]);
  for (NodeId item : tree_.items(tree_.attribute(spec, "placements")))
    out.placements.push_back(placement(item));

  NodeId node = tree_.attribute(spec, "mesh");
  out.mesh = mesh(node);
  out.rank = tree_.integer(tree_.attribute(node, "_rank"));
  out.mesh_hash = tree_.integer(tree_.attribute(node, "_hash"));
  NodeId coordinate = tree_.attribute(node, "_coordinate_on_dim");
  if (tree_.kind(coordinate) == NodeKind::kTuple || tree_.kind(coordinate) == NodeKind::kList)
    out.coordinate = extents(coordinate);
  // The position of this rank in the pickled mesh gives its coordinates.
  auto found = out.rank ? std::find(out.mesh.ranks.begin(), out.mesh.ranks.end(), *out.rank)
                        : out.mesh.ranks.end();
  auto cells = volume(out.mesh.shape);
  if (!out.coordinate && found != out.mesh.ranks.end() && cells &&
      static_cast<std::size_t>(*cells) == out.mesh.ranks.size()) {
    std::int64_t at = found - out.mesh.ranks.begin();
    Extents coordinates(out.mesh.shape.size());
    for (std::size_t d = coordinates.size(); d-- > 0;) {
      coordinates[d] = at % out.mesh.shape[d];
      at /= out.mesh.shape[d];
    }
    out.coordinate = std::move(coordinates);
  }
  return out;
}

// Two forms: up to torch 2.9 the mesh has `mesh` (a tensor of ranks), later versions have a layout
// (sizes and strides per axis) into `_rank_map`.
DTensorMesh TorchFileWalk::mesh(NodeId node) const {
  DTensorMesh out;
  for (NodeId item : tree_.items(tree_.attribute(node, "_mesh_dim_names"))) {
    if (auto text = tree_.text(item)) out.dim_names.emplace_back(*text);
  }
  NodeId array = tree_.attribute(node, "mesh");
  if (array == NodeId::kAbsent) array = tree_.attribute(node, "_mesh");
  if (is_tensor_call(tree_, array)) {
    if (auto tensor = read_plain(array)) out.shape = tensor->sizes;
    out.ranks = read_mesh_ranks(array);
    return out;
  }

  NodeId layout = tree_.attribute(node, "_layout");
  Extents strides;
  NodeId axes = tree_.attribute(layout, "axes");
  for (NodeId axis : tree_.items(axes)) {
    Extents sizes = extents(tree_.attribute(axis, "shape"));
    Extents steps = extents(tree_.attribute(axis, "stride"));
    // torch drops the size and the stride of an axis of one rank.
    if (sizes.empty()) sizes.push_back(1);
    if (steps.empty()) steps.push_back(0);
    out.shape.insert(out.shape.end(), sizes.begin(), sizes.end());
    strides.insert(strides.end(), steps.begin(), steps.end());
  }
  if (axes == NodeId::kAbsent) {
    out.shape = extents(tree_.attribute(layout, "shape"));
    strides = extents(tree_.attribute(layout, "stride"));
  }
  std::vector<std::int64_t> map = read_mesh_ranks(tree_.attribute(node, "_rank_map"));
  auto cells = volume(out.shape);
  auto needed = storage_needed(out.shape, strides, 0);
  if (!cells || !needed || static_cast<std::uint64_t>(*needed) > map.size() ||
      static_cast<std::uint64_t>(*cells) > kMaxMesh)
    return out;
  BytesView from = std::as_bytes(std::span(map));
  out.ranks.resize(static_cast<std::size_t>(*cells));
  Extents dense = row_major_strides(out.shape);
  copy_strided({from, strides, 0}, {std::as_writable_bytes(std::span(out.ranks)), dense, 0},
               out.shape, sizeof(std::int64_t));
  return out;
}

// Reads an int32 or int64 tensor, row-major.
std::vector<std::int64_t> TorchFileWalk::read_mesh_ranks(NodeId array) const {
  if (!is_tensor_call(tree_, array)) return {};
  auto tensor = read_plain(array);
  if (!tensor || tensor->payload_length > kMaxMesh * 8) return {};
  auto bytes = read_torch_file_elements(zip_.source(), *tensor);
  if (!bytes) return {};
  std::vector<std::int64_t> ranks;
  if (tensor->dtype == Dtype::kInt32) {
    for (std::size_t at = 0; at + 4 <= bytes->size(); at += 4)
      ranks.push_back(load_little<std::int32_t>(*bytes, at));
  } else if (tensor->dtype == Dtype::kInt64) {
    for (std::size_t at = 0; at + 8 <= bytes->size(); at += 8)
      ranks.push_back(load_little<std::int64_t>(*bytes, at));
  }
  return ranks;
}

std::string TorchFileWalk::placement(NodeId node) const {
  const PickleGlobal* type = tree_.global(tree_.callable(node));
  if (type == nullptr) return "unknown";
  // New placements are calls with the dimension, old ones store it as state.
  auto number = [&](std::string_view field, std::size_t argument) {
    auto arguments = tree_.items(tree_.arguments(node));
    auto value = tree_.integer(tree_.attribute(node, field));
    if (!value && argument < arguments.size()) value = tree_.integer(arguments[argument]);
    return value ? std::to_string(*value) : std::string("?");
  };
  if (type->name == "Shard") return "Shard(" + number("dim", 0) + ")";
  if (type->name == "_StridedShard")
    return "_StridedShard(dim=" + number("dim", 0) + ", sf=" + number("split_factor", 1) + ")";
  if (type->name == "Partial") {
    auto operation = tree_.text(tree_.attribute(node, "reduce_op"));
    return "Partial(" + std::string(operation.value_or("sum")) + ")";
  }
  return type->name + "()";
}

// Sizes from a tuple of numbers, a torch.Size, or a single number.
Extents TorchFileWalk::extents(NodeId node) const {
  if (tree_.kind(node) == NodeKind::kReduce && is_class(tree_.callable(node), "Size")) {
    auto arguments = tree_.items(tree_.arguments(node));
    if (arguments.size() == 1) node = arguments[0];
  }
  if (auto alone = tree_.integer(node)) return {*alone};
  Extents out;
  for (NodeId item : tree_.items(node)) {
    if (out.size() < kMaxDims) out.push_back(tree_.integer(item).value_or(-1));
  }
  return out;
}

}  // namespace

NodeId local_tensor_of_dtensor(const PickleTree& tree, NodeId node) {
  auto given = tree.kind(node) == NodeKind::kReduce ? tree.items(tree.arguments(node))
                                                    : std::span<const NodeId>{};
  if (given.size() < 4 ||
      !tree.is_global(tree.callable(node), "torch._tensor", "_rebuild_from_type_v2"))
    return NodeId::kAbsent;
  NodeId state = given[3];
  const PickleGlobal* type = tree.global(given[1]);
  if (type == nullptr || type->name != "DTensor") return NodeId::kAbsent;
  if (tree.kind(state) == NodeKind::kTuple) {
    for (NodeId part : tree.items(state)) {
      if (tree.kind(part) == NodeKind::kDict) state = part;
    }
  }
  return tree.kind(state) == NodeKind::kDict ? tree.find(state, "_local_tensor") : NodeId::kAbsent;
}

DTensorSharding dtensor_sharding(const PickleTree& tree, const ZipReader& zip, NodeId node,
                                 bool big_endian) {
  const TorchFileWalk walk(tree, zip, big_endian);
  const NodeId state = walk.dtensor_state(node);
  auto given = tree.items(tree.arguments(node));
  return walk.sharding(tree.find(state, "_spec"), given.size() > 2 ? given[2] : NodeId::kAbsent);
}

namespace {

// The dimension of "Shard(1)"; -1 for placements that split nothing; nullopt if unknown.
std::optional<std::int64_t> sharded_dim(std::string_view placement) {
  constexpr std::string_view kShard = "Shard(";
  if (placement.starts_with("Replicate")) return -1;
  if (!placement.starts_with(kShard)) return std::nullopt;
  placement.remove_prefix(kShard.size());
  auto dim = consume_number(placement);
  return dim && placement == ")" ? std::optional<std::int64_t>(*dim) : std::nullopt;
}

}  // namespace

std::optional<Box> box_of_local_tensor(const DTensorSharding& sharding, ExtentsView local) {
  const Extents& axes = sharding.mesh.shape;
  if (sharding.global_shape.size() != local.size() || sharding.placements.size() != axes.size() ||
      (sharding.coordinate && sharding.coordinate->size() != axes.size()) ||
      std::any_of(sharding.global_shape.begin(), sharding.global_shape.end(),
                  [](std::int64_t extent) { return extent < 0; }))
    return std::nullopt;
  Box box = whole(sharding.global_shape);
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const std::int64_t at = sharding.coordinate ? (*sharding.coordinate)[axis] : 0;
    const auto dim = sharded_dim(sharding.placements[axis]);
    if (!dim || axes[axis] < 1 || at < 0 || at >= axes[axis] ||
        *dim >= static_cast<std::int64_t>(local.size()))
      return std::nullopt;
    if (*dim < 0) continue;
    const auto d = static_cast<std::size_t>(*dim);
    const EvenCut cut = even_cut(box.sizes[d], axes[axis], at);
    box.offsets[d] += cut.offset;
    box.sizes[d] = cut.size;
  }
  return same(box.sizes, local) ? std::optional(std::move(box)) : std::nullopt;
}

Result<OpenedTorchFile> open_and_decode_torch_file(std::shared_ptr<const ByteSource> source) {
  SHW_TRY(ZipReader zip, open_torch_records(source));
  SHW_TRY(Bytes pickle, read_pickle_record(zip, kMaxPickle));
  SHW_TRY(std::uint64_t pickle_at, zip.data_offset(*zip.find("data.pkl")));
  SHW_TRY(PickleTree tree, decode_pickle(pickle, source->name(), pickle_at, kSideLimits));
  if (tree.refused())
    return fail(ErrorKind::kDamaged, std::string("Python cannot load it: ") + tree.refused()->what,
                {source->name(), tree.refused()->at});
  SHW_TRY(bool big, is_big_endian(zip));
  return OpenedTorchFile{std::move(zip), std::move(pickle), std::move(tree), big};
}

Result<SideFile> tensors_of_torch_file(const OpenedTorchFile& file) {
  return TorchFileWalk(file.tree, file.zip, file.big_endian).run();
}

Result<SideFile> read_torch_file_tensors(std::shared_ptr<const ByteSource> source) {
  SHW_TRY(OpenedTorchFile file, open_and_decode_torch_file(std::move(source)));
  return tensors_of_torch_file(file);
}

Result<Bytes> read_torch_file_elements(const ByteSource& source, const TorchFileTensor& tensor) {
  OpenItem item;
  item.header.dtype = tensor.dtype;
  item.header.sizes = tensor.sizes;
  item.header.strides = tensor.strides;
  item.header.storage_offset = tensor.storage_offset;
  item.header.payload_offset = tensor.payload_offset;
  item.header.payload_length = tensor.payload_length;
  item.header.big_endian = tensor.big_endian;
  // Non-owning: the item does not outlive this call.
  item.source = std::shared_ptr<const ByteSource>(std::shared_ptr<void>(), &source);
  return read_elements(item);
}

}  // namespace shw

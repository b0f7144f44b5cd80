#include "core/formats/dcp/flattened_states.h"

#include <fmt/core.h>

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/formats/common/flat_ranges.h"
#include "core/formats/common/how_read_finding.h"
#include "core/formats/common/torch_view_codec.h"
#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/joined_folders.h"
#include "core/model/builder.h"

namespace shw {
namespace {

std::optional<Extents> shape_of(const PickleTree& tree, NodeId node) {
  if (tree.kind(node) == NodeKind::kReduce) {  // torch.Size
    const auto arguments = tree.items(tree.arguments(node));
    if (arguments.size() != 1) return std::nullopt;
    node = arguments[0];
  }
  if (tree.kind(node) != NodeKind::kTuple || tree.items(node).size() > kMaxDims)
    return std::nullopt;
  Extents shape;
  for (NodeId item : tree.items(node)) {
    const auto size = tree.integer(item);
    if (!size || *size < 0) return std::nullopt;
    shape.push_back(*size);
  }
  return volume(shape) ? std::optional(shape) : std::nullopt;
}

// The shape of one part of the grid; nullopt if the grid does not belong to `shape`.
std::optional<Extents> part_shape_of_grid(ExtentsView grid, const Extents& shape) {
  if (shape.empty() || grid.size() != shape.size() + 1) return std::nullopt;
  Extents part;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (grid[d] < 1 || shape[d] % grid[d] != 0) return std::nullopt;
    part.push_back(shape[d] / grid[d]);
  }
  return volume(part) == grid[shape.size()] ? std::optional(part) : std::nullopt;
}

class StateUnflattener {
 public:
  StateUnflattener(std::shared_ptr<const Checkpoint> checkpoint,
                   const std::map<std::string, Extents>& shapes)
      : whole_(std::move(checkpoint)), from_(*whole_), shapes_(shapes) {
    out_.set_format(kMegatronFlattenedFormat);
    if (from_.directory() != nullptr) out_.set_directory(from_.directory());
  }

  OpenedCheckpoint run() {
    for (TensorId tensor : from_.tensors()) {
      const auto known = shapes_.find(std::string(from_.fqn(tensor)));
      if (known == shapes_.end() || same(from_.shape(tensor), known->second)) continue;
      const auto part = part_shape_of_grid(from_.shape(tensor), known->second);
      if (part && are_contiguous_chunks(tensor, *part)) add(tensor, known->second, *part);
    }
    if (left_out_.empty()) return whole_;
    out_.add_finding(flattened_finding());
    const JoinedPart others{whole_, "", "", left_out_}, states{out_.finish(), "", ""};
    return join_folders_as(kMegatronFlattenedFormat, from_.directory(), {others, states});
  }

 private:
  bool are_contiguous_chunks(TensorId tensor, const Extents& part) const {
    const std::size_t last = part.size();
    for (ChunkId chunk : from_.chunks(tensor)) {
      const ExtentsView offsets = from_.offsets(chunk), sizes = from_.sizes(chunk);
      if (sizes.size() != last + 1 || from_.view(chunk) || !from_.replicas(chunk).empty())
        return false;
      for (std::size_t d = 0; d < last; ++d) {
        if (sizes[d] != 1 || offsets[d] < 0 || offsets[d] >= from_.shape(tensor)[d]) return false;
      }
      const std::int64_t length = from_.shape(tensor)[last];
      if (offsets[last] < 0 || offsets[last] > length || sizes[last] < 0 ||
          sizes[last] > length - offsets[last])
        return false;
    }
    return true;
  }

  void add(TensorId tensor, const Extents& shape, const Extents& part) {
    const TensorId added = out_.add_tensor(std::string(from_.fqn(tensor)), from_.dtype(tensor),
                                           shape, from_.requires_grad(tensor));
    if (const auto path = from_.path(tensor); !path.empty())
      out_.set_path(added, {path.begin(), path.end()});
    for (ChunkId chunk : from_.chunks(tensor)) add_chunks(chunk, part);
    left_out_.insert(tensor);
    if (example_.empty())
      example_ = fmt::format("{} is recorded as {} but is {}", from_.fqn(tensor),
                             to_text(from_.shape(tensor)), to_text(shape));
  }

  void add_chunks(ChunkId chunk, const Extents& part) {
    const ExtentsView offsets = from_.offsets(chunk);
    const std::int64_t first = offsets[part.size()];
    const std::int64_t last = first + from_.sizes(chunk)[part.size()];
    std::optional<StorageId> storage;
    if (const auto item = from_.item(chunk); item && item->file != FileId::kNone) {
      const auto transforms = from_.transforms(chunk);
      storage =
          out_.add_storage({out_.file(from_.file(item->file).path), item->offset, item->length},
                           &kTorchZipViewCodec, {transforms.begin(), transforms.end()});
    }
    for_each_flat_box(part, first, last, [&](const Box& box, std::int64_t at) {
      Box placed = box;
      for (std::size_t d = 0; d < part.size(); ++d) placed.offsets[d] += offsets[d] * part[d];
      const ChunkId added = out_.add_chunk(placed.offsets, placed.sizes, {});
      if (storage) out_.set_view(added, *storage, at - first);
      if (const auto writer = from_.writer(chunk)) out_.set_writer(added, *writer);
    });
  }

  Finding flattened_finding() const {
    Finding finding = how_read_finding(
        std::string(kDcpMetadataName),
        fmt::format("{} of the optimizer were saved flattened, as Megatron-core 0.12 does, and are "
                    "read in the shapes of their parameters: {}. `repair` cannot write that "
                    "format; `convert` writes them unflattened.",
                    plural(left_out_.size(), "state"), example_));
    finding.evidence = {{"count", static_cast<std::int64_t>(left_out_.size())}};
    return finding;
  }

  std::shared_ptr<const Checkpoint> whole_;
  const Checkpoint& from_;
  const std::map<std::string, Extents>& shapes_;
  CheckpointBuilder out_;
  std::set<TensorId> left_out_;
  std::string example_;
};

}  // namespace

std::map<std::string, Extents> shapes_before_flattening(const PickleTree& tree) {
  std::map<std::string, Extents> shapes;
  const NodeId data = tree.attribute(tree.root(), "mcore_data");
  if (data == NodeId::kAbsent || tree.kind(data) != NodeKind::kDict) return shapes;
  const auto pairs = tree.items(data);
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const auto fqn = tree.text(pairs[i]);
    if (!fqn || tree.kind(pairs[i + 1]) != NodeKind::kDict) continue;
    const NodeId shape = tree.find(pairs[i + 1], "nd_reformulated_orig_global_shape");
    if (shape == NodeId::kAbsent) continue;
    if (auto known = shape_of(tree, shape)) shapes.emplace(*fqn, std::move(*known));
  }
  return shapes;
}

OpenedCheckpoint with_shapes_before_flattening(std::shared_ptr<const Checkpoint> checkpoint,
                                               const std::map<std::string, Extents>& shapes) {
  if (shapes.empty()) return checkpoint;
  return StateUnflattener(std::move(checkpoint), shapes).run();
}

}  // namespace shw

#include "core/formats/deepspeed/zero_file.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/formats/common/bad_record.h"
#include "core/formats/common/carried_pickle.h"
#include "core/formats/common/record_reader.h"
#include "core/formats/common/torch_file_records.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/pickle/plain_pickle.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// Size limit: metadata of 100,000 parameters takes some 20 MB of pickle.
constexpr std::uint64_t kMaxZeroPickle = std::uint64_t{1} << 30;
constexpr PickleLimits kZeroLimits{1u << 27, 200, 1u << 14};
// Depth limit, deeper than the state of any optimizer.
constexpr int kDeepestZero = 32;
constexpr std::size_t kMaxZeroFindings = 64;

}  // namespace

Result<ZeroFile> ZeroFile::open(CheckpointBuilder& builder, const Directory& directory,
                                const std::string& path, ZeroPickleFindings& notes) {
  SHW_TRY(auto source, directory.open(path));
  SHW_TRY(ZipReader zip, open_torch_records(source));
  SHW_TRY(Bytes pickle, read_pickle_record(zip, kMaxZeroPickle));
  SHW_TRY(std::uint64_t pickle_at, zip.data_offset(*zip.find("data.pkl")));
  SHW_TRY(PickleTree tree, decode_pickle(pickle, source->name(), pickle_at, kZeroLimits));
  SHW_TRY(bool big_endian, is_big_endian(zip));
  ZeroFile file(path, std::move(zip), std::move(pickle), std::move(tree));
  file.big_endian_ = big_endian;
  file.file_ = builder.file(path);
  for (Finding& finding : record_findings(file.zip_, path))
    notes.findings.push_back(std::move(finding));
  report_pickle(file.tree_, path, notes);
  report_missing_storages(file.zip_, file.tree_, path, notes);
  return file;
}

std::span<const NodeId> ZeroFile::pairs(NodeId mapping) const {
  if (tree_.kind(mapping) == NodeKind::kDict) return tree_.items(mapping);
  if (tree_.kind(mapping) != NodeKind::kReduce && tree_.kind(mapping) != NodeKind::kObject)
    return {};
  const NodeId contents = tree_.contents(mapping);
  return tree_.kind(contents) == NodeKind::kDict ? tree_.items(contents)
                                                 : std::span<const NodeId>{};
}

NodeId ZeroFile::find(NodeId mapping, std::string_view key) const {
  if (tree_.kind(mapping) == NodeKind::kDict) return tree_.find(mapping, key);
  return tree_.find(tree_.contents(mapping), key);
}

NodeId ZeroFile::find(NodeId mapping, std::int64_t key) const {
  const auto items = pairs(mapping);
  for (std::size_t i = items.size() / 2; i-- > 0;) {
    if (tree_.kind(items[2 * i]) == NodeKind::kInt && tree_.integer(items[2 * i]) == key)
      return items[2 * i + 1];
  }
  return NodeId::kAbsent;
}

std::span<const NodeId> ZeroFile::list(NodeId node) const {
  if (tree_.kind(node) == NodeKind::kList || tree_.kind(node) == NodeKind::kTuple)
    return tree_.items(node);
  const NodeId contents = tree_.contents(node);
  return tree_.kind(contents) == NodeKind::kList ? tree_.items(contents)
                                                 : std::span<const NodeId>{};
}

std::string ZeroFile::text(NodeId node) const {
  return std::string(tree_.text(node).value_or(std::string_view{}));
}

std::optional<std::int64_t> ZeroFile::integer(NodeId node) const {
  if (tree_.kind(node) == NodeKind::kReduce) {
    const auto given = tree_.items(tree_.arguments(node));
    return given.size() == 1 ? tree_.integer(given[0]) : std::nullopt;
  }
  return tree_.integer(node);
}

std::optional<Extents> ZeroFile::shape(NodeId node) const {
  if (tree_.kind(node) == NodeKind::kReduce || tree_.kind(node) == NodeKind::kObject) {
    const auto given = tree_.items(tree_.arguments(node));
    if (given.size() != 1) return std::nullopt;
    node = given[0];
  }
  if (tree_.kind(node) != NodeKind::kTuple && tree_.kind(node) != NodeKind::kList)
    return std::nullopt;
  Extents sizes;
  if (tree_.items(node).size() > kMaxDims) return std::nullopt;
  for (NodeId item : tree_.items(node)) {
    auto size = tree_.integer(item);
    if (!size || *size < 0) return std::nullopt;
    sizes.push_back(*size);
  }
  return volume(sizes) ? std::optional(std::move(sizes)) : std::nullopt;
}

bool ZeroFile::is_tensor(NodeId node) const {
  return is_tensor_call(tree_, node);
}

Result<ZeroTensor> ZeroFile::tensor(NodeId node) const {
  SHW_TRY(PickledTensor pickled, pickled_tensor(tree_, node, path_));
  if (pickled.conjugate || pickled.negative)
    return fail(ErrorKind::kUnsupported, "is saved as the conjugate or the negative of its bytes",
                {path_, tree_.at(node)});
  SHW_TRY(ItemHeader header, header_of(zip_, pickled, big_endian_));
  const ZipEntry* record = zip_.find_storage(pickled.storage_key);
  if (record->deflated)
    return fail(ErrorKind::kUnsupported,
                "is in a record that is compressed, as torch.save never writes it",
                {path_, header.payload_offset});
  ZeroTensor out;
  out.dtype = header.dtype;
  out.sizes = header.sizes;
  out.strides = header.strides;
  out.element = header.storage_offset;
  out.place = {file_, static_cast<std::int64_t>(header.payload_offset),
               static_cast<std::int64_t>(header.payload_length)};
  out.big_endian = big_endian_;
  out.is_flat = out.sizes.size() == 1 && is_row_major(out.sizes, out.strides);
  return out;
}

InlinedValue ZeroFile::value(NodeId node) const {
  InlinedValue value;
  // The size limit allows for values that are referenced a thousand times and written out each
  // time.
  auto opcodes = plain_pickle(tree_, node, 4 * tree_.end() + (1 << 16));
  // Groups share tuples (betas), which are the same values when each has its own.
  value.is_all = opcodes.has_value();
  if (opcodes)
    value.opcodes = std::move(*opcodes);
  else
    value.not_plain = non_plain_value_reason(tree_, node);
  return value;
}

// Limits on names: a shared node is visited once per path, a pickle of some hundred bytes can form
// 2^64 paths, and one long key can be in all of them.
struct ZeroFile::CollectedValues {
  std::vector<NamedZeroTensor>& tensors;
  std::vector<NamedZeroValue>& values;
  ZeroPickleFindings& notes;
  std::uint64_t visits_left, text_left;
};

void ZeroFile::read_all_tensors(const std::string& prefix, NodeId node,
                                std::vector<NamedZeroTensor>& tensors,
                                std::vector<NamedZeroValue>& values,
                                ZeroPickleFindings& notes) const {
  CollectedValues taking{tensors, values, notes, 4 * tree_.node_count() + 64,
                         16 * tree_.end() + (1 << 20)};
  take(taking, prefix, node, 0);
}

void ZeroFile::take(CollectedValues& taking, const std::string& fqn, NodeId node, int depth) const {
  if (taking.visits_left == 0 || fqn.size() > taking.text_left) return;
  --taking.visits_left;
  taking.text_left -= fqn.size();
  if (is_tensor(node)) {
    auto read = tensor(node);
    if (read) {
      taking.tensors.push_back({fqn, std::move(*read)});
    } else if (taking.notes.findings.size() < kMaxZeroFindings) {
      Finding finding = bad_record_finding(
          fqn, fmt::format("{} in {} cannot be read: {}.", fqn, path_, read.error().message),
          read.error().place.offset);
      if (read.error().kind == ErrorKind::kUnsupported) {
        finding.rule = "not-looked-at";
        finding.severity = Severity::kInfo;
      }
      taking.notes.findings.push_back(std::move(finding));
    }
    return;
  }
  const auto below = reachable_nodes_in_order(tree_, node);
  const bool has_tensor =
      depth < kDeepestZero &&
      std::any_of(below.begin(), below.end(), [&](NodeId one) { return is_tensor(one); });
  if (!has_tensor) {
    taking.values.push_back({fqn, value(node)});
    return;
  }
  const auto keyed = pairs(node);
  for (std::size_t i = 0; i + 1 < keyed.size(); i += 2) {
    auto number = tree_.integer(keyed[i]);
    const std::string key = number ? std::to_string(*number) : text(keyed[i]);
    take(taking, fqn.empty() ? key : fqn + "." + key, keyed[i + 1], depth + 1);
  }
  std::size_t index = 0;
  for (NodeId item : list(node)) take(taking, fqn + "." + std::to_string(index++), item, depth + 1);
}

StorageId ZeroStorages::storage(const ItemPlace& place, bool big_endian) {
  const std::pair key(static_cast<std::uint32_t>(place.file), place.offset);
  auto known = storages_.find(key);
  if (known != storages_.end()) return known->second;
  const Codec* codec = big_endian ? &kZipRecordBigCodec : nullptr;
  return storages_.emplace(key, builder_.add_storage(place, codec)).first->second;
}

bool ZeroStorages::add_whole(const std::string& fqn, const ZeroTensor& tensor,
                             std::optional<std::uint32_t> writer) {
  if (!claim_name(fqn)) return false;
  builder_.add_tensor(fqn, tensor.dtype, tensor.sizes);
  const ChunkId chunk = builder_.add_chunk(Extents(tensor.sizes.size(), 0), tensor.sizes, {});
  const bool dense = is_row_major(tensor.sizes, tensor.strides);
  builder_.set_view(chunk, storage(tensor.place, tensor.big_endian), tensor.element,
                    dense ? ExtentsView{} : ExtentsView(tensor.strides));
  if (writer) builder_.set_writer(chunk, *writer);
  return true;
}

void ZeroStorages::add_value(NamedZeroValue value) {
  if (!claim_name(value.fqn)) return;
  builder_.add_object({.fqn = std::move(value.fqn), .item = {}, .inlined = std::move(value.value)});
}

}  // namespace shw

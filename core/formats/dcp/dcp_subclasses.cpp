#include "core/formats/dcp/dcp_subclasses.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/record_reader.h"
#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/dcp/dcp_read.h"
#include "core/formats/dcp/wrapped_items.h"
#include "core/formats/joined_folders.h"
#include "core/model/builder.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// Bytes around the elements of a plain tensor's item: 1,132 to 1,626 (torch 2.1 to 2.15). Other
// items are inspected for subclasses.
constexpr std::int64_t kMinAround = 1000, kMaxAround = 1900;
// Number of inspected items without a subclass after which the search ends.
constexpr std::size_t kMaxInVain = 32;
// Limit of a table that is equal on all ranks: the 256 values of an 8-bit code take 1 KiB.
constexpr std::uint64_t kMaxTable = 64 << 10;

struct WrappedBox {
  ChunkId chunk;  // of the tensor that .metadata records
  Box box;
  const WrappedPart* part = nullptr;
  bool is_copy = false;  // a replica of the first box
};
struct WrappedRows {
  std::vector<WrappedBox> boxes;
  Extents shape;
};
using ItemsOfTensor = std::vector<std::pair<ChunkId, WrappedItem>>;  // sorted by offset

bool is_candidate(const Checkpoint& checkpoint, TensorId tensor, bool any) {
  const auto chunks = checkpoint.chunks(tensor);
  if (chunks.empty()) return false;
  const ChunkId first = *chunks.begin();
  const auto item = checkpoint.item(first);
  if (!item || item->file == FileId::kNone || checkpoint.view(first) ||
      !checkpoint.transforms(first).empty() || &checkpoint.codec(first) != &kTorchZipCodec)
    return false;
  const auto elements = volume(checkpoint.sizes(first));
  const auto bytes = elements
                         ? checked_mul(*elements, std::int64_t{size_of(checkpoint.dtype(tensor))})
                         : std::nullopt;
  const std::int64_t around = item->length - bytes.value_or(0);
  return any || !bytes || around < kMinAround || around > kMaxAround;
}

// The dimension that the chunks split; nullopt if they split several, or have gaps or overlaps.
std::optional<std::size_t> cut_dimension(const Checkpoint& checkpoint, TensorId tensor,
                                         std::vector<ChunkId>& chunks) {
  const ExtentsView shape = checkpoint.shape(tensor);
  std::optional<std::size_t> cut;
  for (ChunkId chunk : chunks) {
    if (checkpoint.sizes(chunk).size() != shape.size()) return std::nullopt;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (checkpoint.sizes(chunk)[d] == shape[d] && checkpoint.offsets(chunk)[d] == 0) continue;
      if (cut && *cut != d) return std::nullopt;
      cut = d;
    }
  }
  if (!cut) return chunks.size() == 1 ? std::optional<std::size_t>(0) : std::nullopt;
  std::sort(chunks.begin(), chunks.end(), [&](ChunkId a, ChunkId b) {
    return checkpoint.offsets(a)[*cut] < checkpoint.offsets(b)[*cut];
  });
  std::int64_t end = 0;
  for (ChunkId chunk : chunks) {
    if (checkpoint.offsets(chunk)[*cut] != end) return std::nullopt;
    end += checkpoint.sizes(chunk)[*cut];
  }
  return end == shape[*cut] ? cut : std::nullopt;
}

bool have_equal_parts(const WrappedItem& a, const WrappedItem& b) {
  return a.type == b.type &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [](const WrappedPart& one, const WrappedPart& other) {
                      return one.name == other.name && one.header.dtype == other.header.dtype &&
                             one.header.sizes.size() == other.header.sizes.size();
                    });
}

class SubclassUnwrapper {
 public:
  SubclassUnwrapper(std::shared_ptr<const Checkpoint> checkpoint, Progress* progress)
      : whole_(std::move(checkpoint)), from_(*whole_), items_(from_), progress_(progress) {
    out_.set_format(kDcpWrappedFormat);
    if (from_.directory() != nullptr) out_.set_directory(from_.directory());
  }

  OpenedCheckpoint run() {
    std::size_t in_vain = 0;
    for (TensorId tensor : from_.tensors()) {
      if (is_cancelled(progress_)) return cancelled_error();
      if (in_vain == kMaxInVain) return whole_;
      if (!is_candidate(from_, tensor, false)) continue;
      if (items_.read(*from_.chunks(tensor).begin())) return unwrap_all();
      ++in_vain;
    }
    return whole_;
  }

 private:
  OpenedCheckpoint unwrap_all() {
    for (TensorId tensor : from_.tensors()) {
      if (is_cancelled(progress_)) return cancelled_error();
      if (is_candidate(from_, tensor, true)) unwrap(tensor);
    }
    if (left_out_.empty()) return with_findings(whole_);
    out_.add_finding(wrapper_classes_finding());
    JoinedPart plain{whole_, "", "", left_out_}, wrapped{out_.finish(progress_), "", ""};
    auto joined = join_folders_as(kDcpWrappedFormat, from_.directory(), {plain, wrapped});
    // Joining fails on duplicate names; then only the tensors in .metadata are shown.
    return joined ? with_findings(*joined) : with_findings(whole_);
  }

  OpenedCheckpoint with_findings(std::shared_ptr<const Checkpoint> checkpoint) {
    for (Finding& finding : findings_)
      checkpoint = CheckpointBuilder::with_finding(*checkpoint, std::move(finding));
    return checkpoint;
  }

  void unwrap(TensorId tensor) {
    std::vector<ChunkId> chunks;
    for (ChunkId chunk : from_.chunks(tensor)) chunks.push_back(chunk);
    const auto cut = cut_dimension(from_, tensor, chunks);
    ItemsOfTensor items;
    for (ChunkId chunk : chunks) {
      auto item = cut && from_.replicas(chunk).empty() ? items_.read(chunk) : std::nullopt;
      if (!item || (!items.empty() && !have_equal_parts(items.front().second, *item))) return;
      if (item->stands_for && !same(*item->stands_for, from_.sizes(chunk)))
        return report_subclass_sizes(tensor, chunk, *item->stands_for);
      if (item->damage) report_item_damage(tensor, *item->damage);
      items.emplace_back(chunk, std::move(*item));
    }
    std::vector<WrappedRows> rows;
    for (std::size_t part = 0; part < items.front().second.parts.size(); ++part) {
      auto placed = place(items, part, from_.shape(tensor).size(), *cut);
      if (!placed) return;
      rows.push_back(std::move(*placed));
    }
    for (WrappedRows& one : rows) add(tensor, one);
    left_out_.insert(tensor);
    types_.insert(items.front().second.type);
    wrapped_ += rows.size();
  }

  // Places each item's part along the dimension that the ranks split; a table gets the same box
  // from all.
  std::optional<WrappedRows> place(const ItemsOfTensor& items, std::size_t part, std::size_t ndim,
                                   std::size_t cut) {
    WrappedRows rows;
    const WrappedPart& first = items.front().second.parts[part];
    rows.shape = first.header.sizes;
    for (const auto& [chunk, item] : items)
      rows.boxes.push_back({chunk, whole(item.parts[part].header.sizes), &item.parts[part]});
    if (items.size() == 1) return rows;
    const std::size_t own = first.header.sizes.size();
    if (is_part_equal_on_all_ranks(items, part, own == 0)) {
      for (std::size_t i = 1; i < rows.boxes.size(); ++i) rows.boxes[i].is_copy = true;
      return rows;
    }
    if (own <= cut || (own != ndim && cut != 0)) return std::nullopt;
    std::int64_t end = 0;
    for (WrappedBox& placed : rows.boxes) {
      for (std::size_t d = 0; d < own; ++d) {
        if (d != cut && placed.box.sizes[d] != rows.shape[d]) return std::nullopt;
      }
      placed.box.offsets[cut] = end;
      if (__builtin_add_overflow(end, placed.box.sizes[cut], &end)) return std::nullopt;
    }
    rows.shape[cut] = end;
    return rows;
  }

  // True if the bytes are equal on all ranks. Constant bytes do not count, because all-zero scales
  // are equal too.
  bool is_part_equal_on_all_ranks(const ItemsOfTensor& items, std::size_t part,
                                  bool may_be_constant) {
    std::optional<Bytes> first;
    for (const auto& [chunk, item] : items) {
      auto bytes = items_.elements(chunk, item.parts[part], kMaxTable);
      if (!bytes || (first && *bytes != *first)) return false;
      first = std::move(bytes);
    }
    return may_be_constant || std::any_of(first->begin(), first->end(),
                                          [&](std::byte byte) { return byte != first->front(); });
  }

  void add(TensorId tensor, const WrappedRows& rows) {
    const WrappedPart& first = *rows.boxes.front().part;
    const TensorId added = out_.add_tensor(std::string(from_.fqn(tensor)) + "." + first.name,
                                           first.header.dtype, rows.shape, first.requires_grad);
    if (const auto path = from_.path(tensor); !path.empty()) {
      std::vector<PathPart> own(path.begin(), path.end());
      own.emplace_back(first.name);
      out_.set_path(added, std::move(own));
    }
    ChunkId chunk{};
    for (const WrappedBox& placed : rows.boxes) {
      const StorageId storage = storage_of(placed);
      const auto writer = from_.writer(placed.chunk);
      if (placed.is_copy) {
        out_.add_replica({chunk, storage, writer});
        continue;
      }
      const ItemHeader& header = placed.part->header;
      chunk = out_.add_chunk(placed.box.offsets, placed.box.sizes, {});
      const bool is_row_major_view = is_row_major(header.sizes, header.strides);
      out_.set_view(chunk, storage, header.storage_offset,
                    is_row_major_view ? ExtentsView{} : ExtentsView(header.strides));
      if (writer) out_.set_writer(chunk, *writer);
    }
  }

  StorageId storage_of(const WrappedBox& placed) {
    const ItemHeader& header = placed.part->header;
    const FileId file = from_.item(placed.chunk)->file;
    auto [found, is_new] = storages_.try_emplace({file, header.payload_offset});
    if (is_new)
      found->second = out_.add_storage(
          {out_.file(from_.file(file).path), static_cast<std::int64_t>(header.payload_offset),
           static_cast<std::int64_t>(header.payload_length)},
          header.big_endian ? &kZipRecordBigCodec : &kZipRecordCodec);
    return found->second;
  }

  void report_subclass_sizes(TensorId tensor, ChunkId chunk, const Extents& told) {
    const std::string fqn(from_.fqn(tensor));
    const ItemPlace place = *from_.item(chunk);
    Finding finding = bad_record_finding(
        fqn,
        fmt::format(
            "The item of {} at byte {} of {} holds a tensor subclass of sizes {}, and the metadata "
            "records {}. The record points to the wrong item, or the item was replaced.",
            fqn, human_count(static_cast<std::uint64_t>(place.offset)), from_.file(place.file).path,
            to_text(told), to_text(from_.sizes(chunk))),
        static_cast<std::uint64_t>(place.offset));
    findings_.push_back(std::move(finding));
  }

  void report_item_damage(TensorId tensor, const Error& damage) {
    const std::string fqn(from_.fqn(tensor));
    findings_.push_back(bad_record_finding(
        fqn, fmt::format("In the item of {} in {}: {}.", fqn, damage.place.file, damage.message),
        damage.place.offset));
  }

  Finding wrapper_classes_finding() const {
    const std::vector<std::string> names(types_.begin(), types_.end());
    Finding finding = bad_record_finding(
        std::string(kDcpMetadataName),
        fmt::format("{} of the class {} {} read as the tensors that {} ({} in all). The class is "
                    "not imported, and its other attributes are not read.",
                    plural(left_out_.size(), "tensor"), short_list_text(names),
                    left_out_.size() == 1 ? "is" : "are",
                    left_out_.size() == 1 ? "it wraps" : "they wrap", wrapped_));
    finding.severity = Severity::kInfo;
    finding.evidence = {{"classes", names},
                        {"tensors", static_cast<std::int64_t>(left_out_.size())},
                        {"wrapped", static_cast<std::int64_t>(wrapped_)}};
    return finding;
  }

  std::shared_ptr<const Checkpoint> whole_;
  const Checkpoint& from_;
  WrappedItems items_;
  Progress* progress_;
  CheckpointBuilder out_;
  std::map<std::pair<FileId, std::uint64_t>, StorageId> storages_;
  std::set<TensorId> left_out_;
  std::set<std::string> types_;
  std::size_t wrapped_ = 0;
  std::vector<Finding> findings_;
};

}  // namespace

OpenedCheckpoint with_wrapped_tensors(std::shared_ptr<const Checkpoint> checkpoint,
                                      Progress* progress) {
  return SubclassUnwrapper(std::move(checkpoint), progress).run();
}

std::vector<TensorClass> classes_in_items(const Checkpoint& checkpoint) {
  std::vector<TensorClass> classes;
  if (&checkpoint.format() != &kDcpWrappedFormat || checkpoint.directory() == nullptr)
    return classes;
  auto recorded = read_dcp(checkpoint.directory(), nullptr);
  if (!recorded) return classes;
  const Checkpoint& c = **recorded;
  WrappedItems items(c);
  for (TensorId tensor : c.tensors()) {
    const std::string fqn(c.fqn(tensor));
    if (checkpoint.find(fqn) || !is_candidate(c, tensor, true)) continue;
    const auto item = items.read(*c.chunks(tensor).begin());
    if (!item) continue;
    TensorClass found{fqn, class_without_module(item->type), copy_of(c.shape(tensor))};
    for (const WrappedPart& part : item->parts) found.parts.push_back(fqn + "." + part.name);
    classes.push_back(std::move(found));
  }
  return classes;
}

}  // namespace shw

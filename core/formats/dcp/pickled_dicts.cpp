#include "core/formats/dcp/pickled_dicts.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/base/words.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/how_read_finding.h"
#include "core/formats/common/record_reader.h"
#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/dcp/dcp_names.h"
#include "core/formats/joined_folders.h"
#include "core/formats/open_nested.h"
#include "core/formats/single_file_directory.h"
#include "core/model/builder.h"

namespace shw {
namespace {

// Number of inspected entries without tensors, longest first, after which the search ends.
constexpr std::size_t kMaxEntriesInVain = 32;

// Presents one item of a data file as the only file of a directory.
class ItemDirectory final : public Directory {
 public:
  ItemDirectory(std::shared_ptr<const Directory> around, std::string file, ItemPlace place,
                std::string shown)
      : around_(std::move(around)),
        file_(std::move(file)),
        place_(place),
        shown_(std::move(shown)) {}
  const std::string& name() const override { return around_->name(); }
  Result<std::vector<Entry>> list(std::size_t) const override {
    return std::vector<Entry>{stat(shown_)};
  }
  Entry stat(const std::string& path) const override {
    Entry entry = path == shown_ ? around_->stat(file_) : Entry{path};
    entry.path = path;
    if (path == shown_) entry.size = static_cast<std::uint64_t>(place_.length);
    return entry;
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string&) const override {
    SHW_TRY(auto source, around_->open(file_));
    const auto begin = static_cast<std::uint64_t>(place_.offset);
    const auto length = static_cast<std::uint64_t>(place_.length);
    if (begin > source->size() || length > source->size() - begin)
      return fail(ErrorKind::kDamaged, "ends before an item that .metadata places there", {file_});
    return window(std::move(source), begin, length);
  }

 private:
  const std::shared_ptr<const Directory> around_;
  const std::string file_;
  const ItemPlace place_;
  const std::string shown_;
};

// "__0_0.distcp (model)", for messages. Not a name of a DCP data file, because readers would look
// for its .metadata.
std::string shown_name(std::string_view file, std::string fqn) {
  std::ranges::replace(fqn, '/', '.');
  return fmt::format("{} ({})", file.substr(file.rfind('/') + 1), fqn);
}

bool can_be_pickled_dict(const Checkpoint& checkpoint, std::size_t index) {
  const NonTensorEntry& object = checkpoint.objects()[index];
  // A dict that torch flattened has a path for each leaf, so an entry with a path is not a dict.
  return object.item && object.item->file != FileId::kNone && object.item->offset >= 0 &&
         object.item->length > 0 && object.transforms.empty() && object.of_other_ranks.empty() &&
         checkpoint.object_path(index).empty();
}

std::vector<std::size_t> longest_entries_first(const Checkpoint& checkpoint) {
  std::vector<std::size_t> entries;
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i) {
    if (can_be_pickled_dict(checkpoint, i)) entries.push_back(i);
  }
  std::ranges::stable_sort(entries, std::greater{},
                           [&](std::size_t i) { return checkpoint.objects()[i].item->length; });
  return entries;
}

class PickledDicts {
 public:
  PickledDicts(std::shared_ptr<const Checkpoint> checkpoint, Progress* progress)
      : whole_(std::move(checkpoint)), from_(*whole_), progress_(progress) {
    out_.set_format(kDcpPickledFormat);
    out_.set_directory(from_.directory());
  }

  OpenedCheckpoint run() {
    std::size_t in_vain = 0;
    for (std::size_t index : longest_entries_first(from_)) {
      if (is_cancelled(progress_)) return cancelled_error();
      if (in_vain == kMaxEntriesInVain) break;
      const auto inside = open_entry(index);
      if (inside == nullptr || inside->tensor_count() == 0) {
        ++in_vain;
        continue;
      }
      add(index, *inside);
    }
    if (taken_.empty()) return whole_;
    out_.add_finding(dicts_finding());
    const JoinedPart rest{whole_, "", "", {}, taken_}, dicts{out_.finish(progress_), "", ""};
    auto joined = join_folders_as(kDcpPickledFormat, from_.directory(), {rest, dicts});
    // Joining fails on duplicate names; then only the tensors in .metadata are shown.
    return joined ? *joined : whole_;
  }

 private:
  // Returns null if the item is not a readable torch.save file.
  std::shared_ptr<const Checkpoint> open_entry(std::size_t index) const {
    const ItemPlace place = *from_.objects()[index].item;
    const std::string& file = from_.file(place.file).path;
    const std::string shown = shown_name(file, from_.objects()[index].fqn);
    auto item = std::make_shared<ItemDirectory>(from_.directory(), file, place, shown);
    auto opened =
        open_nested(std::make_shared<SingleFileDirectory>(std::move(item), shown), progress_);
    return opened ? *opened : nullptr;
  }

  void add(std::size_t index, const Checkpoint& inside) {
    storages_.clear();
    const NonTensorEntry& entry = from_.objects()[index];
    for (TensorId tensor : inside.tensors()) add_tensor(entry, inside, tensor);
    for (std::size_t i = 0; i < inside.objects().size(); ++i) {
      NonTensorEntry object = inside.objects()[i];
      object.fqn = entry.fqn + "." + object.fqn;
      out_.add_object(std::move(object), path_under_entry(entry, inside.object_path(i)));
    }
    for (Finding finding : inside.opening_findings()) {
      shift_offset(finding, entry.item->offset);
      out_.add_finding(std::move(finding));
    }
    taken_.insert(index);
    names_.push_back(entry.fqn);
    tensors_ += inside.tensor_count();
  }

  static std::vector<PathPart> path_under_entry(const NonTensorEntry& entry,
                                                std::span<const PathPart> inner) {
    std::vector<PathPart> path{entry.fqn};
    path.insert(path.end(), inner.begin(), inner.end());
    return path;
  }

  static void shift_offset(Finding& finding, std::int64_t base) {
    for (auto& [key, value] : finding.evidence) {
      auto* offset = std::get_if<std::int64_t>(&value);
      if (key == "offset" && offset != nullptr) *offset += base;
    }
  }

  void add_tensor(const NonTensorEntry& entry, const Checkpoint& inside, TensorId tensor) {
    const TensorId added =
        out_.add_tensor(entry.fqn + "." + std::string(inside.fqn(tensor)), inside.dtype(tensor),
                        inside.shape(tensor), inside.requires_grad(tensor));
    out_.set_path(added, path_under_entry(entry, inside.path(tensor)));
    for (ChunkId chunk : inside.chunks(tensor)) {
      const ChunkId copy = out_.add_chunk(inside.offsets(chunk), inside.sizes(chunk), {});
      if (!inside.item(chunk)) continue;
      const auto view = inside.view(chunk);
      out_.set_view(copy, storage_of(entry, inside, inside.storage(chunk)), view ? view->offset : 0,
                    view ? view->strides : ExtentsView{});
      if (const auto writer = rank_in_distcp_name(from_.file(entry.item->file).path))
        out_.set_writer(copy, *writer);
    }
  }

  StorageId storage_of(const NonTensorEntry& entry, const Checkpoint& inside, StorageId storage) {
    auto [found, is_new] = storages_.try_emplace(storage);
    if (!is_new) return found->second;
    ItemPlace place = inside.place(storage);
    place.file = out_.file(from_.file(entry.item->file).path);
    place.offset += entry.item->offset;
    const bool is_turned = inside.codec(storage).name.ends_with("big-endian");
    found->second = out_.add_storage(place, is_turned ? &kZipRecordBigCodec : &kZipRecordCodec);
    return found->second;
  }

  Finding dicts_finding() const {
    Finding finding = how_read_finding(
        std::string(kDcpMetadataName),
        fmt::format("{} {} pickled as a whole, as with flatten_state_dict=False: .metadata names "
                    "none of the {} in {}. They were read from the pickles. A load also needs a "
                    "planner that does not flatten, and reads {} completely on every rank.",
                    short_list_text(names_), names_.size() == 1 ? "is a dict" : "are dicts",
                    plural(tensors_, "tensor"), names_.size() == 1 ? "it" : "them",
                    names_.size() == 1 ? "it" : "each"));
    finding.evidence = {{"entries", names_}, {"tensors", static_cast<std::int64_t>(tensors_)}};
    return finding;
  }

  std::shared_ptr<const Checkpoint> whole_;
  const Checkpoint& from_;
  Progress* progress_;
  CheckpointBuilder out_;
  std::map<StorageId, StorageId> storages_;
  std::set<std::size_t> taken_;
  std::vector<std::string> names_;
  std::size_t tensors_ = 0;
};

}  // namespace

OpenedCheckpoint with_pickled_tensors(std::shared_ptr<const Checkpoint> checkpoint,
                                      Progress* progress) {
  if (checkpoint->directory() == nullptr) return checkpoint;
  return PickledDicts(std::move(checkpoint), progress).run();
}

}  // namespace shw

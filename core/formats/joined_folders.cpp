#include "core/formats/joined_folders.h"

#include <fmt/core.h>

#include <map>
#include <set>

#include "core/formats/common/codecs.h"
#include "core/model/builder.h"

namespace shw {
namespace {

// By JoinedFrom, without and with non-tensor entries that are items of torch.save.
constexpr Format kJoined[][2] = {
    {{.name = "folders", .title = "folder of parts", .codec = &kRawCodec},
     {.name = "folders", .title = "folder of parts", .codec = &kTorchZipCodec}},
    {{.name = "computed", .title = "computed checkpoint", .codec = &kRawCodec},
     {.name = "computed", .title = "computed checkpoint", .codec = &kTorchZipCodec}}};

class FolderJoin {
 public:
  FolderJoin(std::shared_ptr<const Directory> around, const Format& format) : format_(format) {
    builder_.set_format(format);
    builder_.set_directory(std::move(around));
  }

  Status add(const JoinedPart& part) {
    storages_.clear();
    const Checkpoint& checkpoint = *part.checkpoint;
    for (TensorId tensor : checkpoint.tensors()) {
      if (!part.left_out.contains(tensor)) SHW_CHECK(add_tensor(part, tensor));
    }
    for (std::size_t i = 0; i < checkpoint.objects().size(); ++i) {
      if (!part.left_out_objects.contains(i)) SHW_CHECK(add_object(part, i));
    }
    for (const auto& [name, opcodes] : part.added_entries) {
      SHW_CHECK(claim_name(part, name.fqn));
      builder_.add_object({.fqn = name.fqn, .item = {}, .inlined = InlinedValue{opcodes, {}}},
                          name.path);
    }
    for (UnclaimedStorageRecord unclaimed : checkpoint.unclaimed_records()) {
      unclaimed.fqn = part.prefix + unclaimed.fqn;
      unclaimed.item = placed(part, unclaimed.item);
      builder_.add_unclaimed_record(std::move(unclaimed));
    }
    for (const Finding& finding : checkpoint.opening_findings())
      builder_.add_finding(placed(part, finding));
    return {};
  }

  void set_provenance(Provenance provenance) { builder_.set_provenance(std::move(provenance)); }

  std::shared_ptr<const Checkpoint> finish() { return builder_.finish(); }

 private:
  // The subjects of a part's finding by their names in the whole, and the folder in its cause.
  static Finding placed(const JoinedPart& part, Finding finding) {
    for (std::string& subject : finding.subjects) {
      if (part.checkpoint->find(subject)) subject = name_in_whole(part, subject).fqn;
    }
    if (!part.folder.empty()) finding.cause = fmt::format("In {}: {}", part.folder, finding.cause);
    return finding;
  }

  static NewEntryName name_in_whole(const JoinedPart& part, std::string_view own) {
    const auto found = part.new_names.find(own);
    return found == part.new_names.end() ? NewEntryName{part.prefix + std::string(own)}
                                         : found->second;
  }

  ItemPlace placed(const JoinedPart& part, ItemPlace place) {
    if (place.file == FileId::kNone) return place;
    const std::string& path = part.checkpoint->file(place.file).path;
    place.file = builder_.file(part.folder.empty() ? path : part.folder + "/" + path);
    return place;
  }

  Status claim_name(const JoinedPart& part, const std::string& fqn) {
    if (names_.insert(fqn).second) return {};
    return fail(ErrorKind::kUnsupported,
                "occurs in two parts of this folder, so they are not one model",
                Place{.file = part.folder, .tensor = fqn}, "Give the path of one of the folders.");
  }

  StorageId storage_of(const JoinedPart& part, StorageId storage) {
    auto known = storages_.find(storage);
    if (known != storages_.end()) return known->second;
    const Checkpoint& from = *part.checkpoint;
    auto own = from.transforms(storage);
    const StorageId added = builder_.add_storage(placed(part, from.place(storage)),
                                                 &from.codec(storage), {own.begin(), own.end()});
    return storages_.emplace(storage, added).first->second;
  }

  Status add_tensor(const JoinedPart& part, TensorId tensor) {
    const Checkpoint& from = *part.checkpoint;
    NewEntryName name = name_in_whole(part, from.fqn(tensor));
    SHW_CHECK(claim_name(part, name.fqn));
    const TensorId added = builder_.add_tensor(name.fqn, from.dtype(tensor), from.shape(tensor),
                                               from.requires_grad(tensor));
    const auto path = from.path(tensor);
    if (name.fqn == from.fqn(tensor)) name.path.assign(path.begin(), path.end());
    if (!name.path.empty()) builder_.set_path(added, std::move(name.path));
    for (ChunkId chunk : from.chunks(tensor)) {
      const ChunkId copy = builder_.add_chunk(from.offsets(chunk), from.sizes(chunk), {});
      if (from.item(chunk)) place_chunk(part, chunk, copy);
      if (auto writer = from.writer(chunk)) builder_.set_writer(copy, *writer);
      for (const Replica& replica : from.replicas(chunk))
        builder_.add_replica({copy, storage_of(part, replica.storage), replica.writer});
    }
    return {};
  }

  void place_chunk(const JoinedPart& part, ChunkId chunk, ChunkId copy) {
    const Checkpoint& from = *part.checkpoint;
    const auto view = from.view(chunk);
    if (view || &from.codec(chunk) != format_.codec) {
      builder_.set_view(copy, storage_of(part, from.storage(chunk)), view ? view->offset : 0,
                        view ? view->strides : ExtentsView{});
      return;
    }
    // Only a few chunks share an item, so each stores its own copy of the place.
    builder_.set_item(copy, placed(part, *from.item(chunk)));
    if (auto own = from.transforms(chunk); !own.empty())
      builder_.set_transforms(copy, {own.begin(), own.end()});
  }

  Status add_object(const JoinedPart& part, std::size_t index) {
    NonTensorEntry object = part.checkpoint->objects()[index];
    NewEntryName name = name_in_whole(part, object.fqn);
    SHW_CHECK(claim_name(part, name.fqn));
    const bool is_renamed = name.fqn != object.fqn;
    object.fqn = name.fqn;
    if (object.item) object.item = placed(part, *object.item);
    for (ItemPlace& item : object.of_other_ranks) item = placed(part, item);
    auto path = part.checkpoint->object_path(index);
    if (!is_renamed) name.path.assign(path.begin(), path.end());
    builder_.add_object(std::move(object), std::move(name.path));
    return {};
  }

  const Format& format_;
  CheckpointBuilder builder_;
  std::map<StorageId, StorageId> storages_;
  std::set<std::string> names_;
};

}  // namespace

OpenedCheckpoint join_folders(std::shared_ptr<const Directory> around,
                              const std::vector<JoinedPart>& parts, JoinedFrom from) {
  bool has_items = false;
  for (const JoinedPart& part : parts)
    has_items = has_items || part.checkpoint->format().codec == &kTorchZipCodec;
  FolderJoin join(std::move(around), kJoined[static_cast<std::size_t>(from)][has_items ? 1 : 0]);
  for (const JoinedPart& part : parts) SHW_CHECK(join.add(part));
  return join.finish();
}

OpenedCheckpoint join_folders_as(const Format& format, std::shared_ptr<const Directory> around,
                                 const std::vector<JoinedPart>& parts) {
  FolderJoin join(std::move(around), format);
  for (const JoinedPart& part : parts) SHW_CHECK(join.add(part));
  if (!parts.empty()) join.set_provenance(parts.front().checkpoint->provenance());
  return join.finish();
}

}  // namespace shw

#include "core/formats/torch_file/torch_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/carried_pickle.h"
#include "core/formats/common/filled_attribute.h"
#include "core/formats/common/index_checks.h"
#include "core/formats/common/part_names.h"
#include "core/formats/common/torch_file_records.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/joined_folders.h"
#include "core/formats/pickle/pickle_safety.h"
#include "core/formats/pickle/plain_pickle.h"
#include "core/formats/single_file_directory.h"
#include "core/formats/torch_file/module_findings.h"
#include "core/formats/torch_file/open_state.h"
#include "core/formats/torch_file/partial_tensors.h"
#include "core/formats/torch_file/state_dict.h"
#include "core/formats/torch_file/storage_places.h"
#include "core/formats/torch_file/torch_file_choice.h"
#include "core/formats/torch_file/torch_file_formats.h"
#include "core/formats/torch_file/torch_index.h"
#include "core/formats/torch_file/torch_record.h"
#include "core/formats/torch_file/torch_several.h"
#include "core/model/builder.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::size_t kMaxFindings = 32;

struct StateTensor {
  StateEntry entry;
  PickledTensor pickled;
  std::optional<ItemHeader> header;        // nullopt: the storage differs from its description
  std::optional<PartialTensor> part = {};  // for a DTensor that is only a part
};

class TorchFileReader {
 public:
  // `named`: tensor names in the index.
  TorchFileReader(CheckpointBuilder& builder, std::string path, const OpenedState& state,
                  bool big_endian, const std::set<std::string>& named)
      : builder_(builder),
        named_(named),
        path_(std::move(path)),
        state_(state),
        zip_(state.zip),
        tree_(state.tree),
        codec_(big_endian ? &kTorchRecordBigCodec : nullptr),
        // Limits the total size of plain values: a pickle may refer to one value a thousand times,
        // and each reference is expanded.
        plain_left_(16 * state.tree.end() + (1 << 20)) {}

  // Adds everything to the builder, except entries in `taken`, which earlier files had.
  Status read(std::set<std::string>& taken, Provenance& provenance, Progress* progress) {
    file_ = builder_.file(path_);
    SHW_TRY(std::vector<StateEntry> entries, entries_of(state_, path_));
    if (progress != nullptr) progress->begin(Phase::kOpening, entries.size(), false);
    for (StateEntry& entry : entries) {
      if (is_cancelled(progress)) return cancelled_error();
      if (taken.insert(entry.fqn).second)
        take(std::move(entry));
      else
        repeated_.push_back(entry.fqn);
      if (progress != nullptr) progress->add(1);
    }
    for (StateTensor& tensor : tensors_) add_tensor(std::move(tensor));
    for (Finding& finding : module_findings(tree_, modules_, path_))
      builder_.add_finding(std::move(finding));
    if (auto finding = subclass_finding(tree_, subclasses_, path_))
      builder_.add_finding(std::move(*finding));
    SHW_CHECK(read_provenance(provenance));
    if (state_.kind != StateKind::kConstants) {
      const bool is_program = state_.kind == StateKind::kProgram;
      for (Finding& finding : record_findings(zip_, path_, is_program))
        builder_.add_finding(std::move(finding));
    }
    for (Finding& finding : unsafe_pickle_findings(tree_, path_, PickleFileContent::kPrograms))
      builder_.add_finding(std::move(finding));
    for (Finding& finding : storage_device_findings(tree_, path_))
      builder_.add_finding(std::move(finding));
    if (tree_.refused()) {
      Finding finding{.rule = "bad-record", .subjects = {path_}};
      finding.cause = fmt::format("Python cannot load {}: {} at byte {}.", path_,
                                  tree_.refused()->what, human_count(tree_.refused()->at));
      builder_.add_finding(std::move(finding));
    }
    if (unreadable_.empty()) {
      // torch.load creates every storage that the pickle names, even if no tensor uses it.
      if (auto all = check_storages(zip_, tree_); !all)
        builder_.add_finding(bad_record_finding(path_,
                                                "In " + path_ + ": " + all.error().message + ".",
                                                all.error().place.offset.value_or(0)));
    }
    add_unreadable();
    if (auto finding = parts_.finding(path_)) builder_.add_finding(std::move(*finding));
    report_unloadable_tensors();
    add_untyped();
    add_repeated();
    return {};
  }

  // Names and their bytes in the file; bytes of tied tensors count for the first name.
  IndexedFile release_indexed() { return std::move(indexed_); }

 private:
  // Adds an object at once; tensors are collected until it is known which of them share storages.
  void take(StateEntry entry) {
    if (entry.module != NodeId::kAbsent) ++modules_[entry.module];
    if (entry.subclass != NodeId::kAbsent) ++subclasses_[entry.subclass];
    if (!is_tensor_call(tree_, entry.value)) return add_object(std::move(entry));
    const NodeId local = local_tensor_of_dtensor(tree_, entry.value);
    const bool is_dtensor = local != NodeId::kAbsent;
    auto pickled = pickled_tensor(tree_, is_dtensor ? local : entry.value, path_);
    std::optional<PartialTensor> part;
    if (is_dtensor && pickled) {
      part = partial_tensor_of(dtensor_sharding(tree_, zip_, entry.value, codec_ != nullptr),
                               pickled->sizes);
      if (part && !part->is_placed) parts_.add(entry.fqn, *part);
      if (!part || !part->is_placed)
        pickled = fail(ErrorKind::kUnsupported,
                       "is a DTensor whose mesh and placements do not give a single box",
                       {path_, tree_.at(entry.value)});
    }
    if (pickled && (pickled->conjugate || pickled->negative))
      pickled = fail(ErrorKind::kUnsupported,
                     "is saved as the conjugate or negative of its bytes, which is not supported "
                     "in a torch.save file",
                     {path_, tree_.at(entry.value)});
    if (!pickled) return add_unread_tensor(std::move(entry), std::move(pickled).error());
    if (pickled->fails_in_torch_load) stopping_.push_back(entry.fqn);
    if (pickled->is_untyped && zip_.is_bare()) untyped_.push_back(entry.fqn);
    StateTensor tensor{std::move(entry), std::move(*pickled), std::nullopt, std::move(part)};
    auto header = storage_of(tensor.pickled);
    if (header) {
      tensor.header = std::move(*header);
      ++uses_[tensor.pickled.storage_key];
    } else {
      note(tensor.entry.fqn, std::move(header).error());
    }
    tensors_.push_back(std::move(tensor));
  }

  Result<ItemHeader> storage_of(const PickledTensor& pickled) const {
    SHW_TRY(ItemHeader header, header_of(zip_, pickled, codec_ != nullptr));
    if (zip_.find_storage(pickled.storage_key)->deflated)
      return fail(ErrorKind::kUnsupported,
                  "is in a compressed record, which torch.save never writes: the file was zipped "
                  "again. torch.load decompresses it, but with mmap=True reads the compressed "
                  "bytes as numbers; torch.save(torch.load(FILE), NEW) restores it",
                  {path_, header.payload_offset});
    return header;
  }

  // The index names keys of the top-level dict: in an optimizer that ColossalAI split, "0" covers
  // all entries below it.
  void add_indexed(const StateEntry& entry, std::uint64_t bytes) {
    const std::string* name = &entry.fqn;
    if (entry.path.size() > 1 && !named_.contains(entry.fqn)) {
      const auto* top = std::get_if<std::string>(&entry.path.front());
      if (top != nullptr && named_.contains(*top)) name = top;
    }
    auto [place, is_new] = place_in_index_.try_emplace(*name, indexed_.tensors.size());
    if (is_new)
      indexed_.tensors.emplace_back(*name, bytes);
    else
      indexed_.tensors[place->second].second += bytes;
  }

  void add_object(StateEntry entry) {
    add_indexed(entry, 0);
    InlinedValue value;
    const bool is_empty = is_empty_mapping(tree_, entry.value);
    value.is_all = is_empty ? tree_.kind(entry.value) == NodeKind::kDict
                            : !contains_repeated_object(tree_, entry.value);
    auto opcodes = is_empty
                       ? std::optional<std::string>("}(u")  // as plain_pickle() says it of an item
                       : plain_pickle(tree_, entry.value, plain_left_);
    if (opcodes) {
      plain_left_ -= opcodes->size();
      value.opcodes = std::move(*opcodes);
    } else {
      value.not_plain = non_plain_value_reason(tree_, entry.value);
    }
    builder_.add_object({.fqn = std::move(entry.fqn), .item = {}, .inlined = std::move(value)},
                        std::move(entry.path));
  }

  // Adds an unreadable tensor by name, so that listings show it and conversions stop at it.
  void add_unread_tensor(StateEntry entry, Error error) {
    add_indexed(entry, 0);
    InlinedValue value{{}, "a tensor that " + error.message};
    note(entry.fqn, std::move(error));
    builder_.add_object({.fqn = std::move(entry.fqn), .item = {}, .inlined = std::move(value)},
                        std::move(entry.path));
  }

  void add_tensor(StateTensor tensor) {
    const PickledTensor& pickled = tensor.pickled;
    const bool is_first = counted_.insert(pickled.storage_key).second;
    const auto elements = static_cast<std::uint64_t>(volume(pickled.sizes).value_or(0));
    add_indexed(tensor.entry, is_first ? elements * size_of(pickled.dtype) : 0);
    Box box = whole(pickled.sizes);
    if (tensor.part) {
      box = tensor.part->box;
      parts_.add(tensor.entry.fqn, *tensor.part);
    }
    TensorId id = builder_.add_tensor(
        std::move(tensor.entry.fqn), pickled.dtype,
        tensor.part ? tensor.part->sharding.global_shape : pickled.sizes, pickled.requires_grad);
    builder_.set_path(id, std::move(tensor.entry.path));
    ChunkId chunk = builder_.add_chunk(box.offsets, box.sizes, {});
    if (!tensor.header) return;
    const ItemHeader& header = *tensor.header;
    ItemPlace place{file_, static_cast<std::int64_t>(header.payload_offset),
                    static_cast<std::int64_t>(header.payload_length)};
    auto bytes = volume(header.sizes);
    bool is_all =
        header.storage_offset == 0 && is_row_major(header.sizes, header.strides) && bytes &&
        static_cast<std::uint64_t>(*bytes) * size_of(header.dtype) == header.payload_length;
    if (is_all && codec_ == nullptr && uses_[pickled.storage_key] == 1) {
      builder_.set_item(chunk, place);
      return;
    }
    auto known = storages_.find(pickled.storage_key);
    if (known == storages_.end())
      known = storages_.emplace(pickled.storage_key, builder_.add_storage(place, codec_)).first;
    bool dense = is_row_major(header.sizes, header.strides);
    builder_.set_view(chunk, known->second, header.storage_offset,
                      dense ? ExtentsView{} : ExtentsView(header.strides));
  }

  void note(const std::string& fqn, Error error) {
    auto& [first, names] = unreadable_[{error.kind, error.message}];
    if (names.empty()) first = std::move(error);
    names.push_back(fqn);
  }

  // Reports unreadable tensors, one finding per reason: damage as an error, unsupported data as an
  // info.
  void add_unreadable() {
    std::size_t added = 0;
    for (auto& [key, seen] : unreadable_) {
      auto& [error, names] = seen;
      bool damaged = error.kind == ErrorKind::kDamaged;
      Finding finding{.rule = std::string(damaged ? "bad-record" : "not-looked-at"),
                      .severity = damaged ? Severity::kError : Severity::kInfo};
      finding.cause =
          fmt::format("{} in {} cannot be read: {}.", short_list_text(names), path_, error.message);
      finding.evidence = {{"reason", error.message},
                          {"count", static_cast<std::int64_t>(names.size())}};
      if (error.place.offset)
        finding.evidence.emplace_back("offset", static_cast<std::int64_t>(*error.place.offset));
      finding.subjects = std::move(names);
      builder_.add_finding(std::move(finding));
      if (++added == kMaxFindings) return;
    }
  }

  // Reports tensors that torch.save writes but torch.load cannot create; their bytes are intact.
  void report_unloadable_tensors() {
    if (stopping_.empty()) return;
    Finding finding{.rule = "bad-record", .severity = Severity::kWarning};
    finding.cause = fmt::format(
        "torch.load fails at {} in {}: torch can save but not load a tensor that requires grad, is "
        "not a Parameter and has a dtype without a storage class. Its bytes are complete: "
        "`shardwright convert --to torch` writes a file that loads.",
        short_list_text(stopping_), path_);
    finding.evidence = {{"count", static_cast<std::int64_t>(stopping_.size())}};
    finding.subjects = std::move(stopping_);
    builder_.add_finding(std::move(finding));
  }

  // Reports untyped storages in the format before zip, which torch 2.15 itself writes and then
  // fails to load ('UntypedStorage' object has no attribute 'dtype').
  void add_untyped() {
    if (untyped_.empty()) return;
    Finding finding = bad_record_finding(
        path_, fmt::format("torch.load fails at {} in {}: torch can save but not load an untyped "
                           "storage in the format before torch 1.6. Its bytes are complete: "
                           "`shardwright convert --to torch` writes a file that loads.",
                           short_list_text(untyped_), path_));
    finding.severity = Severity::kWarning;
    finding.evidence = {{"count", static_cast<std::int64_t>(untyped_.size())}};
    finding.subjects = std::move(untyped_);
    builder_.add_finding(std::move(finding));
  }

  // Reports repeated names: loaders read one file after the other and keep the last value.
  void add_repeated() {
    if (repeated_.empty()) return;
    Finding finding = bad_record_finding(
        path_,
        fmt::format("{} in {} {} in an earlier file too: the first was read here, but a loader "
                    "that reads all files in order keeps the last.",
                    short_list_text(repeated_), path_, repeated_.size() == 1 ? "is" : "are"));
    finding.evidence = {{"count", static_cast<std::int64_t>(repeated_.size())}};
    finding.subjects = std::move(repeated_);
    builder_.add_finding(std::move(finding));
  }

  Status read_provenance(Provenance& seen) const {
    seen.pickle_protocol = tree_.protocol();
    SHW_TRY(auto filled, read_filled_record(zip_));
    if (filled) seen.plain_attributes.emplace_back(kFilledAttribute, pickled_text(*filled));
    return {};
  }

  CheckpointBuilder& builder_;
  const std::set<std::string>& named_;
  std::string path_;
  const OpenedState& state_;
  const ZipReader& zip_;
  const PickleTree& tree_;
  const Codec* codec_;  // null: the format's codec
  std::uint64_t plain_left_;
  FileId file_ = FileId::kNone;
  std::vector<StateTensor> tensors_;
  std::unordered_map<std::string, std::size_t> uses_;
  std::unordered_map<std::string, StorageId> storages_;
  std::map<std::pair<ErrorKind, std::string>, std::pair<Error, std::vector<std::string>>>
      unreadable_;
  std::map<NodeId, std::size_t> modules_;     // number of tensors, by pickled module
  std::map<NodeId, std::size_t> subclasses_;  // number of wrapped tensors, by call
  PartialTensors parts_;
  std::vector<std::string> stopping_;  // tensors with PickledTensor::fails_in_torch_load
  std::vector<std::string> untyped_, repeated_;
  IndexedFile indexed_{path_, {}};
  std::unordered_map<std::string, std::size_t> place_in_index_;
  std::set<std::string> counted_;  // storages already counted
};

// A file named by the user is opened whatever its name and contents are.
Result<std::string> find_torch_file(const Directory& directory) {
  const DirectoryContents look(directory);
  SHW_TRY(auto entries, look.entries());
  if (is_single_file_directory(directory) && !entries.empty()) return entries.front().path;
  SHW_TRY(auto found, torch_file_in(look));
  if (!found) return fail(ErrorKind::kIo, "holds no torch.save file", {directory.name()});
  return *found;
}

// The files to read, and the contents of their index.
struct TorchFiles {
  std::vector<std::string> paths;
  std::optional<TorchIndex> index = {};
  bool is_index_missing = false;  // several parts by name, without index
  std::optional<TorchFileGroup> several = {};
};

Result<TorchFiles> find_torch_files(const Directory& directory) {
  SHW_TRY(auto index, find_torch_index(directory));
  if (index && !index->files.empty()) {
    std::vector<std::string> files = index->files;
    return TorchFiles{std::move(files), std::move(index)};
  }
  if (!is_single_file_directory(directory)) {
    SHW_TRY(auto entries, directory.list());
    TorchParts parts = torch_parts_among(entries);
    if (!parts.files.empty() && parts.missing.empty())
      return TorchFiles{std::move(parts.files), {}, true};
  }
  const DirectoryContents look(directory);
  SHW_TRY(auto alone, torch_file_in(look));
  SHW_TRY(auto several, alone || is_single_file_directory(directory)
                            ? Result<std::optional<TorchFileGroup>>({})
                            : find_torch_file_group(look));
  if (several) {
    TorchFiles files{several->paths};
    files.several = std::move(several);
    return files;
  }
  SHW_TRY(std::string path, find_torch_file(directory));
  return TorchFiles{{std::move(path)}};
}

struct PartReadState {
  std::set<std::string> named = {};  // by the index
  std::set<std::string> taken = {};
  Provenance provenance = {};
  std::vector<IndexedFile> files = {};
  std::optional<Error> first_error = {};
};

Status read_part(CheckpointBuilder& builder, const Directory& directory, const std::string& path,
                 PartReadState& parts, Progress* progress) {
  SHW_TRY(OpenedState state, open_state(directory, path));
  SHW_TRY(bool big_endian, is_big_endian(state.zip));
  TorchFileReader reader(builder, path, state, big_endian, parts.named);
  SHW_CHECK(reader.read(parts.taken, parts.provenance, progress));
  parts.files.push_back(reader.release_indexed());
  if (state.kind != StateKind::kProgram) return {};
  SHW_TRY(OpenedState constants, open_constants(directory, path));
  return TorchFileReader(builder, path, constants, big_endian, parts.named)
      .read(parts.taken, parts.provenance, progress);
}

// Unsupported data, such as the format before torch 1.6, is reported as not checked instead of
// damage.
Finding unread_part_finding(const std::string& path, const Error& error) {
  Finding finding = bad_record_finding(
      path, "The file " + path + " cannot be read: " + error.message + ".", error.place.offset);
  if (error.kind != ErrorKind::kUnsupported) return finding;
  finding.rule = "not-looked-at";
  finding.severity = Severity::kInfo;
  return finding;
}

void add_index(CheckpointBuilder& builder, const Directory& directory, TorchIndex index,
               std::vector<IndexedFile> files) {
  if (index.map.empty()) {  // an unusable index
    for (const std::string& path : index.missing) builder.file(path);
    return builder.add_finding(std::move(*index.finding));
  }
  IndexedFiles indexed{index.path, index.map, std::move(files), index.total};
  indexed.not_there = std::move(index.not_there);
  indexed.is_ignored_by_transformers =
      is_ignored_by_transformers(directory, kTorchIndexNames, index.path);
  const MatchedIndex matched(std::move(indexed));
  check_index(builder, matched);
  report_tensors_not_in_index(builder, matched);
  if (matched.indexed.not_there.empty())
    report_ignored_index(builder, kTorchIndexNames, index.path, index.map, directory);
  check_index_as_transformers(builder, matched);
  if (index.finding) builder.add_finding(std::move(*index.finding));
}

OpenedCheckpoint open_prefixed(const std::shared_ptr<const Directory>& directory,
                               const TorchFileGroup& several, Progress* progress) {
  std::vector<JoinedPart> parts;
  for (const std::string& path : several.paths) {
    SHW_TRY(auto opened,
            open_torch_file(std::make_shared<SingleFileDirectory>(directory, path), progress));
    parts.push_back({std::move(opened), "", torch_stem(path) + "."});
  }
  SHW_TRY(auto joined, join_folders(directory, parts));
  return CheckpointBuilder::with_finding(*joined, torch_file_group_finding(several));
}

}  // namespace

OpenedCheckpoint open_torch_file(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(TorchFiles parts, find_torch_files(*directory));
  if (parts.several && parts.several->is_prefixed)
    return open_prefixed(directory, *parts.several, progress);
  CheckpointBuilder builder;
  builder.set_format(kTorchFileFormat);
  builder.set_directory(directory);
  PartReadState read;
  if (parts.index) {
    for (const auto& [fqn, file] : parts.index->map) read.named.insert(fqn);
  }
  for (const std::string& path : parts.paths) {
    Status status = read_part(builder, *directory, path, read, progress);
    if (is_cancelled(progress)) return cancelled_error();
    if (status) continue;
    Error& error = status.error();
    if (parts.paths.size() == 1 && !parts.index) return tl::unexpected<Error>(std::move(error));
    builder.file(path);
    builder.add_finding(unread_part_finding(path, error));
    if (!read.first_error) read.first_error = std::move(error);
  }
  if (read.files.empty() && read.first_error)
    return tl::unexpected<Error>(std::move(*read.first_error));
  builder.set_provenance(std::move(read.provenance));
  if (parts.is_index_missing)
    builder.add_finding(
        parts_without_index_finding(parts.paths, kTorchIndexNames, Severity::kWarning));
  if (parts.several) {
    builder.add_finding(torch_file_group_finding(*parts.several));
    if (auto gone = missing_numbered_files_finding(*parts.several))
      builder.add_finding(std::move(*gone));
  }
  if (parts.index) add_index(builder, *directory, std::move(*parts.index), std::move(read.files));
  return builder.finish();
}

}  // namespace shw

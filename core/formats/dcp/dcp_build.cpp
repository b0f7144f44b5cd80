#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "core/base/words.h"
#include "core/formats/dcp/dcp_notes.h"
#include "core/formats/dcp/dcp_properties.h"
#include "core/formats/dcp/dcp_provenance.h"
#include "core/formats/dcp/dcp_root.h"
#include "core/formats/dcp/dcp_rows.h"
#include "core/formats/dcp/dcp_write.h"
#include "core/formats/pickle/pickle_safety.h"

namespace shw {
namespace {

struct Target {
  enum class Kind : std::uint8_t { kNothing, kTensor, kObject } kind = Kind::kNothing;
  std::uint32_t index = 0;
};

class DcpMetadataInterpreter {
 public:
  DcpMetadataInterpreter(const PickleTree& tree, const DcpRows& rows, NameTable& names,
                         const std::string& file, std::uint64_t file_size,
                         CheckpointBuilder& builder, const Progress* progress)
      : tree_(tree),
        rows_(rows),
        names_(names),
        file_(file),
        file_size_(file_size),
        builder_(builder),
        progress_(progress),
        notes_(builder, file) {}

  Status run();

 private:
  Status read_entries(NodeId entries);
  bool is_unexpected_record(NodeId id, std::string_view expected) const;
  bool is_reconstructed(NodeId value) const;
  Status add_tensor(std::uint32_t name, NodeId value);
  Status add_chunks(NodeId chunks, std::string_view fqn);
  void read_paths(NodeId planner_data);
  void record_planner_only_entry(std::string_view fqn);
  void read_storage(NodeId storage_data);
  void report_plain_storage_meta(NodeId storage_meta);
  void assign_item_to_chunks(const DcpKeyRow& key, ItemPlace item, NodeId place, std::uint64_t at);
  void share_items_of_equal_offsets();

  std::optional<ExtentsHandle> extents_of(NodeId id);
  std::optional<DcpKeyRow> key_of(NodeId id);
  std::optional<ItemPlace> place_of(NodeId id);
  std::optional<std::vector<PathPart>> path_of(NodeId id);
  std::vector<std::string> transforms_of_place(NodeId place) const;
  std::optional<ChunkId> chunk_at(std::uint32_t tensor, ExtentsHandle offsets);
  Target target_of(std::uint32_t name) const {
    return name < targets_.size() ? targets_[name] : Target{};
  }

  const PickleTree& tree_;
  const DcpRows& rows_;
  NameTable& names_;
  const std::string& file_;
  std::uint64_t file_size_;
  CheckpointBuilder& builder_;
  const Progress* progress_;
  RecordFindings notes_;

  std::vector<Target> targets_;  // by name
  std::vector<NonTensorEntry> objects_;
  std::vector<std::vector<PathPart>> object_paths_;
  std::vector<std::string> only_in_planner_;
  Extents scratch_;
  // Chunks of a tensor by offset, built only for tensors whose hints are wrong.
  std::unordered_map<std::uint32_t, std::vector<std::pair<ExtentsHandle, ChunkId>>> by_offset_;
  std::uint64_t text_budget_ = 0;  // limits copies of long names that are referenced often
  std::uint64_t duplicates_ = 0, first_duplicate_ = 0;
  std::size_t arity_ = 0;  // number of fields of TensorProperties
  bool has_old_properties_ = false;
  std::string last_path_;
  FileId last_file_ = FileId::kNone;
};

Status DcpMetadataInterpreter::run() {
  NodeId root = tree_.root();
  const Result<NodeId> entries = entries_of_metadata(tree_, file_);
  if (!entries) {
    // If the pickle only contains unsafe calls, the finding that names them is more useful than an
    // error.
    auto traps = unsafe_pickle_findings(tree_, file_);
    if (tree_.kind(root) != NodeKind::kReduce || traps.empty())
      return tl::unexpected<Error>(entries.error());
    for (Finding& trap : traps) builder_.add_finding(std::move(trap));
    return {};
  }
  text_budget_ = 16 * file_size_ + 65536;
  SHW_CHECK(read_entries(*entries));
  read_paths(tree_.attribute(root, "planner_data"));
  read_storage(tree_.attribute(root, "storage_data"));
  report_plain_storage_meta(tree_.attribute(root, "storage_meta"));
  if (is_cancelled(progress_)) return cancelled_error();
  share_items_of_equal_offsets();
  for (std::size_t i = 0; i < objects_.size(); ++i)
    builder_.add_object(std::move(objects_[i]), std::move(object_paths_[i]));
  Provenance provenance =
      provenance_of(tree_, file_size_, static_cast<int>(std::min<std::size_t>(arity_, 1000)),
                    has_old_properties_);
  provenance.only_in_planner = std::move(only_in_planner_);
  builder_.set_provenance(std::move(provenance));
  if (duplicates_ > 0)
    notes_.add(Severity::kWarning, {}, first_duplicate_,
               human_count(duplicates_) + " keys are recorded twice; the later record counts.");
  if (tree_.end() < file_size_)
    // Python stops where the pickle ends.
    notes_.add(Severity::kInfo, {}, tree_.end(),
               human_count(file_size_ - tree_.end()) +
                   " bytes follow the end of the pickle, which no loader reads.");
  if (tree_.refused())
    notes_.add(Severity::kError, {}, tree_.refused()->at,
               fmt::format("Python cannot load it: {} at byte {}.", tree_.refused()->what,
                           human_count(tree_.refused()->at)));
  for (Finding& finding : unsafe_pickle_findings(tree_, file_))
    builder_.add_finding(std::move(finding));
  if (auto own = custom_record_finding(tree_, file_)) builder_.add_finding(std::move(*own));
  return {};
}

Status DcpMetadataInterpreter::read_entries(NodeId entries) {
  std::span<const NodeId> pairs = tree_.items(entries);
  // For a repeated key, keeps the first position and the last value, as Python does.
  std::vector<std::pair<std::uint32_t, NodeId>> values;
  std::vector<std::uint32_t> position;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    auto fqn = tree_.text(pairs[i]);
    if (!fqn) {
      notes_.add(Severity::kError, {}, tree_.at(pairs[i]), "An entry's name is not a string.");
      continue;
    }
    std::uint32_t name = names_.intern(*fqn);
    if (position.size() < names_.size()) position.resize(names_.size(), kNoName);
    if (position[name] != kNoName) {
      if (duplicates_++ == 0) first_duplicate_ = tree_.at(pairs[i]);
      values[position[name]].second = pairs[i + 1];
      continue;
    }
    position[name] = static_cast<std::uint32_t>(values.size());
    values.emplace_back(name, pairs[i + 1]);
  }
  targets_.resize(names_.size());
  std::uint32_t tensors = 0;
  for (auto [name, value] : values) {
    if (is_cancelled(progress_)) return cancelled_error();
    bool tensor = tree_.attribute(value, "size") != NodeId::kAbsent &&
                  !is_unexpected_record(value, "TensorStorageMetadata");
    bool object = !tensor && !is_unexpected_record(value, "BytesStorageMetadata") &&
                  (tree_.kind(value) == NodeKind::kObject || is_reconstructed(value));
    if (tensor) {
      targets_[name] = {Target::Kind::kTensor, tensors++};
      SHW_CHECK(add_tensor(name, value));
    } else if (object) {
      targets_[name] = {Target::Kind::kObject, static_cast<std::uint32_t>(objects_.size())};
      objects_.push_back({std::string(names_.text(name)), std::nullopt, {}});
      object_paths_.emplace_back();
    } else {
      notes_.add(Severity::kError, names_.text(name), tree_.at(value),
                 "The entry is neither a tensor nor bytes.");
    }
  }
  return {};
}

// True for another class of torch's: torch checks the class even if attributes agree.
bool DcpMetadataInterpreter::is_unexpected_record(NodeId id, std::string_view expected) const {
  const PickleGlobal* root_class = tree_.global(tree_.callable(id));
  return root_class != nullptr && root_class->module.starts_with("torch.distributed") &&
         root_class->name != expected;
}

// copyreg._reconstructor(BytesStorageMetadata, object, None), as protocols 0 and 1 write it.
bool DcpMetadataInterpreter::is_reconstructed(NodeId value) const {
  const PickleGlobal* made_by = tree_.global(tree_.callable(value));
  auto arguments = tree_.items(tree_.arguments(value));
  if (tree_.kind(value) != NodeKind::kReduce || made_by == nullptr || arguments.empty() ||
      made_by->name != "_reconstructor")
    return false;
  const PickleGlobal* root_class = tree_.global(arguments[0]);
  return root_class != nullptr && root_class->name == "BytesStorageMetadata";
}

Status DcpMetadataInterpreter::add_tensor(std::uint32_t name, NodeId value) {
  std::string_view fqn = names_.text(name);
  NodeId properties = tree_.attribute(value, "properties");
  NodeId state = tree_.attributes(properties);
  NodeId dtype = tree_.find(state, "dtype");
  NodeId requires_grad = tree_.find(state, "requires_grad");
  if (auto fields = tree_.items(tree_.state(properties));
      tree_.kind(tree_.state(properties)) == NodeKind::kTuple && fields.size() >= 5) {
    if (auto refused = refused_property(tree_, fields, arity_))
      notes_.add(Severity::kError, fqn, tree_.at(value), "Python cannot load it: " + *refused);
    arity_ = std::max(arity_, fields.size());
    dtype = fields[0];
    requires_grad = fields[2];
  }
  if (const PickleGlobal* root_class = tree_.global(tree_.callable(properties)))
    has_old_properties_ |= root_class->module.starts_with("torch.distributed._shard");

  Dtype known = Dtype::kUnknown;
  if (const PickleGlobal* given = tree_.global(dtype); given != nullptr && given->module == "torch")
    known = dtype_from_torch(given->name).value_or(Dtype::kUnknown);
  if (known == Dtype::kUnknown)
    notes_.add(Severity::kError, fqn, tree_.at(value), "The tensor's dtype is not a torch dtype.");
  auto shape = extents_of(tree_.attribute(value, "size"));
  if (!shape)
    notes_.add(Severity::kError, fqn, tree_.at(value), "The tensor's size cannot be read.");
  // In Python a list never equals a torch.Size; a tuple may.
  if (tree_.kind(tree_.attribute(value, "size")) == NodeKind::kList)
    notes_.add(Severity::kError, fqn, tree_.at(value),
               "The tensor's size is a list instead of torch.Size, so torch refuses it.");
  scratch_.clear();
  Extents extents = shape ? copy_of(builder_.extents(*shape)) : Extents{};
  builder_.add_tensor(std::string(fqn), known, extents, tree_.integer(requires_grad).value_or(0));
  return add_chunks(tree_.attribute(value, "chunks"), fqn);
}

Status DcpMetadataInterpreter::add_chunks(NodeId chunks, std::string_view fqn) {
  // A chunk takes at least a dozen bytes, but tensors could share one list and multiply it.
  if (builder_.chunk_count() + tree_.items(chunks).size() > file_size_ / 8)
    return fail(ErrorKind::kDamaged, "lists more chunks than its bytes can hold",
                {file_, tree_.at(chunks), std::string(fqn)});
  for (NodeId chunk : tree_.items(chunks)) {
    if (const DcpChunkRow* row = rows_.chunk(chunk)) {
      builder_.add_chunk(row->offsets, row->sizes);
      continue;
    }
    auto offsets = extents_of(tree_.attribute(chunk, "offsets"));
    auto sizes = extents_of(tree_.attribute(chunk, "sizes"));
    if (offsets && sizes) {
      builder_.add_chunk(*offsets, *sizes);
    } else {
      notes_.add(Severity::kError, fqn, tree_.at(chunk), "A chunk's box cannot be read.");
    }
  }
  return {};
}

// Parses extents from torch.Size((a, b)), a tuple or a list.
std::optional<ExtentsHandle> DcpMetadataInterpreter::extents_of(NodeId id) {
  if (NodeKind kind = tree_.kind(id); kind == NodeKind::kReduce || kind == NodeKind::kObject) {
    const PickleGlobal* root_class = tree_.global(tree_.callable(id));
    auto arguments = tree_.items(tree_.arguments(id));
    if (root_class == nullptr || root_class->name != "Size" || arguments.size() > 1)
      return std::nullopt;
    if (arguments.empty()) return builder_.extents(ExtentsView{});
    id = arguments[0];
  }
  NodeKind kind = tree_.kind(id);
  if (kind != NodeKind::kTuple && kind != NodeKind::kList) return std::nullopt;
  auto items = tree_.items(id);
  if (items.size() > kMaxDims) return std::nullopt;
  scratch_.clear();
  for (NodeId item : items) {
    auto extent = tree_.integer(item);
    if (!extent) return std::nullopt;
    scratch_.push_back(*extent);
  }
  return builder_.extents(ExtentsView(scratch_));
}

std::optional<std::vector<PathPart>> DcpMetadataInterpreter::path_of(NodeId id) {
  NodeKind kind = tree_.kind(id);
  if (kind != NodeKind::kTuple && kind != NodeKind::kList) return std::nullopt;
  std::vector<PathPart> path;
  for (NodeId item : tree_.items(id)) {
    auto text = tree_.text(item);
    auto number = tree_.integer(item);
    std::uint64_t cost = sizeof(PathPart) + (text ? text->size() : 0);
    if (cost > text_budget_ || (!text && !number)) return std::nullopt;
    text_budget_ -= cost;
    if (text) {
      path.emplace_back(std::string(*text));
    } else {
      path.emplace_back(*number);
    }
  }
  return path;
}

void DcpMetadataInterpreter::record_planner_only_entry(std::string_view fqn) {
  if (only_in_planner_.size() == Provenance::kMaxOnlyInPlanner || fqn.size() > text_budget_) return;
  text_budget_ -= fqn.size();
  only_in_planner_.emplace_back(fqn);
}

void DcpMetadataInterpreter::read_paths(NodeId planner_data) {
  auto pairs = tree_.items(planner_data);
  if (tree_.kind(planner_data) != NodeKind::kDict) return;
  for (std::size_t i = 0; i + 1 < pairs.size() && !is_cancelled(progress_); i += 2) {
    auto fqn = tree_.text(pairs[i]);
    if (!fqn) {
      // Containers and most objects are not hashable in Python, so torch cannot read the file.
      const NodeKind kind = tree_.kind(pairs[i]);
      if (kind == NodeKind::kObject || kind == NodeKind::kShortcut || kind == NodeKind::kDict ||
          kind == NodeKind::kList)
        notes_.add(Severity::kError, {}, tree_.at(pairs[i]),
                   "A name in planner_data is not a string.");
      continue;
    }
    Target target = target_of(names_.intern(*fqn));
    if (target.kind == Target::Kind::kNothing) {
      record_planner_only_entry(*fqn);
      continue;
    }
    auto path = path_of(pairs[i + 1]);
    if (!path) {
      notes_.add(Severity::kWarning, *fqn, tree_.at(pairs[i + 1]),
                 "Its path in the state dict (planner_data) cannot be read.");
    } else if (target.kind == Target::Kind::kTensor) {
      builder_.set_path(TensorId{target.index}, std::move(*path));
    } else {
      object_paths_[target.index] = std::move(*path);
    }
  }
}

std::optional<DcpKeyRow> DcpMetadataInterpreter::key_of(NodeId id) {
  if (const DcpKeyRow* row = rows_.key(id)) return *row;
  // Python accepts only MetadataIndex of torch's classes as a key.
  if (is_unexpected_record(id, "MetadataIndex")) return std::nullopt;
  DcpKeyRow key;
  auto fqn = tree_.text(tree_.attribute(id, "fqn"));
  if (!fqn) return std::nullopt;
  key.name = names_.intern(*fqn);
  if (auto hint = tree_.integer(tree_.attribute(id, "index"));
      hint && *hint >= 0 && *hint < 0x7FFFFFFF)
    key.hint = static_cast<std::int32_t>(*hint);
  NodeId offset = tree_.attribute(id, "offset");
  if (offset != NodeId::kAbsent && tree_.kind(offset) != NodeKind::kNone) {
    auto extents = extents_of(offset);
    if (!extents) return std::nullopt;
    key.offsets = *extents;
  }
  return key;
}

std::optional<ItemPlace> DcpMetadataInterpreter::place_of(NodeId id) {
  if (const ItemPlace* row = rows_.place(id)) return *row;
  auto path = tree_.text(tree_.attribute(id, "relative_path"));
  auto offset = tree_.integer(tree_.attribute(id, "offset"));
  auto length = tree_.integer(tree_.attribute(id, "length"));
  if (!path || !offset || !length) return std::nullopt;
  if (last_file_ == FileId::kNone || last_path_ != *path) {
    last_path_ = *path;
    last_file_ = builder_.file(without_leading_dot_slash(*path));
  }
  return ItemPlace{last_file_, *offset, *length};
}

std::vector<std::string> DcpMetadataInterpreter::transforms_of_place(NodeId place) const {
  if (rows_.place(place) != nullptr) return {};
  return dcp_transforms(tree_, tree_.attribute(place, "transform_descriptors"));
}

void DcpMetadataInterpreter::read_storage(NodeId storage_data) {
  auto pairs = tree_.items(storage_data);
  if (tree_.kind(storage_data) != NodeKind::kDict) return;
  for (std::size_t i = 0; i + 1 < pairs.size() && !is_cancelled(progress_); i += 2) {
    auto key = key_of(pairs[i]);
    auto item = place_of(pairs[i + 1]);
    if (key && item) {
      assign_item_to_chunks(*key, *item, pairs[i + 1], tree_.at(pairs[i]));
    } else {
      auto fqn = key ? names_.text(key->name) : tree_.text(tree_.attribute(pairs[i], "fqn"));
      notes_.add(Severity::kError, fqn.value_or(std::string_view{}).substr(0, 4096),
                 tree_.at(pairs[i]), "A storage record cannot be read.");
    }
  }
}

// torch stores its load id here, which plain values have no field for.
void DcpMetadataInterpreter::report_plain_storage_meta(NodeId storage_meta) {
  const NodeKind kind = tree_.kind(storage_meta);
  const bool is_plain = kind != NodeKind::kAbsent && kind != NodeKind::kNone &&
                        kind != NodeKind::kObject && kind != NodeKind::kReduce &&
                        kind != NodeKind::kGlobal;
  if (is_plain)
    notes_.add(Severity::kError, {}, tree_.at(storage_meta),
               "storage_meta is a plain value instead of a StorageMeta: torch fails to load it.");
}

void DcpMetadataInterpreter::assign_item_to_chunks(const DcpKeyRow& key, ItemPlace item,
                                                   NodeId place, std::uint64_t at) {
  Target target = target_of(key.name);
  bool duplicate = false;
  if (target.kind == Target::Kind::kTensor && key.offsets != kNoExtents) {
    auto chunks = builder_.chunks(TensorId{target.index});
    std::optional<ChunkId> chunk;
    if (key.hint >= 0 && static_cast<std::uint32_t>(key.hint) < chunks.size() &&
        builder_.chunk_offsets(chunks[static_cast<std::uint32_t>(key.hint)]) == key.offsets) {
      chunk = chunks[static_cast<std::uint32_t>(key.hint)];
    } else {
      chunk = chunk_at(target.index, key.offsets);
    }
    if (chunk) {
      duplicate = builder_.chunk_file(*chunk) != FileId::kNone;
      builder_.set_item(*chunk, item);
      auto transforms = transforms_of_place(place);
      if (!transforms.empty()) builder_.set_transforms(*chunk, std::move(transforms));
      if (duplicate && duplicates_++ == 0) first_duplicate_ = at;
      return;
    }
  }
  if (target.kind == Target::Kind::kObject && key.offsets == kNoExtents) {
    NonTensorEntry& object = objects_[target.index];
    if (object.item && duplicates_++ == 0) first_duplicate_ = at;
    object.item = item;
    object.transforms = transforms_of_place(place);
    return;
  }
  std::string_view fqn = names_.text(key.name);
  std::uint64_t cost = sizeof(UnclaimedStorageRecord) + fqn.size() + 8 * kMaxDims;
  if (cost > text_budget_) {
    notes_.add(Severity::kError, fqn.substr(0, 4096), at, "A storage record belongs to no chunk.");
    return;
  }
  text_budget_ -= cost;
  UnclaimedStorageRecord unclaimed{std::string(fqn), std::nullopt, item,
                                   transforms_of_place(place)};
  if (key.offsets != kNoExtents) unclaimed.offsets = copy_of(builder_.extents(key.offsets));
  builder_.add_unclaimed_record(std::move(unclaimed));
}

std::optional<ChunkId> DcpMetadataInterpreter::chunk_at(std::uint32_t tensor,
                                                        ExtentsHandle offsets) {
  auto [found, added] = by_offset_.try_emplace(tensor);
  auto& index = found->second;
  if (added) {
    for (ChunkId chunk : builder_.chunks(TensorId{tensor}))
      index.emplace_back(builder_.chunk_offsets(chunk), chunk);
    std::sort(index.begin(), index.end());
  }
  auto at = std::lower_bound(index.begin(), index.end(), std::pair(offsets, ChunkId{0}));
  if (at == index.end() || at->first != offsets) return std::nullopt;
  // If several chunks have one offset, each takes the next record; further records replace the
  // last.
  while (builder_.chunk_file(at->second) != FileId::kNone && at + 1 != index.end() &&
         (at + 1)->first == offsets)
    ++at;
  return at->second;
}

// torch looks up items by name and offset, so chunks with equal offsets share a record.
void DcpMetadataInterpreter::share_items_of_equal_offsets() {
  for (std::uint32_t name = 0; name < targets_.size() && !is_cancelled(progress_); ++name) {
    if (targets_[name].kind != Target::Kind::kTensor) continue;
    auto chunks = builder_.chunks(TensorId{targets_[name].index});
    std::unordered_map<std::uint32_t, ChunkId> placed;
    auto missing = [&](ChunkId chunk) { return builder_.chunk_file(chunk) == FileId::kNone; };
    bool complete = true;
    for (ChunkId chunk : chunks) complete = complete && !missing(chunk);
    if (complete) continue;
    for (ChunkId chunk : chunks) {
      if (!missing(chunk))
        placed[static_cast<std::uint32_t>(builder_.chunk_offsets(chunk))] = chunk;
    }
    for (ChunkId chunk : chunks) {
      auto twin = placed.find(static_cast<std::uint32_t>(builder_.chunk_offsets(chunk)));
      if (missing(chunk) && twin != placed.end()) builder_.share_item(twin->second, chunk);
    }
  }
}

}  // namespace

Status build_dcp(const PickleTree& tree, const DcpRows& rows, NameTable& names,
                 const std::string& file, std::uint64_t file_size, CheckpointBuilder& builder,
                 const Progress* progress) {
  return DcpMetadataInterpreter(tree, rows, names, file, file_size, builder, progress).run();
}

}  // namespace shw

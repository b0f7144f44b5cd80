#include "core/model/builder.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "core/base/cancellable_range.h"

namespace shw {
namespace {

std::uint64_t hash_of(ExtentsView coordinates) {
  std::uint64_t hash = 0x9E3779B97F4A7C15ull + coordinates.size();
  for (std::int64_t value : coordinates)
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0xFF51AFD7ED558CCDull + (hash >> 29);
  return hash ^ hash >> 32;
}

}  // namespace

CheckpointBuilder::CheckpointBuilder() : checkpoint_(std::make_shared<Checkpoint>()) {}
CheckpointBuilder::~CheckpointBuilder() = default;

void CheckpointBuilder::set_format(const Format& format) {
  checkpoint_->format_ = &format;
}
void CheckpointBuilder::set_provenance(Provenance provenance) {
  checkpoint_->provenance_ = std::move(provenance);
}
void CheckpointBuilder::set_directory(std::shared_ptr<const Directory> directory) {
  checkpoint_->directory_ = std::move(directory);
}

void CheckpointBuilder::reserve(std::uint32_t tensors, std::uint32_t chunks) {
  Checkpoint& c = *checkpoint_;
  c.tensor_fqn_.reserve(tensors);
  c.first_chunk_.reserve(tensors + 1);
  c.chunk_offsets_.reserve(chunks);
  c.chunk_sizes_.reserve(chunks);
  c.storage_file_.reserve(chunks);
  c.storage_offset_.reserve(chunks);
  c.storage_length_.reserve(chunks);
}

CheckpointBuilder::Handle CheckpointBuilder::extents(ExtentsView coordinates) {
  if (shared_count_ * 2 >= shared_.size()) grow_shared_item_table();
  auto& pool = checkpoint_->pool_;
  std::size_t mask = shared_.size() - 1;
  std::size_t slot = hash_of(coordinates) & mask;
  for (; shared_[slot] != 0; slot = (slot + 1) & mask) {
    if (same(checkpoint_->coordinates(shared_[slot] - 1), coordinates))
      return Handle{shared_[slot] - 1};
  }
  auto at = static_cast<std::uint32_t>(pool.size());
  pool.push_back(static_cast<std::int64_t>(coordinates.size()));
  pool.insert(pool.end(), coordinates.begin(), coordinates.end());
  shared_[slot] = at + 1;
  ++shared_count_;
  return Handle{at};
}

void CheckpointBuilder::grow_shared_item_table() {
  std::vector<std::uint32_t> old = std::move(shared_);
  shared_.assign(std::max<std::size_t>(1024, old.size() * 2), 0);
  std::size_t mask = shared_.size() - 1;
  for (std::uint32_t entry : old) {
    if (entry == 0) continue;
    std::size_t slot = hash_of(checkpoint_->coordinates(entry - 1)) & mask;
    while (shared_[slot] != 0) slot = (slot + 1) & mask;
    shared_[slot] = entry;
  }
}

TensorId CheckpointBuilder::add_tensor(std::string fqn, Dtype dtype, ExtentsView shape,
                                       bool requires_grad) {
  Checkpoint& c = *checkpoint_;
  c.tensor_fqn_.push_back(std::move(fqn));
  c.tensor_dtype_.push_back(dtype);
  c.tensor_requires_grad_.push_back(requires_grad ? 1 : 0);
  c.tensor_shape_.push_back(static_cast<std::uint32_t>(extents(shape)));
  c.first_chunk_.push_back(c.first_chunk_.back());
  return TensorId{c.tensor_count() - 1};
}

ChunkId CheckpointBuilder::add_chunk(ExtentsView offsets, ExtentsView sizes, ItemPlace item) {
  ChunkId chunk = add_chunk(extents(offsets), extents(sizes));
  set_item(chunk, item);
  return chunk;
}

ChunkId CheckpointBuilder::add_chunk(Handle offsets, Handle sizes) {
  Checkpoint& c = *checkpoint_;
  assert(!c.tensor_fqn_.empty());
  c.chunk_offsets_.push_back(static_cast<std::uint32_t>(offsets));
  c.chunk_sizes_.push_back(static_cast<std::uint32_t>(sizes));
  ++c.first_chunk_.back();
  ChunkId chunk{c.chunk_count() - 1};
  if (!c.chunk_writer_.empty()) c.chunk_writer_.push_back(Checkpoint::kWriterOfFile);
  if (numbered_) {
    c.chunk_storage_.push_back(StorageId::kNone);
  } else {
    add_storage_row({});
  }
  return chunk;
}

void CheckpointBuilder::add_storage_row(ItemPlace place) {
  Checkpoint& c = *checkpoint_;
  c.storage_file_.push_back(place.file);
  c.storage_offset_.push_back(place.offset);
  c.storage_length_.push_back(place.length);
  if (!c.storage_coding_.empty()) c.storage_coding_.push_back(0);
}

void CheckpointBuilder::materialise_storage_ids() {
  if (std::exchange(numbered_, true)) return;
  auto& numbers = checkpoint_->chunk_storage_;
  for (std::uint32_t i = 0; i < checkpoint_->chunk_count(); ++i) numbers.push_back(StorageId{i});
}

void CheckpointBuilder::set_item(ChunkId chunk, ItemPlace item) {
  Checkpoint& c = *checkpoint_;
  std::size_t i = c.storage_index(chunk);
  if (i >= c.storage_file_.size()) {
    c.chunk_storage_[index_of(chunk)] = add_storage(item);
    return;
  }
  c.storage_file_[i] = item.file;
  c.storage_offset_[i] = item.offset;
  c.storage_length_[i] = item.length;
}

void CheckpointBuilder::share_item(ChunkId from, ChunkId to) {
  materialise_storage_ids();
  auto& numbers = checkpoint_->chunk_storage_;
  numbers[index_of(to)] = numbers[index_of(from)];
}

StorageId CheckpointBuilder::add_storage(ItemPlace place, const Codec* codec,
                                         std::vector<std::string> transforms) {
  materialise_storage_ids();
  add_storage_row(place);
  StorageId storage{checkpoint_->storage_count() - 1};
  if (codec != nullptr || !transforms.empty())
    set_coding(index_of(storage), {codec, std::move(transforms)});
  return storage;
}

void CheckpointBuilder::set_view(ChunkId chunk, StorageId storage, std::int64_t element,
                                 ExtentsView strides) {
  materialise_storage_ids();
  checkpoint_->chunk_storage_[index_of(chunk)] = storage;
  Checkpoint::ViewRow view{chunk, element, Checkpoint::kRowMajor};
  if (!strides.empty()) view.strides = static_cast<std::uint32_t>(extents(strides));
  checkpoint_->views_.push_back(view);
}

void CheckpointBuilder::add_replica(Replica replica) {
  checkpoint_->replicas_.push_back(replica);
}

void CheckpointBuilder::set_writer(ChunkId chunk, std::uint32_t rank) {
  auto& writers = checkpoint_->chunk_writer_;
  if (writers.empty()) writers.assign(checkpoint_->chunk_count(), Checkpoint::kWriterOfFile);
  writers[index_of(chunk)] = rank;
}

void CheckpointBuilder::set_coding(std::size_t storage, Checkpoint::Coding coding) {
  Checkpoint& c = *checkpoint_;
  if (c.storage_coding_.empty()) c.storage_coding_.assign(c.storage_file_.size(), 0);
  auto found = std::find(c.codings_.begin(), c.codings_.end(), coding);
  // More than 255 distinct codings in one checkpoint are damage: the last one stands for the rest,
  // and reading those items then fails with its name.
  if (found == c.codings_.end() && c.codings_.size() < 256)
    found = c.codings_.insert(found, std::move(coding));
  if (found == c.codings_.end()) --found;
  c.storage_coding_[storage] = static_cast<std::uint8_t>(found - c.codings_.begin());
}

void CheckpointBuilder::set_transforms(ChunkId chunk, std::vector<std::string> transforms) {
  Checkpoint& c = *checkpoint_;
  std::size_t storage = c.storage_index(chunk);
  if (storage >= c.storage_file_.size()) return;  // no such storage
  set_coding(storage, {c.coding(storage).codec, std::move(transforms)});
}

void CheckpointBuilder::set_path(TensorId tensor, std::vector<PathPart> path) {
  auto& paths = checkpoint_->tensor_path_;
  if (paths.size() <= index_of(tensor)) paths.resize(index_of(tensor) + 1);
  paths[index_of(tensor)] = std::move(path);
}

void CheckpointBuilder::add_object(NonTensorEntry object, std::vector<PathPart> path) {
  checkpoint_->objects_.push_back(std::move(object));
  checkpoint_->object_path_.push_back(std::move(path));
}
void CheckpointBuilder::add_unclaimed_record(UnclaimedStorageRecord unclaimed) {
  checkpoint_->unclaimed_records_.push_back(std::move(unclaimed));
}
void CheckpointBuilder::add_finding(Finding finding) {
  checkpoint_->findings_.push_back(std::move(finding));
}

FileId CheckpointBuilder::file(std::string_view path) {
  auto [found, added] = file_ids_.try_emplace(std::string(path), FileId{checkpoint_->file_count()});
  if (added) {
    FileRow row;
    row.path = path;
    row.safe = is_safe_relative_path(path);
    checkpoint_->files_.push_back(std::move(row));
  }
  return found->second;
}

std::shared_ptr<const Checkpoint> CheckpointBuilder::finish(const Progress* progress) {
  Checkpoint& c = *checkpoint_;
  c.by_fqn_.resize(c.tensor_count());
  std::iota(c.by_fqn_.begin(), c.by_fqn_.end(), 0u);
  auto before = [&](std::uint32_t a, std::uint32_t b) {
    return c.tensor_fqn_[a] < c.tensor_fqn_[b];
  };
  cancellable_stable_sort(c.by_fqn_.begin(), c.by_fqn_.end(), before, progress);
  std::stable_sort(c.views_.begin(), c.views_.end(),
                   [](const auto& a, const auto& b) { return a.chunk < b.chunk; });
  std::stable_sort(c.replicas_.begin(), c.replicas_.end(),
                   [](const Replica& a, const Replica& b) { return a.of < b.of; });
  stat_files();
  shared_ = {};
  return checkpoint_;
}

std::shared_ptr<const Checkpoint> CheckpointBuilder::with_finding(const Checkpoint& checkpoint,
                                                                  Finding finding) {
  auto copy = std::make_shared<Checkpoint>(checkpoint);
  copy->findings_.push_back(std::move(finding));
  return copy;
}

// Sets existence and size of every file and adds the unreferenced ones.
void CheckpointBuilder::stat_files() {
  Checkpoint& c = *checkpoint_;
  if (c.directory_ != nullptr) {
    for (FileRow& row : c.files_) {
      if (!row.safe) continue;
      Entry entry = c.directory_->stat(row.path);
      row.kind = entry.kind;
      row.size = entry.size;
    }
    auto listed = c.directory_->list();
    for (const Entry& entry : listed ? *listed : std::vector<Entry>{}) {
      if (file_ids_.contains(entry.path)) continue;
      c.files_.push_back({entry.path, std::nullopt, entry.kind, entry.size, true, false});
    }
  }
  auto writer_of_file = c.format_->traits.writer_of_file;
  for (FileRow& row : c.files_) {
    if (writer_of_file != nullptr) row.rank = writer_of_file(row.path);
  }
}

}  // namespace shw

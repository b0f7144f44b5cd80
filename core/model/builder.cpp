#include "core/model/builder.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <numeric>

namespace shw {
namespace {

std::optional<std::uint32_t> leading_number(std::string_view& text) {
  std::uint32_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::uint64_t hash_of(ExtentsView coordinates) {
  std::uint64_t hash = 0x9E3779B97F4A7C15ull + coordinates.size();
  for (std::int64_t value : coordinates)
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0xFF51AFD7ED558CCDull + (hash >> 29);
  return hash ^ hash >> 32;
}

}  // namespace

std::optional<std::uint32_t> rank_in_file_name(std::string_view path) {
  if (std::size_t slash = path.rfind('/'); slash != std::string_view::npos)
    path.remove_prefix(slash + 1);
  if (path.ends_with(".safetensors") && path.starts_with("shard-")) {
    path.remove_prefix(6);
    auto shard = leading_number(path);
    if (shard && *shard > 0 && path.starts_with("-model-")) return *shard - 1;
    return std::nullopt;
  }
  if (!path.ends_with(".distcp")) return std::nullopt;
  std::size_t start = path.rfind("__");
  if (start == std::string_view::npos) return std::nullopt;
  path.remove_prefix(start + 2);
  auto rank = leading_number(path);
  if (!rank || !path.starts_with("_")) return std::nullopt;
  path.remove_prefix(1);
  return leading_number(path) && path == ".distcp" ? rank : std::nullopt;
}

CheckpointBuilder::CheckpointBuilder() : checkpoint_(std::make_shared<Checkpoint>()) {}
CheckpointBuilder::~CheckpointBuilder() = default;

void CheckpointBuilder::set_format(Format format, Encoding encoding) {
  checkpoint_->format_ = format;
  checkpoint_->encoding_ = encoding;
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
  c.chunk_file_.reserve(chunks);
  c.chunk_offset_.reserve(chunks);
  c.chunk_length_.reserve(chunks);
}

CheckpointBuilder::Handle CheckpointBuilder::extents(ExtentsView coordinates) {
  if (shared_count_ * 2 >= shared_.size()) grow_shared();
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

void CheckpointBuilder::grow_shared() {
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
  c.chunk_file_.push_back(FileId::kNone);
  c.chunk_offset_.push_back(0);
  c.chunk_length_.push_back(0);
  if (!c.chunk_transform_.empty()) c.chunk_transform_.push_back(0);
  ++c.first_chunk_.back();
  return ChunkId{c.chunk_count() - 1};
}

void CheckpointBuilder::set_item(ChunkId chunk, ItemPlace item) {
  Checkpoint& c = *checkpoint_;
  c.chunk_file_[index_of(chunk)] = item.file;
  c.chunk_offset_[index_of(chunk)] = item.offset;
  c.chunk_length_[index_of(chunk)] = item.length;
}

void CheckpointBuilder::share_item(ChunkId from, ChunkId to) {
  Checkpoint& c = *checkpoint_;
  std::size_t i = index_of(from);
  set_item(to, {c.chunk_file_[i], c.chunk_offset_[i], c.chunk_length_[i]});
  if (!c.chunk_transform_.empty()) c.chunk_transform_[index_of(to)] = c.chunk_transform_[i];
}

void CheckpointBuilder::set_transforms(ChunkId chunk, std::vector<std::string> transforms) {
  Checkpoint& c = *checkpoint_;
  if (c.chunk_transform_.empty()) {
    c.chunk_transform_.assign(c.chunk_offsets_.size(), 0);
    c.transforms_.push_back({});
  }
  auto found = std::find(c.transforms_.begin(), c.transforms_.end(), transforms);
  // 255 different chains in one checkpoint are damage; the last one then stands for the rest and
  // reading it fails by name.
  if (found == c.transforms_.end() && c.transforms_.size() < 256)
    found = c.transforms_.insert(found, std::move(transforms));
  if (found == c.transforms_.end()) --found;
  c.chunk_transform_[index_of(chunk)] = static_cast<std::uint8_t>(found - c.transforms_.begin());
}

void CheckpointBuilder::set_path(TensorId tensor, std::vector<PathPart> path) {
  auto& paths = checkpoint_->tensor_path_;
  if (paths.size() <= index_of(tensor)) paths.resize(index_of(tensor) + 1);
  paths[index_of(tensor)] = std::move(path);
}

void CheckpointBuilder::add_object(ObjectRow object, std::vector<PathPart> path) {
  checkpoint_->objects_.push_back(std::move(object));
  checkpoint_->object_path_.push_back(std::move(path));
}
void CheckpointBuilder::add_stray(StrayRecord stray) {
  checkpoint_->strays_.push_back(std::move(stray));
}
void CheckpointBuilder::add_finding(Finding finding) {
  checkpoint_->findings_.push_back(std::move(finding));
}

FileId CheckpointBuilder::file(std::string_view path) {
  auto [found, added] = file_ids_.try_emplace(std::string(path), FileId{checkpoint_->file_count()});
  if (added) {
    FileRow row;
    row.path = path;
    row.rank = rank_in_file_name(path);
    row.safe = is_safe_relative_path(path);
    checkpoint_->files_.push_back(std::move(row));
  }
  return found->second;
}

std::shared_ptr<const Checkpoint> CheckpointBuilder::finish() {
  Checkpoint& c = *checkpoint_;
  c.by_fqn_.resize(c.tensor_count());
  std::iota(c.by_fqn_.begin(), c.by_fqn_.end(), 0u);
  std::stable_sort(c.by_fqn_.begin(), c.by_fqn_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return c.tensor_fqn_[a] < c.tensor_fqn_[b];
  });
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
      FileRow row{entry.path, rank_in_file_name(entry.path), entry.kind, entry.size, true, false};
      c.files_.push_back(std::move(row));
    }
  }
  shared_ = {};
  return checkpoint_;
}

}  // namespace shw

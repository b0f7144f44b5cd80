#include "core/facts/values/computed_tensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "core/base/checked.h"
#include "core/formats/common/codecs.h"
#include "core/formats/joined_folders.h"
#include "core/model/builder.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

// Codecs of raw elements; their addresses distinguish exact from rounded tensors.
const Codec kExactCodec{"computed", kRawCodec.reader, true};
const Codec kRoundedCodec{"computed", kRawCodec.reader, true};
constexpr Format kComputedFormat = {
    .name = "computed", .title = "computed checkpoint", .codec = &kExactCodec};
constexpr std::int64_t kComputedAtOnce = std::int64_t{4} << 20;  // elements

// Computes the elements of one tensor while reading; keeps the last computed rows.
class ComputedSource final : public ByteSource {
 public:
  ComputedSource(std::string name, ComputedTensor tensor, std::uint64_t size)
      : name_(std::move(name)), tensor_(std::move(tensor)), size_(size) {
    const auto elements = static_cast<std::int64_t>(size / size_of(tensor_.dtype));
    const std::int64_t row =
        std::max<std::int64_t>(elements / std::max<std::int64_t>(rows(), 1), 1);
    row_bytes_ = static_cast<std::uint64_t>(row) * size_of(tensor_.dtype);
    const std::int64_t fitting = std::max<std::int64_t>(kComputedAtOnce / row, 1);
    const std::int64_t together = std::max<std::int64_t>(tensor_.rows_at_once, 1);
    step_ = std::max(together, std::min(fitting, rows()) / together * together);
  }
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return size_; }

  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size_ || out.size() > size_ - offset) return missing_elements_error();
    std::lock_guard lock(guard_);
    while (!out.empty()) {
      const auto row = static_cast<std::int64_t>(offset / row_bytes_);
      const std::int64_t first = row / step_ * step_;
      if (kept_.empty() || first != first_) SHW_CHECK(compute(first));
      const std::uint64_t at = offset - static_cast<std::uint64_t>(first) * row_bytes_;
      if (at >= kept_.size()) return missing_elements_error();
      const std::size_t part = std::min<std::uint64_t>(out.size(), kept_.size() - at);
      std::memcpy(out.data(), kept_.data() + at, part);
      out = out.subspan(part);
      offset += part;
    }
    return {};
  }

 private:
  std::int64_t rows() const { return tensor_.shape.empty() ? 1 : tensor_.shape[0]; }
  Status missing_elements_error() const {
    return fail(ErrorKind::kDamaged, "has fewer elements than it should", {name_});
  }
  Status compute(std::int64_t first) const {
    kept_.clear();
    SHW_TRY(kept_, tensor_.make(first, std::min(step_, rows() - first)));
    first_ = first;
    return {};
  }

  const std::string name_;
  const ComputedTensor tensor_;
  const std::uint64_t size_;
  std::uint64_t row_bytes_ = 1;
  std::int64_t step_ = 1;
  mutable std::mutex guard_;  // guards the members below
  mutable Bytes kept_;
  mutable std::int64_t first_ = 0;
};

// A folder in which some files are replaced by computed ones, or with only these.
class ComputedFolder final : public Directory {
 public:
  ComputedFolder(std::string name, std::shared_ptr<const Directory> rest)
      : name_(std::move(name)), rest_(std::move(rest)) {}
  // `is_listed`: also appears in listings, as a file that a copy of the folder must contain.
  void add(std::shared_ptr<const ByteSource> source, bool is_listed) {
    const std::string path = source->name();
    if (is_listed) listed_.insert(path);
    sources_.insert_or_assign(path, std::move(source));
  }
  void set_source_files(std::vector<FilesOfFolder> made_of) { source_files_ = std::move(made_of); }
  // Hides files that are no longer part of the folder.
  void hide_files(std::set<std::string> paths) { hidden_ = std::move(paths); }
  const std::string& name() const override { return name_; }
  Result<std::vector<Entry>> list(std::size_t limit) const override {
    Result<std::vector<Entry>> entries = std::vector<Entry>{};
    if (rest_ != nullptr) entries = rest_->list(limit);
    if (!entries) return entries;
    std::erase_if(*entries, [&](const Entry& entry) { return hidden_.contains(entry.path); });
    std::set<std::string> added = listed_;
    for (Entry& entry : *entries) {
      entry = stat(entry.path);
      added.erase(entry.path);
    }
    for (const std::string& path : added) entries->push_back(stat(path));
    std::ranges::sort(*entries, {}, &Entry::path);
    return entries;
  }
  Entry stat(const std::string& path) const override {
    const auto found = sources_.find(path);
    if (found == sources_.end() && hidden_.contains(path)) return {path};
    Entry entry = rest_ == nullptr ? Entry{} : rest_->stat(path);
    entry.path = path;
    if (found == sources_.end()) return entry;
    entry.kind = EntryKind::kFile;
    entry.size = found->second->size();
    return entry;
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    const auto found = sources_.find(path);
    if (found != sources_.end()) return found->second;
    if (rest_ != nullptr) return rest_->open(path);
    return fail(ErrorKind::kIo, "is not there", {path});
  }

  bool is_made(const std::string& path) const override { return sources_.contains(path); }
  std::vector<FilesOfFolder> made_of() const override { return source_files_; }

 private:
  const std::string name_;
  const std::shared_ptr<const Directory> rest_;
  std::map<std::string, std::shared_ptr<const ByteSource>> sources_;
  std::set<std::string> listed_, hidden_;
  std::vector<FilesOfFolder> source_files_;
};

std::vector<FilesOfFolder> files_by_folder(
    const std::vector<std::shared_ptr<const Checkpoint>>& checkpoints) {
  std::vector<FilesOfFolder> all;
  for (const auto& checkpoint : checkpoints) {
    const auto& directory = checkpoint->directory();
    if (directory == nullptr) continue;
    for (FilesOfFolder& before : directory->made_of()) all.push_back(std::move(before));
    FilesOfFolder own{directory->name(), {}};
    for (const FileRow& file : checkpoint->files()) {
      if (file.referenced && !directory->is_made(file.path))
        own.files.push_back(directory->stat(file.path));
    }
    all.push_back(std::move(own));
  }
  return all;
}

Status add_tensor(ComputedFolder& folder, CheckpointBuilder& builder, ComputedTensor tensor) {
  const auto elements = checked_volume(tensor.shape);
  const auto bytes =
      elements ? checked_mul(*elements, std::int64_t{size_of(tensor.dtype)}) : std::nullopt;
  if (!bytes)
    return fail(ErrorKind::kDamaged, tensor.fqn + " would have too many elements", {folder.name()});
  const std::int64_t size = *bytes;
  const std::string path = fmt::format("computed tensor {}", builder.chunk_count());
  builder.add_tensor(tensor.fqn, tensor.dtype, tensor.shape);
  const ChunkId chunk = builder.add_chunk(Extents(tensor.shape.size(), 0), tensor.shape, {});
  const Codec& codec = tensor.is_rounded ? kRoundedCodec : kExactCodec;
  if (&codec == kComputedFormat.codec)
    builder.set_item(chunk, {builder.file(path), 0, size});
  else
    builder.set_view(chunk, builder.add_storage({builder.file(path), 0, size}, &codec, {}), 0, {});
  folder.add(
      std::make_shared<ComputedSource>(path, std::move(tensor), static_cast<std::uint64_t>(size)),
      false);
  return {};
}

Result<std::shared_ptr<const Checkpoint>> build_computed_checkpoint(
    std::shared_ptr<ComputedFolder> folder, ComputedPart part, Progress* progress) {
  for (std::shared_ptr<const ByteSource>& file : part.files) folder->add(std::move(file), true);
  folder->set_source_files(files_by_folder(part.made_of));
  CheckpointBuilder builder;
  builder.set_format(kComputedFormat);
  builder.set_directory(folder);
  for (ComputedTensor& tensor : part.tensors)
    SHW_CHECK(add_tensor(*folder, builder, std::move(tensor)));
  for (Finding& finding : part.findings) builder.add_finding(std::move(finding));
  return builder.finish(progress);
}

// Data files whose tensors are all replaced, and the index of such a checkpoint.
std::set<std::string> files_without_kept_tensors(const Checkpoint& checkpoint,
                                                 const std::set<TensorId>& replaced) {
  std::set<std::string> files{std::string(checkpoint.format().traits.index_file)};
  for (const FileRow& file : checkpoint.files()) {
    if (file.referenced) files.emplace(file.path);
  }
  auto keep = [&](const std::optional<ItemPlace>& place) {
    if (place && place->file != FileId::kNone) files.erase(checkpoint.file(place->file).path);
  };
  for (TensorId tensor : checkpoint.tensors()) {
    if (replaced.contains(tensor)) continue;
    for (ChunkId chunk : checkpoint.chunks(tensor)) keep(checkpoint.item(chunk));
  }
  for (const NonTensorEntry& object : checkpoint.objects()) keep(object.item);
  return files;
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> add_computed_tensors(
    std::shared_ptr<const Checkpoint> around, ComputedPart part, Progress* progress) {
  if (around->directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint is not in a directory");
  auto folder = std::make_shared<ComputedFolder>(around->directory()->name(), around->directory());
  std::set<TensorId> replaced = std::move(part.replaced);
  std::set<std::string> gone = files_without_kept_tensors(*around, replaced);
  gone.merge(part.hidden_files);
  folder->hide_files(std::move(gone));
  SHW_TRY(auto computed, build_computed_checkpoint(folder, std::move(part), progress));
  return join_folders(
      folder, {{std::move(around), "", "", std::move(replaced)}, {std::move(computed), "", "", {}}},
      JoinedFrom::kComputation);
}

Result<std::shared_ptr<const Checkpoint>> make_computed_only_checkpoint(const Directory& folder,
                                                                        ComputedPart part,
                                                                        Progress* progress) {
  return build_computed_checkpoint(std::make_shared<ComputedFolder>(folder.name(), nullptr),
                                   std::move(part), progress);
}

bool is_rounded_in_computing(const Checkpoint& checkpoint, TensorId tensor) {
  const auto chunks = checkpoint.chunks(tensor);
  return !chunks.empty() && &checkpoint.codec(chunks[0]) == &kRoundedCodec;
}

Result<Bytes> rounded_to(Dtype dtype, const std::vector<float>& elements) {
  const auto bytes = std::as_bytes(std::span(elements));
  if (dtype == Dtype::kFloat32) return Bytes(bytes.begin(), bytes.end());
  return cast_elements(Dtype::kFloat32, bytes, dtype);
}

}  // namespace shw

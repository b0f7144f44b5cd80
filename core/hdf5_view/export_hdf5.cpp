#include "core/hdf5_view/export_hdf5.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <map>
#include <set>

#include "core/base/parallel.h"
#include "core/base/threads.h"
#include "core/base/version.h"
#include "core/hdf5/hdf5_writer.h"
#include "core/hdf5_view/assemble_tensor.h"
#include "core/hdf5_view/dataset_names.h"
#include "core/hdf5_view/mapped_tensor.h"
#include "core/hdf5_view/tile_stacks.h"
#include "core/io/path_text.h"
#include "core/io/permissions.h"
#include "core/io/publish.h"
#include "core/io/store.h"
#include "core/model/index_only_tensors.h"

namespace shw {
namespace {

// Tensors per batch; limits memory for headers that are read before writing.
constexpr std::uint32_t kBatch = 1024;

struct MappedBatch {
  std::vector<MappedTensor> tensors;
  std::vector<TileStack> stacks;
};

// A tensor's place in a stack: `dataset[index]`, of `count`.
struct PlaceInStack {
  std::string dataset;
  std::int64_t count = 0, index = 0;
};

class Export {
 public:
  Export(const Checkpoint& checkpoint, const ExportOptions& options, Hdf5Writer writer,
         std::string folder, Progress* progress)
      : checkpoint_(checkpoint),
        options_(options),
        writer_(std::move(writer)),
        folder_(std::move(folder)),
        names_(checkpoint),
        progress_(progress) {}

  Result<Exported> run();

 private:
  void collect_tensors_with_findings();
  Result<MappedBatch> map_batch(std::uint32_t first) const;
  Status add_stack(const MappedBatch& batch, const TileStack& stack, std::uint32_t first);
  Status add(TensorId tensor, const MappedTensor& mapped);
  Status add_in_place(TensorId tensor, const MappedTensor& mapped);
  Status add_copy(TensorId tensor, const MappedTensor& mapped);
  Status add_part(TensorId tensor, const MappedTensor& mapped);
  Result<Hdf5Part> part_of_file(FileId file, std::uint64_t offset, Dtype dtype);
  Result<std::vector<Hdf5Part>> parts_of(TensorId tensor, Dtype dtype,
                                         const std::vector<MappedTile>& tiles);
  Hdf5Dataset hdf5_dataset_header(TensorId tensor, const std::string& group) const;
  std::vector<Hdf5Segment> segments_of(const std::vector<ByteRun>& runs);
  void leave_out(TensorId tensor, const MappedTensor& mapped, bool is_in_part);
  Status write_file_info();

  const Checkpoint& checkpoint_;
  const ExportOptions& options_;
  Hdf5Writer writer_;
  std::string folder_;  // prefix of file paths
  DatasetNames names_;
  Progress* progress_;
  std::map<std::string, std::vector<std::string>, std::less<>> rules_;  // by FQN
  std::set<FileId> mapped_files_;
  std::set<std::string> sources_;
  std::map<TensorId, PlaceInStack> stacked_;  // in the current batch
  std::size_t stacks_ = 0;                    // in all batches
  Exported exported_;
};

void Export::collect_tensors_with_findings() {
  for (const Finding& finding : options_.findings) {
    if (finding.severity == Severity::kInfo) continue;
    exported_.notes.push_back(finding.rule + ": " + finding.cause);
    for (const std::string& subject : finding.subjects) {
      auto& rules = rules_[subject];
      if (std::find(rules.begin(), rules.end(), finding.rule) == rules.end())
        rules.push_back(finding.rule);
    }
  }
}

Hdf5Dataset Export::hdf5_dataset_header(TensorId tensor, const std::string& group) const {
  Hdf5Dataset dataset{group + std::string(checkpoint_.fqn(tensor)),
                      checkpoint_.dtype(tensor),
                      copy_of(checkpoint_.shape(tensor)),
                      {{"dtype", std::string(name(checkpoint_.dtype(tensor)))}}};
  if (auto found = rules_.find(checkpoint_.fqn(tensor)); found != rules_.end())
    dataset.attributes.push_back({"findings", found->second});
  return dataset;
}

std::vector<Hdf5Segment> Export::segments_of(const std::vector<ByteRun>& runs) {
  std::vector<Hdf5Segment> segments;
  for (const ByteRun& run : runs) {
    mapped_files_.insert(run.file);
    segments.push_back({folder_ + checkpoint_.file(run.file).path, run.offset, run.length});
  }
  return segments;
}

// A dataset that maps a whole file as elements of the dtype, aligned like `offset`. Cached, because
// a dataset per tile would take four times as much space as the tensors.
Result<Hdf5Part> Export::part_of_file(FileId file, std::uint64_t offset, Dtype dtype) {
  const std::uint64_t element = size_of(dtype), residue = offset % element;
  const std::uint64_t elements = (checkpoint_.file(file).size - residue) / element;
  Hdf5Part part;
  part.dataset = fmt::format("/sources/{}.{}.{}", index_of(file), name(dtype), residue);
  part.length = static_cast<std::int64_t>(elements);
  part.first = static_cast<std::int64_t>(offset / element);
  if (sources_.insert(part.dataset).second) {
    Hdf5Dataset source{part.dataset, dtype, {part.length}};
    SHW_CHECK(writer_.add_external(source, segments_of({{file, residue, elements * element}})));
  }
  return part;
}

// For each tile its box in the tensor, and its elements in a file's dataset.
Result<std::vector<Hdf5Part>> Export::parts_of(TensorId tensor, Dtype dtype,
                                               const std::vector<MappedTile>& tiles) {
  std::vector<Hdf5Part> parts;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const MappedTile& tile = tiles[i];
    Hdf5Part part;
    if (tile.runs.size() == 1) {
      SHW_TRY(part, part_of_file(tile.runs[0].file, tile.runs[0].offset, dtype));
      part.count = std::max<std::int64_t>(tile.count, 1);
      part.step = tile.step;
    } else {
      part.dataset = fmt::format("/sources/tile.{}.{}", index_of(tensor), i);
      part.length = volume(tile.box.sizes).value_or(0);
      Hdf5Dataset source{part.dataset, dtype, {part.length}};
      SHW_CHECK(writer_.add_external(source, segments_of(tile.runs)));
    }
    part.at = tile.box;
    part.run = tile.count != 0 ? tile.run : volume(tile.box.sizes).value_or(0);
    if (part.count == 1) part.step = part.run;
    parts.push_back(std::move(part));
  }
  return parts;
}

Status Export::add_in_place(TensorId tensor, const MappedTensor& mapped) {
  ++exported_.tensors;
  Hdf5Dataset dataset = hdf5_dataset_header(tensor, "/tensors/");
  if (!mapped.note.empty()) {
    dataset.attributes.push_back({"note", mapped.note});
    exported_.notes.push_back(std::string(checkpoint_.fqn(tensor)) + ": " + mapped.note);
  }
  if (auto place = stacked_.find(tensor); place != stacked_.end())
    return writer_.add_stack_slice(dataset, place->second.dataset, place->second.count,
                                   place->second.index);
  if (mapped.mapping == Mapping::kTiles) {
    SHW_TRY(auto parts, parts_of(tensor, dataset.dtype, mapped.tiles));
    return writer_.add_virtual(dataset, parts);
  }
  if (mapped.segments.empty()) return writer_.add_copied(dataset, nullptr);
  return writer_.add_external(dataset, segments_of(mapped.segments));
}

// Copies a tensor; if it turns out to be unreadable, it is omitted as damaged.
Status Export::add_copy(TensorId tensor, const MappedTensor& mapped) {
  Hdf5Dataset dataset = hdf5_dataset_header(tensor, "/tensors/");
  dataset.attributes.push_back({"copied", "its elements are a copy: " + mapped.why});
  std::optional<Error> unreadable;
  Status added = writer_.add_copied(dataset, [&](const Hdf5Writer::WriteBox& write) {
    return put_together(checkpoint_, mapped.chunks, write, unreadable, progress_);
  });
  if (added) {
    ++exported_.tensors;
    exported_.copied.emplace_back(checkpoint_.fqn(tensor));
    return {};
  }
  if (!unreadable) return added;
  MappedTensor refused;
  refused.why = unreadable->place.file + " " + unreadable->message;
  leave_out(tensor, refused, false);
  return {};
}

Status Export::add_part(TensorId tensor, const MappedTensor& mapped) {
  leave_out(tensor, mapped, !mapped.tiles.empty());
  if (mapped.tiles.empty()) return {};
  Hdf5Dataset dataset = hdf5_dataset_header(tensor, "/partial/");
  dataset.attributes.push_back({"missing_elements", mapped.missing});
  dataset.attributes.push_back({"why", mapped.why});
  // bool has no fill value that would mark missing elements.
  if (dataset.dtype == Dtype::kBool) dataset.dtype = Dtype::kUint8;
  SHW_TRY(auto parts, parts_of(tensor, dataset.dtype, mapped.tiles));
  return writer_.add_virtual(dataset, parts);
}

void Export::leave_out(TensorId tensor, const MappedTensor& mapped, bool is_in_part) {
  UnexportedTensor left{.fqn = std::string(checkpoint_.fqn(tensor)), .why = mapped.why};
  left.can_be_copied = mapped.mapping == Mapping::kNotInPlace;
  left.is_damaged = !left.can_be_copied;
  left.is_in_part = is_in_part;
  left.missing = mapped.missing;
  exported_.left_out.push_back(std::move(left));
}

Status Export::add(TensorId tensor, const MappedTensor& mapped) {
  if (std::string why = names_.refusal(checkpoint_.fqn(tensor)); !why.empty()) {
    exported_.left_out.push_back(
        {.fqn = std::string(checkpoint_.fqn(tensor)), .why = std::move(why)});
    return {};
  }
  const bool is_whole = mapped.mapping != Mapping::kPartly && mapped.mapping != Mapping::kRefused;
  if (auto doubt = options_.doubts.find(checkpoint_.fqn(tensor));
      is_whole && doubt != options_.doubts.end()) {
    MappedTensor refused;
    refused.why = doubt->second;
    leave_out(tensor, refused, false);
    return {};
  }
  switch (mapped.mapping) {
    case Mapping::kSegments:
    case Mapping::kTiles:
      return add_in_place(tensor, mapped);
    case Mapping::kNotInPlace:
      if (options_.copy) return add_copy(tensor, mapped);
      leave_out(tensor, mapped, false);
      return {};
    case Mapping::kPartly:
      return add_part(tensor, mapped);
    case Mapping::kRefused:
      leave_out(tensor, mapped, false);
      return {};
  }
  return {};
}

// Writes the attributes of the root group, /files (path and size) and /left_out (name and reason).
Status Export::write_file_info() {
  Hdf5Attributes about{{"schema", std::string(kJsonSchema)},
                       {"checkpoint", checkpoint_.directory()->name()},
                       {"format", std::string(checkpoint_.format().name)},
                       {"left_out", static_cast<std::int64_t>(exported_.left_out.size())},
                       {"open",
                        "Open this file to read only: through it a writer (h5py mode r+) "
                        "changes the checkpoint."}};
  if (options_.paths == Hdf5Paths::kRelative)
    about.push_back({"hint", std::string("Paths are relative to this file: set ") + kRelativeHint +
                                 " in the environment before it is opened."});
  SHW_CHECK(writer_.set_attributes("/", about));
  SHW_CHECK(writer_.set_attributes("/tensors", {}));
  std::vector<std::string> paths, names, reasons;
  std::vector<std::int64_t> sizes;
  for (FileId file : mapped_files_) {
    paths.push_back(folder_ + checkpoint_.file(file).path);
    sizes.push_back(static_cast<std::int64_t>(checkpoint_.file(file).size));
  }
  for (const UnexportedTensor& left : exported_.left_out) {
    names.push_back(left.fqn);
    reasons.push_back(left.why);
  }
  SHW_CHECK(
      writer_.add_columns("/files", std::vector<Hdf5Column>{{"path", paths}, {"size", sizes}}));
  return writer_.add_columns("/left_out",
                             std::vector<Hdf5Column>{{"fqn", names}, {"why", reasons}});
}

Result<MappedBatch> Export::map_batch(std::uint32_t first) const {
  MappedBatch batch;
  batch.tensors.resize(std::min(kBatch, checkpoint_.tensor_count() - first));
  SHW_CHECK(parallel_for(batch.tensors.size(), [&](std::size_t i) -> Status {
    if (is_cancelled(progress_)) return cancelled_error();
    batch.tensors[i] = map_tensor(checkpoint_, TensorId{first + static_cast<std::uint32_t>(i)});
    return {};
  }));
  batch.stacks = find_stacks(checkpoint_, TensorId{first}, batch.tensors);
  return batch;
}

// Writes the tiles of a stack's first tensor, each repeated for all tensors.
Status Export::add_stack(const MappedBatch& batch, const TileStack& stack, std::uint32_t first) {
  auto id = [&](std::size_t tensor) {
    return TensorId{first + static_cast<std::uint32_t>(tensor)};
  };
  const TensorId model = id(stack.tensors[0]);
  const auto count = static_cast<std::int64_t>(stack.tensors.size());
  Hdf5Dataset dataset{fmt::format("/sources/stack.{}", stacks_++), checkpoint_.dtype(model),
                      copy_of(checkpoint_.shape(model))};
  dataset.shape.insert(dataset.shape.begin(), count);
  SHW_TRY(auto parts, parts_of(model, dataset.dtype, batch.tensors[stack.tensors[0]].tiles));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].at.offsets.insert(parts[i].at.offsets.begin(), 0);
    parts[i].at.sizes.insert(parts[i].at.sizes.begin(), count);
    parts[i].count = count;
    parts[i].step = stack.steps[i];
  }
  SHW_CHECK(writer_.add_virtual(dataset, parts));
  for (std::int64_t i = 0; i < count; ++i)
    stacked_[id(stack.tensors[static_cast<std::size_t>(i)])] = {dataset.path, count, i};
  return {};
}

Result<Exported> Export::run() {
  collect_tensors_with_findings();
  const std::uint32_t count = checkpoint_.tensor_count();
  if (progress_ != nullptr) progress_->begin(Phase::kReadingHeaders, count, false);
  // The library is single-threaded: while it writes a batch, other threads read headers of the
  // next.
  auto map_next = [&](std::uint32_t first) {
    return run_on_own_thread([this, first] { return map_batch(first); });
  };
  auto next = map_next(0);
  for (std::uint32_t first = 0; first < count; first += kBatch) {
    SHW_TRY(MappedBatch batch, next.get());
    if (count - first > kBatch) next = map_next(first + kBatch);
    stacked_.clear();
    for (const TileStack& stack : batch.stacks) SHW_CHECK(add_stack(batch, stack, first));
    for (std::uint32_t i = 0; i < batch.tensors.size(); ++i) {
      if (is_cancelled(progress_)) return cancelled_error();
      SHW_CHECK(add(TensorId{first + i}, batch.tensors[i]));
      if (progress_ != nullptr) progress_->add(1);
    }
  }
  for (const UnclaimedStorageRecord& tensor : index_only_tensors(checkpoint_))
    exported_.left_out.push_back(
        {.fqn = tensor.fqn,
         .why = "only its name is known: " + checkpoint_.file(tensor.item.file).path +
                " cannot be read",
         .is_damaged = true});
  SHW_CHECK(write_file_info());
  SHW_CHECK(writer_.close());
  return std::move(exported_);
}

std::vector<std::string> paths_of_files(const Checkpoint& checkpoint) {
  std::vector<std::string> paths;
  for (const FileRow& row : checkpoint.files()) {
    if (row.safe && row.referenced)
      paths.push_back(checkpoint.directory()->name() + "/" + row.path);
  }
  return paths;
}

// The prefix of paths of mapped files.
Result<std::string> folder_prefix(const Checkpoint& checkpoint, const std::string& out,
                                  Hdf5Paths paths) {
  Store& store = posix_store();
  SHW_TRY(std::string source, store.resolved(checkpoint.directory()->name()));
  if (paths == Hdf5Paths::kRelative) {
    SHW_TRY(std::string from, store.resolved(parent_of(out)));
    source = std::filesystem::path(source).lexically_relative(from).string();
  }
  return source.ends_with('/') ? source : source + "/";
}

}  // namespace

bool Exported::is_whole() const {
  return unread.empty() &&
         std::none_of(left_out.begin(), left_out.end(),
                      [](const UnexportedTensor& left) { return left.is_damaged; });
}

Result<Exported> export_hdf5(const Checkpoint& checkpoint, const ExportOptions& options,
                             Progress* progress) {
  if (checkpoint.directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint has no directory");
  if (posix_store().exists(options.out))
    return fail(ErrorKind::kUsage, "already exists, and is never replaced", {options.out},
                "choose another name with --out");
  SHW_TRY(std::string folder, folder_prefix(checkpoint, options.out, options.paths));
  TempFile temporary(options.out);
  SHW_TRY(Hdf5Writer writer, Hdf5Writer::create(temporary.path(), options.out));
  SHW_TRY(Exported exported,
          Export(checkpoint, options, std::move(writer), std::move(folder), progress).run());
  SHW_CHECK(limit_file_permissions(temporary.path(),
                                   permission_limit_of({}, paths_of_files(checkpoint))));
  SHW_CHECK(temporary.publish());
  exported.output = options.out;
  SHW_TRY(auto made, open_file(options.out, options.out));
  exported.bytes = made->size();
  return exported;
}

}  // namespace shw

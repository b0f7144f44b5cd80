#include "core/formats/hdf5/hdf5_open.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "core/base/natural_order.h"
#include "core/base/parallel.h"
#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/newest_file.h"
#include "core/formats/hdf5/hdf5_columns.h"
#include "core/formats/hdf5/hdf5_formats.h"
#include "core/formats/hdf5/hdf5_shards.h"
#include "core/formats/single_file_directory.h"
#include "core/model/builder.h"

namespace shw {
namespace {

// Intact but unsupported: undecided instead of damaged.
void mark_unexamined(Finding& finding, const Error& error) {
  if (error.kind != ErrorKind::kUnsupported) return;
  finding.rule = "not-looked-at";
  finding.severity = Severity::kInfo;
}

// Names with the same problem, in file order.
struct PathsOfError {
  const Error* error;
  std::vector<std::string> paths;
};

// Grouped, because all datasets of a file may have the same unsupported filter.
void add_unread_arrays(CheckpointBuilder& builder, const Hdf5Shard& shard) {
  std::vector<PathsOfError> reasons;
  std::map<std::pair<ErrorKind, std::string>, std::size_t> number_of;
  for (const auto& [path, array] : shard.walk.arrays) {
    if (*array) continue;
    const Error& error = array->error();
    auto [at, is_new] = number_of.try_emplace({error.kind, error.message}, reasons.size());
    if (is_new) reasons.push_back({&error, {}});
    reasons[at->second].paths.push_back(path);
    builder.add_unclaimed_record({path, std::nullopt, {builder.file(shard.path), 0, 0}});
  }
  for (PathsOfError& reason : reasons) {
    const std::string whose = reason.paths.size() == 1 ? "" : short_list_text(reason.paths) + ": ";
    Finding finding = bad_record_finding(
        shard.path, fmt::format("In {}: {}{}.", shard.path, whose, reason.error->message),
        reason.error->place.offset);
    finding.subjects.insert(finding.subjects.begin(), reason.paths.begin(), reason.paths.end());
    mark_unexamined(finding, *reason.error);
    builder.add_finding(std::move(finding));
  }
}

void add_links_outside(CheckpointBuilder& builder, const Hdf5Shard& shard) {
  std::map<std::string, std::vector<std::string>> by_file;
  for (const auto& [path, file] : shard.walk.links_outside) by_file[file].push_back(path);
  for (auto& [file, paths] : by_file) {
    const bool is_one = paths.size() == 1;
    Finding finding{.rule = "not-looked-at", .severity = Severity::kInfo};
    finding.cause =
        fmt::format("{} of {} {} to another file, {}, and {} not followed.", short_list_text(paths),
                    shard.path, is_one ? "is a link" : "are links", file, is_one ? "was" : "were");
    finding.evidence = {
        {"file", shard.path}, {"link", file}, {"count", static_cast<std::int64_t>(paths.size())}};
    finding.subjects = std::move(paths);
    builder.add_finding(std::move(finding));
  }
}

// Partially deleted files have thousands of lost links.
void add_lost_links(CheckpointBuilder& builder, const Hdf5Shard& shard, bool unsupported) {
  constexpr std::size_t kToldOf = 4;
  std::vector<std::string> paths;
  std::string told;
  const Error* first = nullptr;
  for (const auto& [path, error] : shard.walk.lost_links) {
    if ((error.kind == ErrorKind::kUnsupported) != unsupported) continue;
    if (first == nullptr) first = &error;
    if (paths.size() < kToldOf)
      told += fmt::format("{}{} {}", paths.empty() ? "" : "; ", path, error.message);
    paths.push_back(path);
    builder.add_unclaimed_record({path, std::nullopt, {builder.file(shard.path), 0, 0}});
  }
  if (first == nullptr) return;
  const std::string count =
      paths.size() == 1 ? "" : plural(paths.size(), "link") + " cannot be followed: ";
  if (paths.size() > kToldOf) told += fmt::format("; and {} more", paths.size() - kToldOf);
  Finding finding =
      bad_record_finding(shard.path, fmt::format("In {}, {}{}.", shard.path, count, told));
  finding.evidence.emplace_back("count", static_cast<std::int64_t>(paths.size()));
  finding.subjects.insert(finding.subjects.begin(), paths.begin(), paths.end());
  mark_unexamined(finding, *first);
  builder.add_finding(std::move(finding));
}

void add_unread(CheckpointBuilder& builder, const Hdf5Shard& shard) {
  add_unread_arrays(builder, shard);
  for (const auto& [path, error] : shard.walk.lost_groups) {
    Finding finding =
        bad_record_finding(shard.path,
                           fmt::format("In {}, the contents of the group {} are not known: {}.",
                                       shard.path, path.empty() ? "/" : path, error.message),
                           error.place.offset);
    mark_unexamined(finding, error);
    builder.add_finding(std::move(finding));
  }
  for (const auto& [path, error] : shard.walk.overlaps) {
    Finding finding = bad_record_finding(
        path, fmt::format("In {}, {}: {}.", shard.path, path, error.message), error.place.offset);
    finding.subjects.push_back(shard.path);
    builder.add_finding(std::move(finding));
  }
  add_links_outside(builder, shard);
  add_lost_links(builder, shard, false);
  add_lost_links(builder, shard, true);
  if (shard.walk.was_left_open)
    builder.add_finding(bad_record_finding(
        shard.path,
        fmt::format("A writer did not close {} (flag at byte {}): h5py refuses to open it until "
                    "h5clear -s clears the flag, and data not yet written is missing.",
                    shard.path, shard.begin + 11),
        shard.begin + 11));
  if (shard.walk.end_of_file > shard.size)
    builder.add_finding(
        bad_record_finding(shard.path,
                           fmt::format("{} should end at byte {} but ends at {}: it is truncated.",
                                       shard.path, shard.walk.end_of_file, shard.size),
                           shard.begin + shard.size));
}

// Fails if files have equal names but do not record which parts they are: they are separate
// checkpoints.
Status check_parts(const std::map<std::string, std::vector<Hdf5Piece>>& tensors,
                   const Directory& directory) {
  for (const auto& [fqn, pieces] : tensors) {
    bool said = std::all_of(pieces.begin(), pieces.end(), [](const Hdf5Piece& piece) {
      return piece.array->global_shape && piece.array->offsets;
    });
    if (pieces.size() < 2 || said) continue;
    return fail(ErrorKind::kUnsupported,
                fmt::format("holds several checkpoints: {} has {} and so has {}", pieces[0].file,
                            fqn, pieces[1].file),
                {directory.name()},
                "Give the path of one of them. Parts of one tensor say so by the attributes "
                "offsets and global_shape.");
  }
  return {};
}

// All names of a file, sorted, since an index may name as many groups as there are datasets.
class NamesInFile {
 public:
  explicit NamesInFile(const Hdf5Walk& walk) {
    for (const Hdf5NamedArray& array : walk.arrays) names_.push_back(array.path);
    for (const auto& [path, error] : walk.lost_links) names_.push_back(path);
    for (const auto& [path, file] : walk.links_outside) names_.push_back(path);
    std::sort(names_.begin(), names_.end());
  }
  // True if the file has an object `group` or one below it. Also true for groups that could not be
  // read, which may have objects.
  bool has_group(const std::string& group) const {
    if (std::binary_search(names_.begin(), names_.end(), group)) return true;
    const std::string below = group + "/";
    auto first = std::lower_bound(names_.begin(), names_.end(), below);
    return first != names_.end() && first->starts_with(below);
  }

 private:
  std::vector<std::string_view> names_;
};

// Reports groups that the index assigns to a file without them.
void check_against_index(CheckpointBuilder& builder, const KerasIndex& index,
                         const std::vector<Hdf5Shard>& shards) {
  if (index.empty()) return;
  std::map<std::string_view, NamesInFile> files;
  for (const Hdf5Shard& shard : shards) files.try_emplace(shard.path, shard.walk);
  for (const auto& [group, file] : index) {
    auto found = files.find(file);
    if (found == files.end() || found->second.has_group(group)) continue;
    Finding finding = bad_record_finding(
        group, fmt::format("The index places {} in {}, but it is not there.", group, file));
    finding.subjects.push_back(file);
    builder.add_finding(std::move(finding));
    builder.add_unclaimed_record({group, std::nullopt, {builder.file(file), 0, 0}});
  }
}

std::map<std::string_view, std::vector<std::string>> groups_by_file(const KerasIndex& index) {
  std::map<std::string_view, std::vector<std::string>> groups;
  for (const auto& [group, file] : index) groups[file].push_back(group);
  return groups;
}

// Opens the newest of several saves of one model in a folder, as Keras's ModelCheckpoint writes
// them; nullopt if names do not tell which is the newest.
std::optional<OpenedCheckpoint> open_newest(const std::shared_ptr<const Directory>& directory,
                                            std::vector<std::string> files, Progress* progress) {
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return natural_less(a, b); });
  const auto newest = newest_by_name(files);
  if (!newest) return std::nullopt;
  auto opened = open_hdf5(std::make_shared<SingleFileDirectory>(directory, *newest), progress);
  if (!opened) return opened;
  std::erase(files, *newest);
  return CheckpointBuilder::with_finding(**opened,
                                         newest_file_finding({*newest}, std::move(files)));
}

}  // namespace

OpenedCheckpoint open_hdf5(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(Hdf5Files listed, list_hdf5_files(*directory));
  if (progress != nullptr) progress->begin(Phase::kOpening, listed.files.size(), false);
  std::vector<Result<Hdf5Shard>> read(listed.files.size());
  SHW_CHECK(parallel_for(read.size(), [&](std::size_t i) -> Status {
    if (is_cancelled(progress)) return cancelled_error();
    read[i] = read_hdf5_shard(*directory, listed.files[i]);
    if (progress != nullptr) progress->add(1);
    return {};
  }));

  CheckpointBuilder builder;
  builder.set_format(kHdf5Format);
  builder.set_directory(directory);
  auto indexed = groups_by_file(listed.index);
  std::vector<Hdf5Shard> shards;
  for (std::size_t i = 0; i < read.size(); ++i) {
    builder.file(listed.files[i]);
    if (read[i]) {
      shards.push_back(std::move(*read[i]));
      continue;
    }
    // Contents of a missing file are only known from the index.
    std::vector<std::string>& groups = indexed[listed.files[i]];
    for (const std::string& group : groups)
      builder.add_unclaimed_record({group, std::nullopt, {builder.file(listed.files[i]), 0, 0}});
    builder.add_finding(
        unread_file_finding(listed.files[i], read[i].error(), std::move(groups), "group"));
  }
  if (shards.empty()) {
    if (read.empty()) return fail(ErrorKind::kIo, "holds no HDF5 file", {directory->name()});
    return tl::unexpected<Error>(std::move(read.front()).error());
  }
  std::map<std::string, std::vector<Hdf5Piece>> tensors;
  std::vector<std::string> order;
  for (const Hdf5Shard& shard : shards) {
    for (const auto& [path, array] : shard.walk.arrays) {
      if (!*array) continue;
      auto& pieces = tensors[path];
      if (pieces.empty()) order.push_back(path);
      pieces.push_back({shard.path, &**array});
    }
  }
  if (Status parts = check_parts(tensors, *directory); !parts) {
    auto newest = open_newest(directory, listed.files, progress);
    if (!newest) return tl::unexpected<Error>(std::move(parts).error());
    return *newest;
  }
  Hdf5Limits limits = hdf5_limits(shards);
  for (const std::string& fqn : order) add_hdf5_tensor(builder, fqn, tensors[fqn], limits);
  for (const Hdf5Shard& shard : shards) add_unread(builder, shard);
  check_against_index(builder, listed.index, shards);
  return builder.finish();
}

}  // namespace shw

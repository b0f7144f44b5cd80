#include "core/formats/flax/flax_open.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/natural_order.h"
#include "core/base/words.h"
#include "core/formats/chosen_step.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/flat_ranges.h"
#include "core/formats/common/lfs_pointer.h"
#include "core/formats/common/not_examined_finding.h"
#include "core/formats/common/part_names.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/weight_map.h"
#include "core/formats/flax/flax_tree.h"
#include "core/formats/single_file_directory.h"
#include "core/model/builder.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr const char* kFlaxIndex = "flax_model.msgpack.index.json";

// "checkpoint_100": flax.training.checkpoints writes steps without a file suffix.
bool is_step_name(std::string_view path) {
  constexpr std::string_view kFlaxStep = "checkpoint_";
  if (!path.starts_with(kFlaxStep)) return false;
  path.remove_prefix(kFlaxStep.size());
  return !path.empty() &&
         std::all_of(path.begin(), path.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct FlaxPaths {
  std::vector<std::string> opened;
  std::vector<std::string> missing = {};  // parts that the names of others imply
  std::vector<std::string> aside = {};    // earlier steps
};

// Parts that "flax_model-00001-of-00002.msgpack" implies.
std::vector<std::string> missing_parts(const std::vector<std::string>& paths) {
  std::vector<PartName> parts;
  for (const std::string& path : paths) {
    if (auto part = parse_part_name(path, kFlaxSuffix)) parts.push_back(std::move(*part));
  }
  return parts_not_among(parts, kFlaxSuffix);
}

// A file with an unspecific name is recognised by its first bytes.
Result<FlaxPaths> flax_paths(const DirectoryContents& look) {
  constexpr std::uint64_t kFlaxBegin = 64;
  SHW_TRY(auto entries, look.entries());
  FlaxPaths paths;
  std::vector<std::string> steps;
  for (const Entry& entry : entries) {
    if (!is_top_file(entry)) continue;
    if (entry.path.ends_with(kFlaxSuffix)) paths.opened.push_back(entry.path);
    if (!is_step_name(entry.path)) continue;
    SHW_TRY(Bytes first, look.first_bytes(entry.path, kFlaxBegin));
    if (begins_as_flax(first)) steps.push_back(entry.path);
  }
  std::sort(steps.begin(), steps.end(),
            [](const auto& a, const auto& b) { return natural_less(a, b); });
  if (!is_single_file_directory(look.directory())) paths.missing = missing_parts(paths.opened);
  if (!paths.opened.empty() || steps.empty()) return paths;
  paths.opened = {steps.back()};
  steps.pop_back();
  paths.aside = std::move(steps);
  return paths;
}

class FlaxOpening {
 public:
  FlaxOpening(std::shared_ptr<const Directory> directory, Progress* progress)
      : directory_(std::move(directory)), progress_(progress) {
    builder_.set_format(kFlaxFormat);
    builder_.set_directory(directory_);
  }

  OpenedCheckpoint run() {
    SHW_TRY(FlaxPaths paths, flax_paths(DirectoryContents(*directory_)));
    if (paths.opened.empty())
      return fail(ErrorKind::kIo, "holds no flax file", {directory_->name()});
    for (const std::string& path : paths.missing) builder_.file(path);
    for (const std::string& path : paths.opened) {
      if (is_cancelled(progress_)) return cancelled_error();
      SHW_CHECK(add_file(path));
    }
    check_index();
    if (!any_ && first_) return tl::unexpected<Error>(std::move(*first_));
    auto opened = builder_.finish(progress_);
    if (paths.aside.empty()) return opened;
    return CheckpointBuilder::with_finding(
        *opened,
        chosen_step_finding({paths.opened.front(), "the newest step by its number", paths.aside}));
  }

 private:
  Status add_file(const std::string& path) {
    SHW_TRY(auto source, directory_->open(path));
    SHW_CHECK(check_is_no_lfs_pointer(*source));
    auto tree = read_flax_tree(*source);
    builder_.file(path);
    if (!tree) {
      builder_.add_finding(unread_file_finding(path, tree.error(), {}, "tensor"));
      if (!first_) first_ = std::move(tree).error();
      return {};
    }
    any_ = true;
    read_.insert(path);
    for (const FlaxArray& array : tree->arrays) {
      SHW_CHECK(claim_name(array.name, path));
      add_array(array, path);
    }
    for (auto& [name, opcodes] : tree->values) {
      SHW_CHECK(claim_name(name, path));
      builder_.add_object(
          {.fqn = name, .item = {}, .inlined = InlinedValue{std::move(opcodes), {}}});
    }
    return {};
  }

  // transformers writes an index next to several files: its names have "/" between the keys.
  void check_index() {
    if (is_single_file_directory(*directory_) ||
        directory_->stat(kFlaxIndex).kind != EntryKind::kFile)
      return;
    std::optional<Finding> problem;
    const auto map = read_weight_map(*directory_, kFlaxIndex, problem);
    if (problem) builder_.add_finding(std::move(*problem));
    if (!map) return;
    std::vector<std::string> missing;
    for (const auto& [name, file] : *map) {
      std::string fqn = name;
      std::ranges::replace(fqn, '/', '.');
      if (!names_.contains(fqn) && read_.contains(file)) missing.push_back(std::move(fqn));
    }
    if (missing.empty()) return;
    Finding finding = bad_record_finding(
        kFlaxIndex, fmt::format("{} lists {} that {} not in the listed file: {}. The index or the "
                                "file comes from another save.",
                                kFlaxIndex, plural(missing.size(), "array"),
                                missing.size() == 1 ? "is" : "are", short_list_text(missing)));
    finding.subjects.insert(finding.subjects.end(), missing.begin(), missing.end());
    builder_.add_finding(std::move(finding));
  }

  Status claim_name(const std::string& name, const std::string& path) {
    if (names_.insert(name).second) return {};
    return fail(ErrorKind::kUnsupported,
                fmt::format("holds {} twice: two keys of the tree, or two files ({} is one), have "
                            "this name",
                            name, path),
                {directory_->name()}, "Give the path of one of its files.");
  }

  void report(const FlaxArray& array, const std::string& path) {
    const bool is_damaged = array.dtype != Dtype::kUnknown;
    builder_.add_unclaimed_record({array.name, std::nullopt, {builder_.file(path), 0, 0}});
    const std::string cause = fmt::format("{} in {} {}.", array.name, path, array.problem);
    builder_.add_finding(is_damaged ? bad_record_finding(array.name, cause, array.at)
                                    : not_examined_finding({array.name, path}, cause));
  }

  void add_array(const FlaxArray& array, const std::string& path) {
    if (!array.problem.empty()) return report(array, path);
    builder_.add_tensor(array.name, array.dtype, array.shape);
    const FileId file = builder_.file(path);
    const auto bytes_of = static_cast<std::int64_t>(size_of(array.dtype));
    for (const FlaxRun& run : array.runs) {
      const auto add = [&](const Box& box, std::int64_t first) {
        const auto count = volume(box.sizes).value_or(0);
        const ItemPlace place{
            file, static_cast<std::int64_t>(run.offset) + (first - run.first) * bytes_of,
            count * bytes_of};
        const ChunkId chunk = builder_.add_chunk(box.offsets, box.sizes);
        builder_.set_view(chunk, builder_.add_storage(place, &kRawCodec, {}), 0,
                          row_major_strides(box.sizes));
      };
      if (array.runs.size() == 1)
        add(whole(array.shape), run.first);
      else
        for_each_flat_box(array.shape, run.first, run.first + run.count, add);
    }
  }

  std::shared_ptr<const Directory> directory_;
  Progress* progress_;
  CheckpointBuilder builder_;
  std::set<std::string> names_;
  std::set<std::string> read_;  // files
  std::optional<Error> first_;
  bool any_ = false;
};

}  // namespace

Result<bool> has_flax(const DirectoryContents& look) {
  SHW_TRY(FlaxPaths paths, flax_paths(look));
  return !paths.opened.empty();
}

OpenedCheckpoint open_flax(std::shared_ptr<const Directory> directory, Progress* progress) {
  return FlaxOpening(std::move(directory), progress).run();
}

}  // namespace shw

#include "core/formats/orbax/orbax_open.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/not_examined_finding.h"
#include "core/formats/orbax/orbax_metadata.h"
#include "core/formats/orbax/stored_keys.h"
#include "core/formats/orbax/zarr_columns.h"
#include "core/model/builder.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxOrbaxJson = std::uint64_t{256} << 20;

bool has_file(std::span<const Entry> entries, const std::string& path) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const Entry& entry) { return entry.path == path; });
}

// The folder of a file with this name, "" for the top; nullopt for other files.
std::optional<std::string> folder_of_named_file(std::string_view path, std::string_view file) {
  if (path == file) return std::string();
  if (!path.ends_with(file) || path[path.size() - file.size() - 1] != '/') return std::nullopt;
  return std::string(path.substr(0, path.size() - file.size()));
}

bool is_zarr_json(std::string_view path) {
  return folder_of_named_file(path, kZarrTwo) || folder_of_named_file(path, kZarrThree);
}

Result<Bytes> read_small_orbax_file(const Directory& directory, const std::string& path) {
  SHW_TRY(auto source, directory.open(path));
  if (source->size() > kMaxOrbaxJson)
    return fail(ErrorKind::kUnsupported, "is larger than 256 MiB", {path});
  return read_bytes(*source, 0, source->size());
}

// Reports leaves of the recorded Python tree that are not stored.
void report_unstored_leaves(CheckpointBuilder& builder, const std::string& path,
                            const OrbaxTree& tree, const std::string& prefix,
                            const std::vector<std::string>& there) {
  const std::set<std::string_view> stored(there.begin(), there.end());
  std::vector<std::string> missing;
  for (const std::string& array : tree.arrays) {
    if (!stored.contains(prefix + array)) missing.push_back(prefix + array);
  }
  if (missing.empty()) return;
  Finding finding = bad_record_finding(
      path, fmt::format(
                "{} names {} that {} not stored: {}. Orbax fails there when it restores the tree.",
                path, plural(missing.size(), "array"), missing.size() == 1 ? "is" : "are",
                short_list_text(missing)));
  finding.subjects.insert(finding.subjects.begin(), missing.begin(), missing.end());
  builder.add_finding(std::move(finding));
  for (std::string& array : missing)
    builder.add_unclaimed_record({std::move(array), std::nullopt, {builder.file(path), 0, 0}});
}

constexpr std::string_view kOrbaxTexts = "_strings.json";

// pickle's opcode of a text: "X", four bytes of length, UTF-8.
std::string opcodes_of_text(const std::string& text) {
  std::string opcodes = "X";
  for (int shift = 0; shift < 32; shift += 8)
    opcodes += static_cast<char>(text.size() >> shift & 0xFF);
  return opcodes + text;
}

// Adds texts of the tree as non-tensor entries. report_non_array_leaves() reports those without a
// value.
void add_texts(CheckpointBuilder& builder, FolderWithNodes& folder, const std::string& item,
               const std::string& prefix, std::span<const Entry> entries, OrbaxTree& tree) {
  if (tree.texts.empty()) return;
  std::map<std::string, std::string> values;
  if (has_file(entries, item + std::string(kOrbaxTexts))) {
    if (auto json = read_small_orbax_file(folder, item + std::string(kOrbaxTexts)))
      values = parse_orbax_texts(*json);
  }
  for (const std::string& name : tree.texts) {
    const auto value = values.find(name);
    if (value == values.end()) {
      tree.others.push_back(name);
      continue;
    }
    builder.add_object({.fqn = prefix + name,
                        .item = {},
                        .inlined = InlinedValue{opcodes_of_text(value->second), {}}});
  }
}

// Reports leaves that are neither arrays nor texts.
void report_non_array_leaves(CheckpointBuilder& builder, const std::string& path,
                             const OrbaxTree& tree, const std::string& prefix) {
  if (tree.others.empty()) return;
  std::vector<std::string> names;
  for (const std::string& one : tree.others) names.push_back(prefix + one);
  builder.add_finding(not_examined_finding(
      {path},
      fmt::format("{} of the tree {} of an unsupported type: {}.", plural(names.size(), "entry"),
                  names.size() == 1 ? "is" : "are", short_list_text(names))));
}

Status add_item(CheckpointBuilder& builder, FolderWithNodes& folder, const std::string& item,
                const std::string& prefix, std::span<const Entry> entries,
                const Progress* progress) {
  const std::string path = item + std::string(kOrbaxMetadata);
  std::optional<OrbaxTree> tree;
  if (has_file(entries, path)) {
    auto json = read_small_orbax_file(folder, path);
    auto parsed = json ? parse_orbax_tree(*json)
                       : Result<OrbaxTree>(tl::unexpected<Error>(std::move(json).error()));
    if (parsed)
      tree = std::move(*parsed);
    else
      builder.add_finding(
          bad_record_finding(path, fmt::format("{} {}. It is not known which arrays were saved.",
                                               path, parsed.error().message)));
  }
  ZarrStore store{folder, {}, prefix, AbsentChunks::kReadAsZeros};
  if (tree && tree->has_all_chunks) store.absent = AbsentChunks::kReportAsMissing;
  SHW_TRY(store.keys, stored_keys(folder, item, entries, progress));
  SHW_TRY(auto there, add_zarr_arrays(builder, store, progress));
  if (tree) report_unstored_leaves(builder, path, *tree, prefix, there);
  if (tree) {
    add_texts(builder, folder, item, prefix, entries, *tree);
    report_non_array_leaves(builder, path, *tree, prefix);
  }
  return {};
}

// Reports items of the save whose folders do not exist.
void check_items(CheckpointBuilder& builder, const std::string& path, BytesView json,
                 std::span<const Entry> entries) {
  std::vector<std::string> missing;
  for (const std::string& item : saved_items(json)) {
    const bool is_there = std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
      return entry.path.starts_with(item + "/");
    });
    if (!is_there) missing.push_back(item);
  }
  if (missing.empty()) return;
  Finding finding = bad_record_finding(
      path,
      fmt::format("{} says that {} {} saved, but {} missing. Orbax fails when it restores {}.",
                  path, short_list_text(missing), missing.size() == 1 ? "was" : "were",
                  missing.size() == 1 ? "its folder is" : "their folders are",
                  missing.size() == 1 ? "it" : "them"));
  finding.subjects.insert(finding.subjects.end(), missing.begin(), missing.end());
  builder.add_finding(std::move(finding));
}

// A database without _METADATA. Orbax before 0.4 described the tree in a file "checkpoint".
void check_described(CheckpointBuilder& builder, const std::string& item,
                     std::span<const Entry> entries) {
  const std::string path = item + std::string(kOrbaxMetadata);
  if (has_file(entries, path) || has_file(entries, item + "checkpoint") ||
      !has_file(entries, item + std::string(kOcdbtManifest)))
    return;
  Finding finding = bad_record_finding(
      path, fmt::format("{} is missing: Orbax can restore the arrays only into a given target "
                        "tree; without one it fails with \"Metadata file does not exist\".",
                        path));
  finding.severity = Severity::kWarning;
  builder.add_finding(std::move(finding));
}

void check_saved(CheckpointBuilder& builder, const Directory& folder,
                 std::span<const Entry> entries) {
  const std::string path(kOrbaxCheckpointMetadata);
  if (!has_file(entries, path)) return;
  auto json = read_small_orbax_file(folder, path);
  if (!json) return;
  check_items(builder, path, *json, entries);
  if (!is_uncommitted(*json)) return;
  builder.add_finding(
      bad_record_finding(path, fmt::format("The save did not finish: {} has a start time but no "
                                           "commit time. Orbax does not restore such a step.",
                                           path)));
}

}  // namespace

std::optional<Error> unfinished_orbax(std::span<const Entry> entries, const std::string& item) {
  bool has_parts = false, is_joined = false;
  for (const Entry& entry : entries) {
    if (!entry.path.starts_with(item)) continue;
    const std::string_view path = std::string_view(entry.path).substr(item.size());
    has_parts =
        has_parts || (path.ends_with("/manifest.ocdbt") && path.starts_with(kOcdbtOfProcess));
    is_joined = is_joined || path == kOcdbtManifest;
  }
  if (!has_parts || is_joined) return std::nullopt;
  return Error{ErrorKind::kDamaged,
               "the Orbax save did not finish: there are databases of single processes, but no "
               "manifest.ocdbt that joins them",
               {item},
               "Use the previous step."};
}

std::vector<std::string> orbax_items(std::span<const Entry> entries) {
  std::set<std::string> with_tree, with_arrays;
  for (const Entry& entry : entries) {
    for (std::string_view file : {kOrbaxMetadata, kOcdbtManifest}) {
      const auto folder = folder_of_named_file(entry.path, file);
      // Databases of single processes are parts of the joined one.
      if (folder && folder->find(kOcdbtOfProcess) == std::string::npos &&
          std::count(folder->begin(), folder->end(), '/') <= 1)
        with_tree.insert(*folder);
    }
    if (is_zarr_json(entry.path)) with_arrays.insert("");
  }
  if (with_tree.contains("")) return {""};
  if (!with_tree.empty()) return {with_tree.begin(), with_tree.end()};
  return {with_arrays.begin(), with_arrays.end()};
}

OpenedCheckpoint open_orbax(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(auto entries, directory->list());
  const std::vector<std::string> items = orbax_items(entries);
  if (auto unfinished = unfinished_orbax(entries, "")) {
    unfinished->place.file = directory->name();
    return tl::unexpected<Error>(std::move(*unfinished));
  }
  if (items.empty())
    return fail(ErrorKind::kDamaged,
                "has Orbax metadata but no arrays: it has neither manifest.ocdbt nor a .zarray",
                {directory->name()}, "Use the previous step.");
  auto folder = std::make_shared<FolderWithNodes>(directory);
  CheckpointBuilder builder;
  builder.set_format(kOrbaxFormat);
  builder.set_directory(folder);
  for (const std::string& item : items) {
    if (auto unfinished = unfinished_orbax(entries, item))
      return tl::unexpected<Error>(std::move(*unfinished));
    std::string prefix;
    if (items.size() > 1) prefix = item.substr(0, item.size() - 1) + ".";
    SHW_CHECK(add_item(builder, *folder, item, prefix, entries, progress));
    check_described(builder, item, entries);
  }
  check_saved(builder, *folder, entries);
  if (is_cancelled(progress)) return cancelled_error();
  return builder.finish(progress);
}

}  // namespace shw

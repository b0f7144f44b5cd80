#include "core/formats/safetensors/safetensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>

#include "core/base/cancellable_range.h"
#include "core/base/checked.h"
#include "core/base/destroy_in_background.h"
#include "core/base/parallel.h"
#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/filled_attribute.h"
#include "core/formats/common/index_checks.h"
#include "core/formats/common/open_advice.h"
#include "core/formats/common/part_names.h"
#include "core/formats/common/safetensors_header.h"
#include "core/formats/common/weight_map.h"
#include "core/formats/safetensors/other_models.h"
#include "core/formats/safetensors/safetensors_files.h"
#include "core/formats/safetensors/safetensors_formats.h"
#include "core/formats/safetensors/safetensors_index.h"
#include "core/formats/safetensors/safetensors_names.h"
#include "core/formats/single_file_directory.h"
#include "core/model/builder.h"

namespace shw {
namespace {

std::vector<IndexedFile> indexed_files(const std::vector<SafetensorsFile>& files) {
  std::vector<IndexedFile> out;
  for (const SafetensorsFile& file : files) out.push_back(indexed_file(file));
  return out;
}

// Adds tensors that the index assigns to unreadable files, in one pass over the
// index.
void add_unread(CheckpointBuilder& builder, const std::vector<Error>& errors,
                const WeightMap* index) {
  if (errors.empty()) return;
  std::unordered_map<std::string_view, std::vector<std::string>> tensors_of;
  for (const Error& error : errors) tensors_of[error.place.file];
  if (index != nullptr) {
    for (const auto& [fqn, path] : *index) {
      auto found = tensors_of.find(path);
      if (found != tensors_of.end()) found->second.push_back(fqn);
    }
  }
  for (const Error& error : errors) {
    const std::string& path = error.place.file;
    builder.file(path);
    builder.add_finding(unread_file_finding(path, error, std::move(tensors_of[path]), "tensor"));
  }
}

// Files of the checkpoint that are readable; others are reported. An error if none is readable.
Result<std::vector<SafetensorsFile>> readable_files(CheckpointBuilder& builder,
                                                    SafetensorsFiles& found) {
  std::vector<SafetensorsFile> files;
  std::vector<Error> errors;
  for (const std::string& path : found.paths) {
    Result<SafetensorsFile>& file = found.headers.at(path);
    if (file)
      files.push_back(std::move(*file));
    else
      errors.push_back(std::move(file).error());
  }
  if (files.empty()) return tl::unexpected<Error>(std::move(errors.front()));
  add_unread(builder, errors, found.index ? &*found.index : nullptr);
  return files;
}

// A chunk before it is added to the builder.
struct Piece {
  const SafetensorsFile* file;
  const SafetensorsEntry* entry;
  std::uint32_t tensor;  // numbered by first occurrence of names
  Extents offsets() const {
    const Extents* saved = file->sharding ? file->sharding->find(entry->name) : nullptr;
    return saved != nullptr ? *saved : Extents(entry->shape.size(), 0);
  }
};
using Pieces = std::span<const Piece>;

// Chunks sorted by tensor. Names stay in the headers, since allocations for each of 250,000 tensors
// would be slow.
std::vector<Piece> gather(const std::vector<SafetensorsFile>& files, const Progress* progress) {
  std::vector<Piece> pieces;
  std::size_t count = 0;
  for (const SafetensorsFile& file : files) count += file.header.entries.size();
  pieces.reserve(count);
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  numbers.reserve(count);
  for (const SafetensorsFile& file : files) {
    for (const SafetensorsEntry& entry : cancellable_range(file.header.entries, progress)) {
      auto number = static_cast<std::uint32_t>(numbers.size());
      pieces.push_back({&file, &entry, numbers.try_emplace(entry.name, number).first->second});
    }
  }
  auto before = [](const Piece& a, const Piece& b) { return a.tensor < b.tensor; };
  if (!std::is_sorted(pieces.begin(), pieces.end(), before))
    cancellable_stable_sort(pieces.begin(), pieces.end(), before, progress);
  return pieces;
}

// The error for files that are not one checkpoint: other forms of a model, or per-rank tensors.
Error separate_models_error(const Directory& directory, const Piece& first, const Piece& second) {
  const std::string &a = first.file->path, &b = second.file->path;
  const std::string both = fmt::format("{} and {} both hold {}", a, b, first.entry->name);
  return {
      ErrorKind::kUnsupported,
      fmt::format("holds several checkpoints: {}, and no index decides which one to load", both),
      {directory.name()},
      fmt::format("Give the path of one of them: {} or {}. {}", a, b,
                  advice_to_open(directory, a))};
}

// Without an index, files form one checkpoint if no tensor is in two of them, or if their names
// mark them as parts.
std::optional<Error> find_separate_models(const Directory& directory, Pieces pieces) {
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const Piece &first = pieces[i - 1], &second = pieces[i];
    if (first.tensor == second.tensor && first.file != second.file &&
        !are_parts_of_one_save(first.file->path, second.file->path))
      return separate_models_error(directory, first, second);
  }
  return std::nullopt;
}

// The maximum of offset + size over pieces of the first one's rank. Negative and overflowing values
// are ignored here and found by rules on chunks.
Extents inferred_shape(Pieces pieces) {
  Extents shape = pieces.front().entry->shape;
  for (const Piece& piece : pieces) {
    const Extents offsets = piece.offsets();
    if (offsets.size() != shape.size() || piece.entry->shape.size() != shape.size()) continue;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      auto end = checked_add(offsets[d], piece.entry->shape[d]);
      if (end && offsets[d] >= 0) shape[d] = std::max(shape[d], *end);
    }
  }
  return shape;
}

void add_tensor(CheckpointBuilder& builder, Pieces pieces) {
  const std::string& fqn = pieces.front().entry->name;
  Dtype dtype = pieces.front().entry->dtype;
  builder.add_tensor(fqn, dtype, inferred_shape(pieces));
  for (const Piece& piece : pieces) {
    const SafetensorsEntry& entry = *piece.entry;
    builder.add_chunk(piece.offsets(), entry.shape,
                      {builder.file(piece.file->path), static_cast<std::int64_t>(entry.begin),
                       static_cast<std::int64_t>(entry.end - entry.begin)});
    if (entry.dtype != dtype)
      builder.add_finding(bad_record_finding(
          fqn,
          "The shard in " + piece.file->path + " is " + entry.dtype_text + ", the one in " +
              pieces.front().file->path + " is " + pieces.front().entry->dtype_text + ".",
          entry.begin));
  }
}

// torch needs sharding info for every tensor of a file that has any, and fails at the first one
// missing.
void check_sharding(CheckpointBuilder& builder, const SafetensorsFile& file) {
  if (!file.sharding) return;
  Finding finding = bad_record_finding(file.path, "");
  finding.subjects.clear();
  for (const SafetensorsEntry& entry : file.header.entries) {
    if (file.sharding->find(entry.name) == nullptr) finding.subjects.push_back(entry.name);
  }
  if (finding.subjects.empty()) return;
  finding.cause =
      fmt::format("{} of {} does not record where {} of it {} ({}): a load fails there.",
                  kShardingInfoKey, file.path, plural(finding.subjects.size(), "tensor"),
                  finding.subjects.size() == 1 ? "is" : "are", short_list_text(finding.subjects));
  finding.subjects.push_back(file.path);
  builder.add_finding(std::move(finding));
}

// safetensors 0.8 rejects files with bytes outside all tensors.
Finding unowned_bytes_finding(const SafetensorsFile& file, const SafetensorsProblem& problem) {
  Finding finding{.rule = "unowned-bytes", .subjects = {file.path}};
  finding.cause = fmt::format(
      "{} has {} bytes that belong to no tensor, from byte {} on: {}. safetensors refuses such a "
      "file; all tensors in its header were found and read.",
      file.path, human_count(problem.unowned), human_count(problem.at),
      problem.tensor.empty() ? "an upload or copy added bytes after the last tensor"
                             : fmt::format("they are before {}", problem.tensor));
  finding.evidence = {{"offset", static_cast<std::int64_t>(problem.at)},
                      {"bytes", static_cast<std::int64_t>(problem.unowned)}};
  finding.remedy = Remedy{"rewrite-metadata", true,
                          "Rewrite the file without those bytes. Tensors do not change."};
  return finding;
}

void add_problems(CheckpointBuilder& builder, const SafetensorsFile& file) {
  for (const SafetensorsProblem& problem : file.header.problems) {
    if (problem.is_file_truncated) continue;  // short-file reports the tensors there
    if (problem.is_unowned) {
      builder.add_finding(unowned_bytes_finding(file, problem));
      continue;
    }
    Finding finding =
        bad_record_finding(file.path, "In " + file.path + ": " + problem.message + ".", problem.at);
    if (problem.is_unread) {
      finding.rule = "not-looked-at";
      finding.severity = Severity::kInfo;
    }
    if (!problem.tensor.empty()) finding.subjects.insert(finding.subjects.begin(), problem.tensor);
    builder.add_finding(std::move(finding));
  }
}

// Python and other JSON readers may choose another value of a repeated key.
void add_repeated(CheckpointBuilder& builder, const SafetensorsFile& file) {
  const std::vector<std::string>& names = file.header.repeated;
  if (names.empty()) return;
  Finding finding = bad_record_finding(
      file.path, fmt::format("The header of {} says {} more than once: like safetensors, the last "
                             "one was read; the earlier ones are not accessible.",
                             file.path, short_list_text(names)));
  finding.severity = Severity::kWarning;
  finding.evidence = {{"names", static_cast<std::int64_t>(names.size())}};
  builder.add_finding(std::move(finding));
}

// Filled elements by earlier repairs, which each file stores for its own tensors.
Provenance provenance_of(const std::vector<SafetensorsFile>& files) {
  Provenance seen;
  for (const SafetensorsFile& file : files) {
    if (const std::string* text = file.header.find_metadata(kFilledAttribute))
      seen.plain_attributes.emplace_back(kFilledAttribute, pickled_text(*text));
  }
  return seen;
}

// Files of the numbered pattern that are missing and that the index does not need.
std::vector<std::string> missing_numbered_files(const WeightMap& map,
                                                const std::vector<std::string>& paths) {
  const std::vector<std::string_view> named = sorted_index_files(map);
  std::vector<std::string> missing = missing_parts(paths);
  std::erase_if(missing, [&](const std::string& path) {
    return std::binary_search(named.begin(), named.end(), std::string_view(path));
  });
  return missing;
}

void add_tensors(CheckpointBuilder& builder, Pieces pieces, const Progress* progress) {
  for (std::size_t first = 0, last = 0; first < pieces.size() && !is_cancelled(progress);
       first = last) {
    while (last < pieces.size() && pieces[last].tensor == pieces[first].tensor) ++last;
    add_tensor(builder, pieces.subspan(first, last - first));
  }
}

// transformers finds models in parts only by their index. Other programs omit it deliberately:
// torch, vLLM and SGLang read every file. A config.json makes the folder one of transformers.
void check_has_index(CheckpointBuilder& builder, const std::vector<std::string>& paths,
                     const Directory& directory) {
  const bool are_parts = paths.size() > 1 && are_parts_of_one_save(paths.front(), paths.back()) &&
                         model_stem(paths.front()) == "model";
  if (!are_parts || !missing_parts(paths).empty()) return;
  const bool is_model = directory.stat("config.json").kind == EntryKind::kFile;
  builder.add_finding(parts_without_index_finding(paths, kSafetensorsIndexNames,
                                                  is_model ? Severity::kWarning : Severity::kInfo));
}

// Reports missing files.
void check_files(CheckpointBuilder& builder, const SafetensorsFiles& found,
                 const std::vector<SafetensorsFile>& files, bool sharded,
                 const Directory& directory) {
  if (!found.index) {
    if (is_single_file_directory(directory)) return;
    for (const std::string& path : missing_parts(found.paths)) builder.file(path);
    if (!found.index_path && !sharded) check_has_index(builder, found.paths, directory);
    return;
  }
  const MatchedIndex matched(
      {*found.index_path, *found.index, indexed_files(files), found.total,
       missing_numbered_files(*found.index, found.paths), true, found.not_there,
       is_ignored_by_transformers(directory, kSafetensorsIndexNames, *found.index_path)});
  check_index(builder, matched);
  report_tensors_not_in_index(builder, matched);
  if (found.not_there.empty())
    report_ignored_index(builder, kSafetensorsIndexNames, *found.index_path, *found.index,
                         directory);
  if (!sharded) check_index_as_transformers(builder, matched);
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> open_safetensors(
    std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(SafetensorsFiles found, find_safetensors_files(*directory, progress));
  if (is_cancelled(progress)) {
    destroy_in_background(std::move(found));
    return cancelled_error();
  }
  CheckpointBuilder builder;
  SHW_TRY(std::vector<SafetensorsFile> files, readable_files(builder, found));
  const bool sharded = std::any_of(files.begin(), files.end(), [](const SafetensorsFile& file) {
    return file.sharding.has_value();
  });
  builder.set_format(sharded ? kHfShardedFormat : kSafetensorsFormat);
  builder.set_directory(directory);
  builder.set_provenance(provenance_of(files));
  std::vector<Piece> pieces = gather(files, progress);
  if (!found.index_path && !sharded) {
    auto several = find_separate_models(*directory, pieces);
    if (!several) several = find_other_models(*directory, found.paths);
    if (several) return tl::unexpected<Error>(std::move(*several));
  }
  add_tensors(builder, pieces, progress);
  for (const SafetensorsFile& file : files) {
    builder.file(file.path);
    add_problems(builder, file);
    add_repeated(builder, file);
    check_sharding(builder, file);
  }
  check_files(builder, found, files, sharded, *directory);
  if (found.finding) builder.add_finding(std::move(*found.finding));
  if (!found.adapters.empty()) builder.add_finding(adapters_finding(found.adapters));
  if (!found.variants.empty())
    builder.add_finding(variants_finding(found.variants, found.paths.front()));
  if (!found.steps.empty())
    builder.add_finding(older_steps_finding(found.steps, found.paths.front()));
  std::shared_ptr<const Checkpoint> checkpoint;
  if (!is_cancelled(progress)) checkpoint = builder.finish(progress);
  destroy_in_background(
      std::tuple(std::move(builder), std::move(files), std::move(pieces), std::move(found)));
  if (!is_cancelled(progress)) return checkpoint;
  destroy_in_background(std::move(checkpoint));
  return cancelled_error();
}

}  // namespace shw

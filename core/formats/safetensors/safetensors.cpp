#include "core/formats/safetensors/safetensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>

#include "core/base/checked.h"
#include "core/base/leave_behind.h"
#include "core/base/parallel.h"
#include "core/base/until_cancelled.h"
#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/filled_attribute.h"
#include "core/formats/one_file.h"
#include "core/formats/safetensors/safetensors_formats.h"
#include "core/formats/safetensors/safetensors_header.h"
#include "core/formats/safetensors/safetensors_index.h"
#include "core/formats/safetensors/safetensors_names.h"
#include "core/formats/safetensors/weight_map.h"
#include "core/model/builder.h"

namespace shw {
namespace {

// One file, read.
struct FileHeader {
  std::string path;
  SafetensorsHeader header;
  std::optional<ShardingInfo> sharding;
};

Result<FileHeader> read_file(const Directory& directory, const std::string& path,
                             const Progress* progress) {
  SHW_TRY(auto source, directory.open(path));
  FileHeader file{path, {}, std::nullopt};
  SHW_TRY(file.header, read_safetensors_header(*source, progress));
  if (const std::string* text = file.header.find_metadata(kShardingInfoKey)) {
    SHW_TRY(file.sharding, parse_sharding_info(*text, path));
  }
  return file;
}

// The files at the top; those of "sharded/" and the like only where there is nothing above.
Result<std::vector<std::string>> list_files(const Directory& directory) {
  SHW_TRY(auto entries, directory.list());
  std::vector<std::string> top, below;
  std::set<std::string> folders;
  for (const Entry& entry : entries) {
    if (!entry.path.ends_with(kSafetensorsSuffix)) continue;
    std::size_t slash = entry.path.rfind('/');
    (slash == std::string::npos ? top : below).push_back(entry.path);
    if (slash != std::string::npos) folders.insert(entry.path.substr(0, slash));
  }
  if (!top.empty()) return top;
  if (below.empty()) return fail(ErrorKind::kIo, "holds no .safetensors file", {directory.name()});
  if (folders.size() > 1)
    return fail(ErrorKind::kUnsupported, "holds several checkpoints; name one of them",
                {directory.name()}, "for example " + directory.name() + "/" + *folders.begin());
  return below;
}

// A chunk on its way into the columns.
struct Piece {
  const FileHeader* file;
  const SafetensorsEntry* entry;
  std::uint32_t tensor;  // numbered as names are first met
  Extents offsets() const {
    const Extents* saved = file->sharding ? file->sharding->find(entry->name) : nullptr;
    return saved != nullptr ? *saved : Extents(entry->shape.size(), 0);
  }
};
using Pieces = std::span<const Piece>;

// By tensor. One list and one table of names that lie in the headers: what is made for each of
// 250,000 tensors has to be thrown away for each of them, too.
std::vector<Piece> gather(const std::vector<FileHeader>& files, const Progress* progress) {
  std::vector<Piece> pieces;
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  for (const FileHeader& file : files) {
    for (const SafetensorsEntry& entry : until_cancelled(file.header.entries, progress)) {
      auto number = static_cast<std::uint32_t>(numbers.size());
      pieces.push_back({&file, &entry, numbers.try_emplace(entry.name, number).first->second});
    }
  }
  auto before = [](const Piece& a, const Piece& b) { return a.tensor < b.tensor; };
  if (!std::is_sorted(pieces.begin(), pieces.end(), before))
    stable_sort_until_cancelled(pieces.begin(), pieces.end(), before, progress);
  return pieces;
}

// The maximum of offset + size over all pieces of the first one's rank; what is negative or leaves
// int64 does not count, and is found by the rules on chunks.
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
      builder.add_finding(bad_record(
          fqn,
          "The shard in " + piece.file->path + " is " + entry.dtype_text + ", the one in " +
              pieces.front().file->path + " is " + pieces.front().entry->dtype_text + ".",
          entry.begin));
  }
}

// torch asks the sharding info for every tensor of a file that has one, and stops at the first that
// is not in it.
void check_sharding(CheckpointBuilder& builder, const FileHeader& file) {
  if (!file.sharding) return;
  Finding finding = bad_record(file.path, "");
  finding.subjects.clear();
  for (const SafetensorsEntry& entry : file.header.entries) {
    if (file.sharding->find(entry.name) == nullptr) finding.subjects.push_back(entry.name);
  }
  if (finding.subjects.empty()) return;
  finding.cause =
      fmt::format("{} of {} does not say where {} of it {} ({}): a load stops there.",
                  kShardingInfoKey, file.path, plural(finding.subjects.size(), "tensor"),
                  finding.subjects.size() == 1 ? "lies" : "lie", some_of(finding.subjects));
  finding.subjects.push_back(file.path);
  builder.add_finding(std::move(finding));
}

// What it held is known from the index alone.
void add_unread(CheckpointBuilder& builder, const Error& error, const WeightMap* index) {
  const std::string& path = error.place.file;
  builder.file(path);
  std::vector<std::string> tensors;
  if (index != nullptr) {
    for (const auto& [fqn, said] : *index) {
      if (said == path) tensors.push_back(fqn);
    }
  }
  builder.add_finding(unread_file(path, error, std::move(tensors), "tensor"));
}

void add_problems(CheckpointBuilder& builder, const FileHeader& file) {
  for (const SafetensorsProblem& problem : file.header.problems) {
    if (problem.is_cut_off) continue;  // short-file says which tensors lie there
    Finding finding =
        bad_record(file.path, "In " + file.path + ": " + problem.message + ".", problem.at);
    if (!problem.tensor.empty()) finding.subjects.insert(finding.subjects.begin(), problem.tensor);
    builder.add_finding(std::move(finding));
  }
}

// Python's and other readers of JSON may take the first one.
void add_repeated(CheckpointBuilder& builder, const FileHeader& file) {
  const std::vector<std::string>& names = file.header.repeated;
  if (names.empty()) return;
  Finding finding = bad_record(
      file.path,
      fmt::format("The header of {} says {} more than once: safetensors takes the last one, and so "
                  "was done here; what stood there before is not to be had.",
                  file.path, some_of(names)));
  finding.severity = Severity::kWarning;
  finding.evidence = {{"names", static_cast<std::int64_t>(names.size())}};
  builder.add_finding(std::move(finding));
}

// An entry of the index that names another file than the one that holds the tensor.
struct Misplaced {
  std::string fqn, said, held;
};

void add_misplaced(CheckpointBuilder& builder, const std::string& index,
                   const std::vector<Misplaced>& entries) {
  if (entries.empty()) return;
  constexpr std::size_t kMostEvidence = 64;
  const Misplaced& first = entries.front();
  Finding finding;
  finding.rule = "index-misplaced";
  std::vector<std::string> lines;
  for (const Misplaced& entry : entries) {
    finding.subjects.push_back(entry.fqn);
    if (lines.size() < kMostEvidence)
      lines.push_back(entry.fqn + ": said to lie in " + entry.said + ", lies in " + entry.held);
  }
  finding.cause = fmt::format(
      "The index says that {} lies in {}, and it lies in {}{}: a loader that goes by the index "
      "does not find what is there.",
      first.fqn, first.said, first.held,
      entries.size() == 1 ? "" : fmt::format("; {} more entries are wrong", entries.size() - 1));
  finding.evidence = {
      {"index", index}, {"entries", lines}, {"count", static_cast<std::int64_t>(entries.size())}};
  finding.remedy = Remedy{"rewrite-metadata", true,
                          "Write the index anew from what each file holds. No tensor byte moves."};
  builder.add_finding(std::move(finding));
}

// What the index promises and the files do not hold. Of a tensor whose file cannot be read its name
// is all that is left.
void check_index(CheckpointBuilder& builder, const std::string& index, const WeightMap& map,
                 const std::vector<FileHeader>& files) {
  std::set<std::pair<std::string_view, std::string_view>> held;
  std::unordered_map<std::string_view, std::string_view> lies_in;
  std::set<std::string_view> readable;
  for (const FileHeader& file : files) {
    readable.insert(file.path);
    for (const SafetensorsEntry& entry : file.header.entries) {
      held.insert({entry.name, file.path});
      lies_in.emplace(entry.name, file.path);
    }
  }
  Finding missing = bad_record(index, "");
  missing.subjects.clear();
  std::vector<Misplaced> misplaced;
  for (const auto& [fqn, path] : map) {
    FileId file = builder.file(path);
    if (held.contains({fqn, path})) continue;
    if (auto found = lies_in.find(fqn); found != lies_in.end())
      misplaced.push_back({fqn, path, std::string(found->second)});
    else if (readable.contains(path))
      missing.subjects.push_back(fqn);
    else
      builder.add_stray({fqn, std::nullopt, {file, 0, 0}});
  }
  add_misplaced(builder, index, misplaced);
  if (missing.subjects.empty()) return;
  missing.cause = fmt::format(
      "The index places {} {} in files that do not hold them, and no other file does: {}{}",
      missing.subjects.size(), missing.subjects.size() == 1 ? "tensor" : "tensors",
      missing.subjects.front(), missing.subjects.size() == 1 ? "." : ", ...");
  missing.evidence.emplace_back("index", index);
  builder.add_finding(std::move(missing));
}

// What lies in the files that the index names, and not in the index.
void check_unnamed(CheckpointBuilder& builder, const std::string& index, const WeightMap& map,
                   const std::vector<FileHeader>& files) {
  std::set<std::string_view> named;
  for (const auto& [fqn, path] : map) named.insert(fqn);
  Finding finding = bad_record(index, "");
  finding.severity = Severity::kWarning;
  finding.subjects.clear();
  for (const FileHeader& file : files) {
    for (const SafetensorsEntry& entry : file.header.entries) {
      if (named.insert(entry.name).second) finding.subjects.push_back(entry.name);
    }
  }
  if (finding.subjects.empty()) return;
  finding.cause = fmt::format(
      "The index does not name {} that its files hold ({}): a loader that goes by the index leaves "
      "{} out.",
      plural(finding.subjects.size(), "tensor"), some_of(finding.subjects),
      finding.subjects.size() == 1 ? "it" : "them");
  finding.evidence = {{"index", index},
                      {"count", static_cast<std::int64_t>(finding.subjects.size())}};
  finding.subjects.push_back(index);
  builder.add_finding(std::move(finding));
}

// What an index is read with.
struct Indexed {
  const WeightMap& map;
  const std::vector<FileHeader>& files;
  const std::vector<std::string>& paths;
  std::optional<std::uint64_t> total;  // that it tells
};

// Of all that it names; nothing where some of that is not there.
std::optional<std::uint64_t> bytes_named(const Indexed& indexed) {
  std::unordered_map<std::string_view, std::uint64_t> bytes;
  for (const FileHeader& file : indexed.files) {
    for (const SafetensorsEntry& entry : file.header.entries)
      bytes.emplace(entry.name, entry.end - entry.begin);
  }
  std::uint64_t sum = 0;
  for (const auto& [fqn, path] : indexed.map) {
    auto found = bytes.find(fqn);
    if (found == bytes.end()) return std::nullopt;
    sum += found->second;
  }
  return sum;
}

// Its metadata.total_size beside the bytes of what it names, where both are known and differ.
struct Totals {
  std::uint64_t said = 0, named = 0;
};
std::optional<Totals> differing_totals(const Indexed& indexed) {
  const auto sum = bytes_named(indexed);
  if (!sum || !indexed.total || *indexed.total == *sum) return std::nullopt;
  return Totals{*indexed.total, *sum};
}

// Files of the pattern that nobody has and the index needs for nothing.
std::vector<std::string> promised_parts(const Indexed& indexed) {
  std::set<std::string_view> named;
  for (const auto& [fqn, path] : indexed.map) named.insert(path);
  std::vector<std::string> missing = missing_parts(indexed.paths);
  std::erase_if(missing, [&](const std::string& path) { return named.contains(path); });
  return missing;
}

// Whoever made it up may have said more than any file holds.
EvidenceValue evidence_of(std::uint64_t number) {
  if (auto small = narrow<std::int64_t>(number)) return *small;
  return std::to_string(number);
}

Finding promise(const std::string& index, Severity severity, std::string cause) {
  Finding finding = bad_record(index, std::move(cause));
  finding.severity = severity;
  return finding;
}

// transformers (5.24) opens what the index names, and never looks at its total.
void check_promises(CheckpointBuilder& builder, const std::string& index, const Indexed& indexed) {
  const auto totals = differing_totals(indexed);
  const std::vector<std::string> missing = promised_parts(indexed);
  std::string said;
  decltype(Finding::evidence) numbers;
  if (totals) {
    said = fmt::format("metadata.total_size is {}, and the tensors that it names have {} bytes",
                       totals->said, totals->named);
    numbers = {{"total_size", evidence_of(totals->said)}, {"bytes", evidence_of(totals->named)}};
  }
  const std::string parts =
      missing.empty() ? std::string()
                      : fmt::format(
                            "The files are named as parts of a larger whole, of which {} {} "
                            "not here. The index places no tensor there",
                            some_of(missing), missing.size() == 1 ? "is" : "are");
  // As many tensors may be gone from the index as from the files.
  if (totals && !missing.empty() && totals->said > totals->named) {
    Finding finding = promise(
        index, Severity::kWarning,
        fmt::format("{}, but its {}: tensors that were there are most likely gone, and a load "
                    "keeps initial values for them.",
                    parts, said));
    finding.evidence = numbers;
    finding.evidence.emplace_back("parts", missing);
    return builder.add_finding(std::move(finding));
  }
  if (totals) {
    Finding finding = promise(
        index, Severity::kInfo,
        fmt::format("Its {}. Loaders do not look at that; all that it names is there.", said));
    finding.evidence = numbers;
    builder.add_finding(std::move(finding));
  }
  if (missing.empty()) return;
  Finding finding =
      promise(index, Severity::kInfo, fmt::format("{}, so a load does not miss it.", parts));
  finding.evidence = {{"parts", missing}};
  builder.add_finding(std::move(finding));
}

// What earlier repairs filled stands in each file for its own tensors.
Provenance provenance_of(const std::vector<FileHeader>& files) {
  Provenance seen;
  for (const FileHeader& file : files) {
    if (const std::string* text = file.header.find_metadata(kFilledAttribute))
      seen.plain_attributes.emplace_back(kFilledAttribute, pickled_text(*text));
  }
  return seen;
}

// What the parts of one save have in common: "model-", "-of-00002.safetensors". Nothing of others.
std::optional<std::pair<std::string_view, std::string_view>> family_of(std::string_view path) {
  const std::size_t of = path.rfind("-of-");
  if (of == std::string_view::npos || of == 0) return std::nullopt;
  const std::size_t digits = path.find_last_not_of("0123456789", of - 1);
  if (digits == std::string_view::npos || digits + 1 == of) return std::nullopt;
  return std::pair(path.substr(0, digits + 1), path.substr(of));
}

// With an index only the files that it names count, and further parts of the same save: others are
// another form of the same weights.
std::vector<std::string> named_files(const std::vector<std::string>& all, const WeightMap& map) {
  std::set<std::string_view> named;
  for (const auto& [fqn, path] : map) named.insert(path);
  std::vector<std::string> chosen;
  std::set<std::pair<std::string_view, std::string_view>> families;
  for (const std::string& path : all) {
    auto family = named.contains(path) ? family_of(path) : std::nullopt;
    if (family) families.insert(*family);
  }
  for (const std::string& path : all) {
    auto family = family_of(path);
    if (named.contains(path) || (family && families.contains(*family))) chosen.push_back(path);
  }
  return chosen;
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> open_safetensors(
    std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(std::vector<std::string> paths, list_files(*directory));
  std::optional<Finding> index_finding;
  auto index_path = find_safetensors_index(*directory);
  std::optional<WeightMap> index;
  std::optional<std::uint64_t> total;
  if (index_path) index = read_weight_map(*directory, *index_path, index_finding, &total);
  if (index) {
    auto chosen = named_files(paths, *index);
    if (chosen.empty()) index_finding = without_its_files(*directory, *index_path, *index);
    if (chosen.empty()) index.reset();
    if (!chosen.empty()) paths = std::move(chosen);
  }
  if (progress != nullptr) progress->begin(Phase::kOpening, paths.size(), false);
  std::vector<Result<FileHeader>> read(paths.size());
  each_range(paths.size(), 1, [&](std::size_t i, std::size_t) {
    if (is_cancelled(progress)) return;
    read[i] = read_file(*directory, paths[i], progress);
    if (progress != nullptr) progress->add(1);
  });
  if (is_cancelled(progress)) {
    leave_behind(std::move(read));
    return cancelled_error();
  }

  CheckpointBuilder builder;
  std::vector<FileHeader> files;
  bool sharded = false;
  for (auto& file : read) {
    if (!file) {
      add_unread(builder, file.error(), index ? &*index : nullptr);
      continue;
    }
    sharded = sharded || file->sharding.has_value();
    files.push_back(std::move(*file));
  }
  if (files.empty()) return tl::unexpected<Error>(std::move(read.front()).error());

  builder.set_format(sharded ? kHfShardedFormat : kSafetensorsFormat);
  builder.set_directory(directory);
  builder.set_provenance(provenance_of(files));
  std::vector<Piece> pieces = gather(files, progress);
  for (std::size_t first = 0, last = 0; first < pieces.size() && !is_cancelled(progress);
       first = last) {
    while (last < pieces.size() && pieces[last].tensor == pieces[first].tensor) ++last;
    add_tensor(builder, Pieces(pieces).subspan(first, last - first));
  }
  for (const FileHeader& file : files) {
    builder.file(file.path);
    add_problems(builder, file);
    add_repeated(builder, file);
    check_sharding(builder, file);
  }
  if (index) {
    check_index(builder, *index_path, *index, files);
    check_unnamed(builder, *index_path, *index, files);
    check_passed_over(builder, *index_path, *index, *directory);
    if (!sharded) check_promises(builder, *index_path, {*index, files, paths, total});
  } else if (!is_one_file(*directory)) {
    for (const std::string& path : missing_parts(paths)) builder.file(path);
  }
  if (index_finding) builder.add_finding(std::move(*index_finding));
  std::shared_ptr<const Checkpoint> checkpoint;
  if (!is_cancelled(progress)) checkpoint = builder.finish(progress);
  if (!is_cancelled(progress)) return checkpoint;
  leave_behind(std::tuple(std::move(builder), std::move(files), std::move(pieces)));
  leave_behind(std::move(checkpoint));
  return cancelled_error();
}

}  // namespace shw

#include "core/formats/common/index_checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/formats/common/bad_record.h"

namespace shw {
namespace {

// An index entry that names another file than the one with the tensor.
struct Misplaced {
  std::string fqn, said, held;
};

std::vector<std::string> files_with_tensors(const std::vector<Misplaced>& entries) {
  std::set<std::string> holders;
  for (const Misplaced& entry : entries) holders.insert(entry.held);
  return {holders.begin(), holders.end()};
}

std::string misplaced_index_entry_text(const Misplaced& first, std::size_t count) {
  return fmt::format(
      "The index says that {} is in {}, but it is in {}{}: a loader that follows the index does "
      "not find it.",
      first.fqn, first.said, first.held,
      count == 1 ? "" : fmt::format("; {} more entries are wrong", count - 1));
}

// The files were saved again, renamed or merged without the index.
std::string stale_index_text(const IndexedFiles& indexed, const std::vector<Misplaced>& entries) {
  const std::vector<std::string> held = files_with_tensors(entries);
  const std::vector<std::string>& gone = indexed.not_there;
  const std::string all = entries.size() == indexed.map.size() ? "all " : "";
  return fmt::format(
      "{} names {} that {} missing ({}), but {}{} of its tensors {} in {}: the files were saved "
      "again or renamed, and the index is outdated. {}.",
      indexed.index, plural(gone.size(), "file"), gone.size() == 1 ? "is" : "are",
      short_list_text(gone), all, human_count(entries.size()), entries.size() == 1 ? "is" : "are",
      short_list_text(held),
      indexed.is_ignored_by_transformers
          ? "transformers loads that file and ignores the index; loaders that use the index fail"
          : "A loader that follows the index fails");
}

std::string index_remedy(const IndexedFiles& indexed, const std::vector<Misplaced>& entries) {
  const bool is_one =
      files_with_tensors(entries).size() == 1 && entries.size() == indexed.map.size();
  return is_one && !indexed.not_there.empty()
             ? fmt::format(
                   "Remove {}, or rewrite it if other weights are next to it. No tensor byte "
                   "moves.",
                   indexed.index)
             : "Rewrite the index from what each file holds. No tensor byte moves.";
}

// `is_stale`: entries of missing files; else entries of files with other contents.
void add_misplaced(CheckpointBuilder& builder, const IndexedFiles& indexed,
                   const std::vector<Misplaced>& entries, bool is_stale) {
  if (entries.empty()) return;
  constexpr std::size_t kMostEvidence = 64;
  Finding finding{.rule = "index-misplaced"};
  if (is_stale && indexed.is_ignored_by_transformers) finding.severity = Severity::kWarning;
  std::vector<std::string> lines;
  for (const Misplaced& entry : entries) {
    finding.subjects.push_back(entry.fqn);
    if (lines.size() < kMostEvidence)
      lines.push_back(entry.fqn + ": recorded in " + entry.said + ", is in " + entry.held);
  }
  finding.cause = is_stale ? stale_index_text(indexed, entries)
                           : misplaced_index_entry_text(entries.front(), entries.size());
  finding.evidence = {{"index", indexed.index},
                      {"entries", lines},
                      {"count", static_cast<std::int64_t>(entries.size())}};
  if (is_stale) {
    finding.evidence.emplace_back("files_not_here", indexed.not_there);
    finding.evidence.emplace_back("held_by", files_with_tensors(entries));
  }
  if (indexed.can_be_written)
    finding.remedy = Remedy{"rewrite-metadata", true, index_remedy(indexed, entries)};
  else
    finding.evidence.emplace_back("convert_to", std::string("safetensors"));
  builder.add_finding(std::move(finding));
}

bool is_stored_in(const MatchedIndex& matched, const StoredTensor& tensor,
                  const std::string& path) {
  const auto is_it = [&](std::size_t file) { return matched.indexed.files[file].path == path; };
  return is_it(tensor.file) ||
         std::any_of(tensor.more_files.begin(), tensor.more_files.end(), is_it);
}

// The tensors of one file that the index places there in vain, and those that it finds in another
// file too.
struct UnlikeFile {
  std::string path;
  std::vector<std::string> lacking, unexpected;
};

// Files that disagree with the index both ways. One save cuts the list of tensors into files and
// writes the index from them. A file that lacks some of its tensors and repeats those of its
// neighbours was written by another save, which cut the list elsewhere.
std::vector<UnlikeFile> files_of_another_save(const MatchedIndex& matched,
                                              const std::vector<std::string>& lost) {
  const IndexedFiles& indexed = matched.indexed;
  std::map<std::string_view, UnlikeFile> unlike;
  const std::unordered_set<std::string_view> is_lost(lost.begin(), lost.end());
  std::unordered_map<std::string_view, std::size_t> entries;
  entries.reserve(indexed.map.size());
  for (std::size_t i = 0; i < indexed.map.size(); ++i) {
    const auto& [fqn, path] = indexed.map[i];
    entries.emplace(fqn, i);
    if (is_lost.contains(fqn)) unlike[path].lacking.push_back(fqn);
  }
  const auto is_unexpected = [&](const std::string& name, const std::string& file) {
    const auto entry = entries.find(name);
    if (entry == entries.end()) return false;  // perhaps only renamed
    const std::string& path = indexed.map[entry->second].second;
    return path != file &&
           is_stored_in(matched, matched.held[matched.entries[entry->second]], path);
  };
  std::vector<UnlikeFile> out;
  for (const IndexedFile& file : indexed.files) {
    const auto found = unlike.find(file.path);
    if (found == unlike.end()) continue;
    UnlikeFile& one = found->second;
    for (const auto& [name, bytes] : file.tensors) {
      if (is_unexpected(name, file.path)) one.unexpected.push_back(name);
    }
    if (one.unexpected.empty()) continue;
    one.path = file.path;
    out.push_back(std::move(one));
  }
  return out;
}

// The file with the same names as the one at `path`; empty if there is none.
std::string file_of_same_tensors(const IndexedFiles& indexed, const std::string& path) {
  const auto names_of = [](const IndexedFile& file) {
    std::set<std::string_view> names;
    for (const auto& [name, bytes] : file.tensors) names.insert(name);
    return names;
  };
  const auto one = std::find_if(indexed.files.begin(), indexed.files.end(),
                                [&](const IndexedFile& file) { return file.path == path; });
  if (one == indexed.files.end() || one->tensors.empty()) return {};
  const auto names = names_of(*one);
  for (const IndexedFile& other : indexed.files) {
    const bool may_be = other.path != path && other.tensors.size() == one->tensors.size();
    if (may_be && names_of(other) == names) return other.path;
  }
  return {};
}

// The weight that a tensor scales: "w.weight" for "w.weight_scale_inv"; empty for other names.
std::string_view weight_of_scale(std::string_view fqn) {
  constexpr std::string_view kWeight = ".weight";
  for (const std::string_view ending : {"_scale_inv", "_scale", "_scale_2"}) {
    if (!fqn.ends_with(ending)) continue;
    fqn.remove_suffix(ending.size());
    return fqn.ends_with(kWeight) ? fqn : std::string_view();
  }
  return {};
}

// True if all are scales of weights that the files hold without them.
bool are_scales_of_stored_weights(const MatchedIndex& matched,
                                  const std::vector<std::string>& names) {
  std::unordered_set<std::string_view> held;
  held.reserve(matched.held.size());
  for (const StoredTensor& tensor : matched.held) held.insert(tensor.name);
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    const std::string_view weight = weight_of_scale(name);
    return !weight.empty() && held.contains(weight);
  });
}

// How entries of the index came to lack their tensor; empty if that is not known.
std::string lost_entries_text(const MatchedIndex& matched, const std::vector<std::string>& lost) {
  const auto unlike = files_of_another_save(matched, lost);
  if (!unlike.empty()) {
    const UnlikeFile& first = unlike.front();
    const std::string twin = file_of_same_tensors(matched.indexed, first.path);
    if (!twin.empty())
      return fmt::format(
          " {} holds tensors of the same names as {}: most likely that file was copied under this "
          "name. Copy {} again from where it was written.",
          first.path, twin, first.path);
  }
  // A single tensor may have been moved by hand.
  const auto is_of_other_save = [](const UnlikeFile& one) {
    return one.unexpected.size() > 1 && one.lacking.size() > 1;
  };
  if (const auto file = std::ranges::find_if(unlike, is_of_other_save); file != unlike.end()) {
    const auto others =
        static_cast<std::uint64_t>(std::ranges::count_if(unlike, is_of_other_save)) - 1;
    const std::string more =
        others == 0 ? std::string() : fmt::format(" {} more are like it.", human_count(others));
    return fmt::format(
        " {} most likely belongs to another save: it repeats {} that other files hold ({}), and "
        "lacks {} ({}).{} Then files of two saves are mixed here: copy the files and the index "
        "again from one save.",
        file->path, plural(file->unexpected.size(), "tensor"), short_list_text(file->unexpected),
        human_count(file->lacking.size()), short_list_text(file->lacking), more);
  }
  if (!are_scales_of_stored_weights(matched, lost)) return {};
  return " They are scales of quantised weights, and their weights are stored without them: the "
         "index was most likely copied from the quantised model. If the weights are no longer "
         "quantised, remove these entries. Otherwise their scales are lost.";
}

// Total bytes of all indexed tensors; nullopt if one is missing.
std::optional<std::uint64_t> indexed_bytes(const MatchedIndex& matched) {
  std::uint64_t sum = 0;
  for (const std::size_t place : matched.entries) {
    if (place == MatchedIndex::kNotStored) return std::nullopt;
    sum += matched.held[place].bytes;
  }
  return sum;
}

// `said`: metadata.total_size. `named`: total bytes of the tensors that the index lists. Set only
// if both are known and differ.
struct SaidAndSummedBytes {
  std::uint64_t said = 0, named = 0;
};
std::optional<SaidAndSummedBytes> differing_totals(const MatchedIndex& matched) {
  const auto& total = matched.indexed.total;
  const auto sum = indexed_bytes(matched);
  if (!sum || !total || *total == *sum) return std::nullopt;
  return SaidAndSummedBytes{*total, *sum};
}

// A hostile total may exceed any file size.
EvidenceValue evidence_of(std::uint64_t number) {
  if (auto small = narrow<std::int64_t>(number)) return *small;
  return std::to_string(number);
}

Finding index_finding(const std::string& index, Severity severity, std::string cause) {
  Finding finding = bad_record_finding(index, std::move(cause));
  finding.severity = severity;
  return finding;
}

// The common parts of a save's file names: "model-", "-of-00002.safetensors"; nullopt for other
// names.
std::optional<std::pair<std::string_view, std::string_view>> shard_name_frame(
    std::string_view path) {
  const std::size_t of = path.rfind("-of-");
  if (of == std::string_view::npos || of == 0) return std::nullopt;
  const std::size_t digits = path.find_last_not_of("0123456789", of - 1);
  if (digits == std::string_view::npos || digits + 1 == of) return std::nullopt;
  return std::pair(path.substr(0, digits + 1), path.substr(of));
}

}  // namespace

MatchedIndex::MatchedIndex(IndexedFiles files) : indexed(std::move(files)) {
  std::size_t names = 0;
  for (const IndexedFile& file : indexed.files) names += file.tensors.size();
  std::unordered_map<std::string_view, std::size_t> places;
  places.reserve(names);
  held.reserve(names);
  for (std::size_t i = 0; i < indexed.files.size(); ++i) {
    for (const auto& [name, bytes] : indexed.files[i].tensors) {
      const auto [place, is_new] = places.try_emplace(name, held.size());
      if (is_new)
        held.push_back({name, i, bytes});
      else
        held[place->second].more_files.push_back(i);
    }
  }
  entries.reserve(indexed.map.size());
  for (const auto& [fqn, path] : indexed.map) {
    const auto place = places.find(fqn);
    entries.push_back(place == places.end() ? kNotStored : place->second);
    if (place != places.end()) held[place->second].is_named = true;
  }
}

void check_index(CheckpointBuilder& builder, const MatchedIndex& matched) {
  const IndexedFiles& indexed = matched.indexed;
  const std::string& index = indexed.index;
  std::unordered_set<std::string_view> readable;
  for (const IndexedFile& file : indexed.files) readable.insert(file.path);
  Finding missing = bad_record_finding(index, "");
  missing.subjects.clear();
  const std::unordered_set<std::string_view> not_there(indexed.not_there.begin(),
                                                       indexed.not_there.end());
  std::vector<Misplaced> misplaced, stale;
  for (std::size_t i = 0; i < matched.entries.size(); ++i) {
    const auto& [fqn, path] = indexed.map[i];
    const std::size_t place = matched.entries[i];
    const StoredTensor* held = place == MatchedIndex::kNotStored ? nullptr : &matched.held[place];
    if (held != nullptr && is_stored_in(matched, *held, path)) continue;
    // If files are missing, existing unread ones belong to the same old save.
    const bool is_gone =
        not_there.contains(path) || (!not_there.empty() && !readable.contains(path));
    // Paths that leave the folder are reported by their own rule.
    if (!is_gone || !is_safe_relative_path(path)) builder.file(path);
    if (held != nullptr)
      (is_gone ? stale : misplaced).push_back({fqn, path, indexed.files[held->file].path});
    else if (readable.contains(path))
      missing.subjects.push_back(fqn);
    else
      builder.add_unclaimed_record({fqn, std::nullopt, {builder.file(path), 0, 0}});
  }
  add_misplaced(builder, indexed, stale, true);
  add_misplaced(builder, indexed, misplaced, false);
  if (missing.subjects.empty()) return;
  missing.cause = fmt::format(
      "The index places {} in files that do not contain them, and no other file does: {}.{}",
      plural(missing.subjects.size(), "tensor"), short_list_text(missing.subjects),
      lost_entries_text(matched, missing.subjects));
  missing.evidence.emplace_back("index", index);
  builder.add_finding(std::move(missing));
}

void report_tensors_not_in_index(CheckpointBuilder& builder, const MatchedIndex& matched) {
  const std::string& index = matched.indexed.index;
  Finding finding = bad_record_finding(index, "");
  finding.severity = Severity::kWarning;
  finding.subjects.clear();
  for (const StoredTensor& tensor : matched.held) {
    if (!tensor.is_named) finding.subjects.emplace_back(tensor.name);
  }
  if (finding.subjects.empty()) return;
  finding.cause = fmt::format(
      "The index does not list {} that its files hold ({}): a loader that follows the index skips "
      "{}.",
      plural(finding.subjects.size(), "tensor"), short_list_text(finding.subjects),
      finding.subjects.size() == 1 ? "it" : "them");
  finding.evidence = {{"index", index},
                      {"count", static_cast<std::int64_t>(finding.subjects.size())},
                      {"convert_to", std::string("safetensors")}};
  finding.subjects.push_back(index);
  builder.add_finding(std::move(finding));
}

void check_index_as_transformers(CheckpointBuilder& builder, const MatchedIndex& matched) {
  const std::string& index = matched.indexed.index;
  const auto totals = differing_totals(matched);
  const std::vector<std::string>& missing = matched.indexed.missing_parts;
  std::string said;
  decltype(Finding::evidence) numbers;
  if (totals) {
    said = fmt::format("metadata.total_size is {}, but the tensors in the index have {} bytes",
                       totals->said, totals->named);
    numbers = {{"total_size", evidence_of(totals->said)}, {"bytes", evidence_of(totals->named)}};
  }
  const std::string parts = missing.empty()
                                ? std::string()
                                : fmt::format(
                                      "{} {} missing, judging by the numbers in the file names, "
                                      "and the index lists no tensor there",
                                      short_list_text(missing), missing.size() == 1 ? "is" : "are");
  // The index may lack as many tensors as the files.
  if (totals && !missing.empty() && totals->said > totals->named) {
    Finding finding = index_finding(index, Severity::kWarning,
                                    fmt::format("{}. Its {}. Tensors that were there are most "
                                                "likely missing; a load leaves them at their "
                                                "initial values.",
                                                parts, said));
    finding.evidence = numbers;
    finding.evidence.emplace_back("parts", missing);
    return builder.add_finding(std::move(finding));
  }
  if (totals) {
    Finding finding = index_finding(
        index, Severity::kInfo,
        fmt::format("Its {}. Loaders ignore that; all tensors that it lists are there.", said));
    finding.evidence = numbers;
    builder.add_finding(std::move(finding));
  }
  if (missing.empty()) return;
  Finding finding = index_finding(
      index, Severity::kInfo, fmt::format("{}, so a load misses nothing that it lists.", parts));
  finding.evidence = {{"parts", missing}};
  builder.add_finding(std::move(finding));
}

std::vector<std::string> files_containing(std::span<const IndexedFile> files, const WeightMap& map,
                                          std::string_view single) {
  std::unordered_set<std::string_view> named;
  for (const auto& [fqn, path] : map) named.insert(fqn);
  const std::vector<std::string_view> named_paths = sorted_index_files(map);
  const auto holds_all = [&](const std::vector<const IndexedFile*>& group) {
    std::unordered_set<std::string_view> held;
    for (const IndexedFile* file : group) {
      for (const auto& [name, bytes] : file->tensors) {
        if (named.contains(name) && !held.insert(name).second) return false;  // in two files
      }
    }
    return held.size() == named.size();
  };
  const auto paths_of = [](const std::vector<const IndexedFile*>& group) {
    std::vector<std::string> paths;
    for (const IndexedFile* file : group) paths.push_back(file->path);
    return paths;
  };
  std::map<std::string, std::vector<const IndexedFile*>> groups;
  for (const IndexedFile& file : files) {
    const auto family = shard_name_frame(file.path);
    groups[family ? fmt::format("{}{}", family->first, family->second) : file.path].push_back(
        &file);
  }
  std::vector<std::string> whole;
  for (const auto& [name, group] : groups) {
    if ((whole.empty() || name == single) && holds_all(group)) whole = paths_of(group);
  }
  if (!whole.empty()) return whole;
  std::vector<const IndexedFile*> all;
  for (const IndexedFile& file : files) {
    const bool contains_any =
        std::any_of(file.tensors.begin(), file.tensors.end(),
                    [&](const auto& one) { return named.contains(one.first); });
    if (contains_any ||
        std::binary_search(named_paths.begin(), named_paths.end(), std::string_view(file.path)))
      all.push_back(&file);
  }
  return holds_all(all) ? paths_of(all) : std::vector<std::string>();
}

std::vector<std::string> files_of_index(const std::vector<std::string>& all, const WeightMap& map) {
  const std::vector<std::string_view> files = sorted_index_files(map);
  const std::unordered_set<std::string_view> named(files.begin(), files.end());
  std::vector<std::string> chosen;
  std::set<std::pair<std::string_view, std::string_view>> families;
  for (const std::string& path : all) {
    auto family = named.contains(path) ? shard_name_frame(path) : std::nullopt;
    if (family) families.insert(*family);
  }
  for (const std::string& path : all) {
    auto family = shard_name_frame(path);
    if (named.contains(path) || (family && families.contains(*family))) chosen.push_back(path);
  }
  return chosen;
}

}  // namespace shw

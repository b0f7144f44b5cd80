#include "core/formats/safetensors/safetensors_files.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/parallel.h"
#include "core/formats/common/newest_file.h"
#include "core/formats/safetensors/other_models.h"
#include "core/formats/safetensors/prefetch_headers.h"
#include "core/formats/safetensors/safetensors_index.h"
#include "core/formats/safetensors/safetensors_names.h"

namespace shw {
namespace {

Result<SafetensorsFile> read_file(const Directory& directory, const std::string& path,
                                  const Progress* progress) {
  SHW_TRY(auto source, directory.open(path));
  SafetensorsFile file{path, {}, std::nullopt};
  SHW_TRY(file.header, read_safetensors_header(*source, progress));
  if (const std::string* text = file.header.find_metadata(kShardingInfoKey)) {
    SHW_TRY(file.sharding, parse_sharding_info(*text, path));
  }
  return file;
}

// Files in the folder itself; if there are none, those in "sharded/" and similar subfolders.
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

void choose_named_files(SafetensorsFiles& found, const Directory& directory) {
  found.not_there.clear();
  auto chosen = files_of_index(found.paths, *found.index);
  if (!chosen.empty()) {
    found.paths = std::move(chosen);
    return;
  }
  found.finding = index_without_files_finding(directory, kSafetensorsIndexNames, *found.index_path,
                                              *found.index);
  found.index.reset();
}

// If files of the index are missing, other files with its tensors are read instead; if there are
// none, only the existing ones.
void choose_files_with_tensors(SafetensorsFiles& found, const Directory& directory) {
  std::vector<IndexedFile> held;
  for (const std::string& path : found.paths) {
    const Result<SafetensorsFile>& file = found.headers.at(path);
    if (file) held.push_back(indexed_file(*file));
  }
  auto holders = files_containing(held, *found.index, single_file_name(*found.index_path));
  if (holders.empty())
    choose_named_files(found, directory);
  else
    found.paths = std::move(holders);
}

// Reads headers of files of `found` in parallel, and calls `beside` once at the same time.
void read_headers(
    SafetensorsFiles& found, const Directory& directory, Progress* progress,
    const std::function<void()>& beside = [] {}) {
  if (progress != nullptr) progress->begin(Phase::kOpening, found.paths.size(), false);
  std::vector<Result<SafetensorsFile>> read(found.paths.size());
  std::once_flag prefetched;
  parallel_for_ranges(found.paths.size() + 1, 1, [&](std::size_t i, std::size_t) {
    if (i == 0) return beside();
    if (is_cancelled(progress)) return;
    std::call_once(prefetched, [&] {
      const auto index_bytes = found.index_path ? directory.stat(*found.index_path).size : 0;
      prefetch_headers(directory, found.paths, index_bytes);
    });
    read[i - 1] = read_file(directory, found.paths[i - 1], progress);
    if (progress != nullptr) progress->add(1);
  });
  for (std::size_t i = 0; i < read.size(); ++i)
    found.headers.try_emplace(found.paths[i], std::move(read[i]));
}

// True if both files hold tensors of the same names.
bool have_same_names(const SafetensorsFile& a, const SafetensorsFile& b) {
  const auto names_of = [](const SafetensorsFile& file) {
    std::set<std::string_view> names;
    for (const SafetensorsEntry& entry : file.header.entries) names.insert(entry.name);
    return names;
  };
  return a.header.entries.size() == b.header.entries.size() && names_of(a) == names_of(b);
}

// True for "lora-000001.safetensors". Shorter numbers count models, and say their precision.
bool has_step_number(const std::string& path) {
  constexpr std::ptrdiff_t kMinDigits = 3;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return std::search_n(path.begin(), path.end(), kMinDigits, true,
                       [&](char c, bool wanted) { return is_digit(c) == wanted; }) != path.end();
}

// Keeps the newest of several saves of one model and ignores the others.
void exclude_earlier_saves(SafetensorsFiles& found) {
  if (found.paths.size() < 2 ||
      std::count_if(found.paths.begin(), found.paths.end(), has_step_number) + 1 <
          std::ssize(found.paths))
    return;
  const Result<SafetensorsFile>& first = found.headers.at(found.paths.front());
  const bool are_alike = first && std::all_of(found.paths.begin() + 1, found.paths.end(),
                                              [&](const std::string& path) {
                                                const auto& other = found.headers.at(path);
                                                return other && have_same_names(*first, *other);
                                              });
  const auto newest = are_alike ? newest_by_name(found.paths) : std::nullopt;
  if (!newest) return;
  std::copy_if(found.paths.begin(), found.paths.end(), std::back_inserter(found.steps),
               [&](const std::string& path) { return path != *newest; });
  found.paths = {*newest};
}

}  // namespace

IndexedFile indexed_file(const SafetensorsFile& file) {
  IndexedFile out{file.path, {}};
  for (const SafetensorsEntry& entry : file.header.entries)
    out.tensors.push_back({entry.name, entry.end - entry.begin});
  return out;
}

// An index of a large model takes as long to read as the headers of its files.
Result<SafetensorsFiles> find_safetensors_files(const Directory& directory, Progress* progress) {
  SafetensorsFiles found;
  SHW_TRY(found.paths, list_files(directory));
  found.adapters = exclude_adapter_files(found.paths);
  found.index_path = find_safetensors_index(directory);
  if (!found.index_path) {
    found.steps = exclude_older_step_files(found.paths);
    found.variants = exclude_variant_files(found.paths, directory);
    read_headers(found, directory, progress);
    if (!is_cancelled(progress)) exclude_earlier_saves(found);
    return found;
  }
  read_headers(found, directory, progress, [&] {
    found.index = read_weight_map(directory, *found.index_path, found.finding, &found.total);
  });
  if (!found.index || is_cancelled(progress)) return found;
  found.not_there = missing_index_files(directory, *found.index);
  if (found.not_there.empty())
    choose_named_files(found, directory);
  else
    choose_files_with_tensors(found, directory);
  return found;
}

}  // namespace shw

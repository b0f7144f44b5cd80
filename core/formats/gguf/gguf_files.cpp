#include "core/formats/gguf/gguf_files.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/formats/common/open_advice.h"
#include "core/formats/common/part_names.h"
#include "core/formats/common/top_file.h"
#include "core/formats/one_file.h"

namespace shw {
namespace {

// Files by save: all parts of "model-00001-of-00003.gguf", or a single file.
using Families = std::map<std::string, std::vector<std::string>>;

Families families_in(const std::vector<std::string>& paths) {
  Families families;
  for (const std::string& path : paths) {
    const auto part = parse_part_name(path, kGgufSuffix);
    families[part ? fmt::format("{} {}", part->before, part->count) : path].push_back(path);
  }
  return families;
}

GgufFile read_gguf_file(const Directory& directory, const std::string& path, Progress* progress) {
  auto source = directory.open(path);
  if (!source) return {path, tl::unexpected<Error>(std::move(source).error())};
  return {path, read_gguf_header(**source, progress)};
}

// True for a projector, an adapter or a calibration matrix, which declare it; models may declare
// nothing.
bool is_beside_model(const GgufFile& first) {
  if (!first.header) return false;
  const std::string type = first.header->text("general.type");
  return !type.empty() && type != "model";
}

Result<std::vector<std::string>> gguf_paths(const Directory& directory) {
  SHW_TRY(auto entries, directory.list());
  std::vector<std::string> paths;
  for (const Entry& entry : entries) {
    if (is_top_file(entry) && (entry.path.ends_with(kGgufSuffix) || entries.size() == 1))
      paths.push_back(entry.path);
  }
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) return fail(ErrorKind::kIo, "holds no .gguf file", {directory.name()});
  return paths;
}

// Chooses the only family of files that is a model; an error if there are several.
Result<std::vector<std::string>> choose_family(const Directory& directory, const Families& all,
                                               GgufFiles& found, Progress* progress) {
  if (all.size() == 1) return all.begin()->second;
  std::vector<const std::vector<std::string>*> models;
  for (const auto& [name, paths] : all) {
    const GgufFile first = read_gguf_file(directory, paths.front(), progress);
    if (is_cancelled(progress)) return cancelled_error();
    if (is_beside_model(first))
      found.aside.insert(found.aside.end(), paths.begin(), paths.end());
    else
      models.push_back(&paths);
  }
  if (models.size() == 1) return *models.front();
  std::vector<std::string> names;
  for (const auto* paths : models) names.push_back(paths->front());
  if (names.empty()) {
    for (const auto& [name, paths] : all) names.push_back(paths.front());
  }
  return fail(ErrorKind::kUnsupported,
              fmt::format("holds {} models in GGUF files: {}", names.size(), some_of(names)),
              {directory.name()},
              "Open one of them by its name. " + advice_to_open(directory, names.front()));
}

}  // namespace

Result<GgufFiles> find_gguf_files(const Directory& directory, Progress* progress) {
  GgufFiles found;
  SHW_TRY(std::vector<std::string> paths, gguf_paths(directory));
  SHW_TRY(std::vector<std::string> chosen,
          choose_family(directory, families_in(paths), found, progress));
  if (progress != nullptr) progress->begin(Phase::kOpening, chosen.size(), false);
  std::vector<PartName> parts;
  for (const std::string& path : chosen) {
    if (is_cancelled(progress)) return cancelled_error();
    found.files.push_back(read_gguf_file(directory, path, progress));
    if (auto part = parse_part_name(path, kGgufSuffix)) parts.push_back(std::move(*part));
    if (progress != nullptr) progress->add(1);
  }
  if (!is_one_file(directory)) found.missing = parts_not_among(parts, kGgufSuffix);
  return found;
}

}  // namespace shw

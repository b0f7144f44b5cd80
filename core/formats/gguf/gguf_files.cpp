#include "core/formats/gguf/gguf_files.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/formats/common/open_advice.h"
#include "core/formats/common/part_names.h"
#include "core/formats/common/top_file.h"
#include "core/formats/single_file_directory.h"

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
bool is_companion_file(const GgufFile& first) {
  if (!first.header) return false;
  const std::string type = first.header->text("general.type");
  return !type.empty() && type != "model";
}

// Projectors of before 2025 declare only their architecture.
bool is_projector_file(const GgufFile& first) {
  return first.header && (first.header->text("general.type") == "mmproj" ||
                          first.header->text("general.architecture") == "clip");
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

struct ModelFiles {
  const std::vector<std::string>* paths = nullptr;
  std::string kind;         // architecture and size: quantisations of one model are equal in it
  std::uint64_t bytes = 0;  // of all its files
};

// "llama 32 4096"; empty if the header does not give all of it.
std::string gguf_model_summary(const GgufFile& first) {
  if (!first.header) return {};
  const std::string architecture = first.header->text("general.architecture");
  const auto blocks = first.header->number(architecture + ".block_count"),
             width = first.header->number(architecture + ".embedding_length");
  if (architecture.empty() || !blocks || !width) return {};
  return fmt::format("{} {} {}", architecture, *blocks, *width);
}

std::uint64_t bytes_of_files(const Directory& directory, const std::vector<std::string>& paths) {
  std::uint64_t bytes = 0;
  for (const std::string& path : paths) bytes += directory.stat(path).size;
  return bytes;
}

// The most precise of several quantisations; null if the models differ.
const ModelFiles* choose_quantisation(const std::vector<ModelFiles>& models) {
  const bool is_one = std::all_of(models.begin(), models.end(), [&](const ModelFiles& model) {
    return !model.kind.empty() && model.kind == models.front().kind;
  });
  if (!is_one || models.empty()) return nullptr;
  return &*std::max_element(
      models.begin(), models.end(),
      [](const ModelFiles& a, const ModelFiles& b) { return a.bytes < b.bytes; });
}

// Puts a projector with the model: the largest one, if there are several.
void add_largest_projector(GgufFiles& found, const Directory& directory,
                           std::vector<GgufFile> projectors) {
  auto most = std::max_element(projectors.begin(), projectors.end(),
                               [&](const GgufFile& a, const GgufFile& b) {
                                 return directory.stat(a.path).size < directory.stat(b.path).size;
                               });
  for (auto file = projectors.begin(); file != projectors.end(); ++file) {
    if (file == most)
      found.beside.push_back(std::move(*file));
    else
      found.aside.push_back(file->path);
  }
}

tl::unexpected<Error> several_models_error(const Directory& directory,
                                           const std::vector<std::string>& names) {
  return fail(
      ErrorKind::kUnsupported,
      fmt::format("holds {} models in GGUF files: {}", names.size(), short_list_text(names)),
      {directory.name()},
      "Give the path of one of them. " + advice_to_open(directory, names.front()));
}

// Chooses the files of the model; an error if there are several models.
Result<std::vector<std::string>> choose_gguf_model_files(const Directory& directory,
                                                         const Families& all, GgufFiles& found,
                                                         Progress* progress) {
  if (all.size() == 1) return all.begin()->second;
  std::vector<ModelFiles> models;
  std::vector<GgufFile> projectors;
  for (const auto& [name, paths] : all) {
    GgufFile first = read_gguf_file(directory, paths.front(), progress);
    if (is_cancelled(progress)) return cancelled_error();
    const bool is_projector = paths.size() == 1 && is_projector_file(first);
    if (is_projector)
      projectors.push_back(std::move(first));
    else if (is_companion_file(first))
      found.aside.insert(found.aside.end(), paths.begin(), paths.end());
    else
      models.push_back({&paths, gguf_model_summary(first), bytes_of_files(directory, paths)});
  }
  std::vector<std::string> names;
  for (const ModelFiles& model : models) names.push_back(model.paths->front());
  if (names.empty()) {
    for (const auto& [name, paths] : all) names.push_back(paths.front());
  }
  const ModelFiles* chosen = models.size() == 1 ? &models.front() : choose_quantisation(models);
  if (chosen == nullptr) return several_models_error(directory, names);
  for (const ModelFiles& model : models) {
    if (&model == chosen) continue;
    found.has_others = true;
    found.aside.insert(found.aside.end(), model.paths->begin(), model.paths->end());
  }
  add_largest_projector(found, directory, std::move(projectors));
  return *chosen->paths;
}

}  // namespace

Result<GgufFiles> find_gguf_files(const Directory& directory, Progress* progress) {
  GgufFiles found;
  SHW_TRY(std::vector<std::string> paths, gguf_paths(directory));
  SHW_TRY(std::vector<std::string> chosen,
          choose_gguf_model_files(directory, families_in(paths), found, progress));
  if (progress != nullptr) progress->begin(Phase::kOpening, chosen.size(), false);
  std::vector<PartName> parts;
  for (const std::string& path : chosen) {
    if (is_cancelled(progress)) return cancelled_error();
    found.files.push_back(read_gguf_file(directory, path, progress));
    if (auto part = parse_part_name(path, kGgufSuffix)) parts.push_back(std::move(*part));
    if (progress != nullptr) progress->add(1);
  }
  if (!is_single_file_directory(directory)) found.missing = parts_not_among(parts, kGgufSuffix);
  return found;
}

}  // namespace shw

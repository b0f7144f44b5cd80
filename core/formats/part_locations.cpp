#include "core/formats/part_locations.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "core/formats/common/companion_names.h"
#include "core/formats/common/top_file.h"
#include "core/formats/library_names.h"

namespace shw {
namespace {

bool all_names_unchanged(const Outputs& outputs) {
  return outputs.source == nullptr ||
         std::all_of(outputs.tensors.begin(), outputs.tensors.end(), [&](const OutputTensor& one) {
           return outputs.source->find(one.fqn).has_value();
         });
}

PartLocation part_location_of(const Checkpoint* source, const std::string& folder,
                              std::size_t prefix, bool names_stay = true) {
  WeightFileNames names = weight_file_names(source, folder, names_stay);
  return {folder, std::move(names.stem), std::move(names.torch_file), prefix};
}

// A module whose config.json names no library belongs to sentence-transformers, which looks for
// transformers' file name.
PartLocation home_of_module(const Checkpoint* source, const std::string& folder,
                            std::size_t prefix) {
  PartLocation home = part_location_of(source, folder, prefix);
  if (home.torch_file == WeightFileNames().torch_file) home.torch_file = "pytorch_model.bin";
  return home;
}

PartLocations single_top_folder(const Outputs& outputs) {
  return {{part_location_of(outputs.source, "", 0, all_names_unchanged(outputs))},
          std::vector<std::uint32_t>(outputs.tensors.size(), 0)};
}

bool contains_file(const Directory& directory, const char* file) {
  return directory.stat(file).kind == EntryKind::kFile;
}

std::string single_folder_above(std::string_view path) {
  const std::size_t slash = path.find('/');
  const bool is_below_one = slash != std::string_view::npos && slash == path.rfind('/');
  return is_below_one ? std::string(path.substr(0, slash + 1)) : std::string();
}

// Top-level folders that contain weights.
std::set<std::string> folders_of_parts(const Checkpoint& source) {
  std::set<std::string> folders;
  for (const FileRow& file : source.files()) {
    std::string folder = single_folder_above(file.path);
    if (file.referenced && !folder.empty()) folders.insert(std::move(folder));
  }
  return folders;
}

// False for a Router, whose weights are all in subfolders.
bool has_weights_at_top(const Checkpoint& source) {
  return std::ranges::any_of(source.files(), [](const FileRow& file) {
    return file.referenced && file.path.find('/') == std::string::npos;
  });
}

// True for adapters of PEFT in folders of their names.
bool has_adapters(const Checkpoint& source, const std::set<std::string>& folders) {
  return folders.size() > 1 && !has_weights_at_top(source) &&
         std::ranges::all_of(folders, [&](const std::string& folder) {
           return contains_file(*source.directory(), (folder + "adapter_config.json").c_str());
         });
}

// If the source has all weights in one folder: subfolders with a config, one per part.
std::set<std::string> folders_of_configs(const Outputs& outputs) {
  std::set<std::string> folders;
  auto entries = outputs.source->directory()->list();
  if (!entries) return folders;
  for (const Entry& entry : *entries) {
    std::string folder = single_folder_above(entry.path);
    if (!folder.empty() && entry.path.substr(folder.size()) == "config.json")
      folders.insert(std::move(folder));
  }
  std::erase_if(folders, [&](const std::string& folder) {
    const std::string prefix = folder.substr(0, folder.size() - 1) + ".";
    return std::none_of(outputs.tensors.begin(), outputs.tensors.end(),
                        [&](const OutputTensor& one) { return one.fqn.starts_with(prefix); });
  });
  return folders;
}

}  // namespace

std::string name_in_file(const OutputTensor& tensor, const PartLocation& home) {
  return tensor.fqn.substr(home.prefix);
}

PartLocations part_locations(const Outputs& outputs) {
  const Checkpoint* source = outputs.source;
  if (source == nullptr || source->directory() == nullptr) return single_top_folder(outputs);
  PartLocations found;
  std::set<std::string> folders = folders_of_parts(*source);
  const bool is_pipeline =
      contains_file(*source->directory(), "model_index.json") || has_adapters(*source, folders);
  if (!is_pipeline && !contains_file(*source->directory(), "modules.json"))
    return single_top_folder(outputs);
  if (folders.empty()) folders = folders_of_configs(outputs);
  for (const std::string& folder : folders)
    found.homes.push_back(is_pipeline ? part_location_of(source, folder, folder.size())
                                      : home_of_module(source, folder, folder.size()));
  const auto top = static_cast<std::uint32_t>(found.homes.size());
  found.homes.push_back(part_location_of(source, "", 0));
  std::size_t at_top = 0;
  for (const OutputTensor& tensor : outputs.tensors) {
    std::uint32_t home = 0;
    auto is_of = [&](const PartLocation& part) {
      const std::string_view name = std::string_view(part.folder).substr(0, part.prefix - 1);
      return tensor.fqn.size() > part.prefix && tensor.fqn.starts_with(name) &&
             tensor.fqn[part.prefix - 1] == '.';
    };
    while (home < top && !is_of(found.homes[home])) ++home;
    at_top += home == top ? 1 : 0;
    found.of_tensor.push_back(home);
  }
  const bool fits = is_pipeline || !has_weights_at_top(*source) ? at_top == 0 : at_top > 0;
  return top > 0 && fits ? found : single_top_folder(outputs);
}

}  // namespace shw

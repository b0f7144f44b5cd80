#include "core/formats/part_homes.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "core/formats/common/companion_names.h"
#include "core/formats/common/top_file.h"
#include "core/formats/library_names.h"

namespace shw {
namespace {

PartHomes all_at_the_top(const Outputs& outputs) {
  return {{{"", library_names(outputs.source).stem, 0}},
          std::vector<std::uint32_t>(outputs.tensors.size(), 0)};
}

bool holds_file(const Directory& directory, const char* file) {
  return directory.stat(file).kind == EntryKind::kFile;
}

// Folders at the top that hold weights.
std::set<std::string> folders_of_parts(const Checkpoint& source) {
  std::set<std::string> folders;
  for (const FileRow& file : source.files()) {
    const std::size_t slash = file.path.find('/');
    if (file.referenced && slash != std::string::npos && slash == file.path.rfind('/'))
      folders.insert(file.path.substr(0, slash + 1));
  }
  return folders;
}

}  // namespace

std::string name_in_file(const OutputTensor& tensor, const PartHome& home) {
  return tensor.fqn.substr(home.prefix);
}

PartHomes part_homes(const Outputs& outputs) {
  const Checkpoint* source = outputs.source;
  if (source == nullptr || source->directory() == nullptr) return all_at_the_top(outputs);
  const bool is_pipeline = holds_file(*source->directory(), "model_index.json");
  if (!is_pipeline && !holds_file(*source->directory(), "modules.json"))
    return all_at_the_top(outputs);
  PartHomes found;
  for (const std::string& folder : folders_of_parts(*source))
    found.homes.push_back({folder, library_names(source, folder).stem, folder.size()});
  const auto top = static_cast<std::uint32_t>(found.homes.size());
  found.homes.push_back({"", library_names(source).stem, 0});
  std::size_t at_top = 0;
  for (const OutputTensor& tensor : outputs.tensors) {
    std::uint32_t home = 0;
    auto is_of = [&](const PartHome& part) {
      const std::string_view name = std::string_view(part.folder).substr(0, part.prefix - 1);
      return tensor.fqn.size() > part.prefix && tensor.fqn.starts_with(name) &&
             tensor.fqn[part.prefix - 1] == '.';
    };
    while (home < top && !is_of(found.homes[home])) ++home;
    at_top += home == top ? 1 : 0;
    found.of_tensor.push_back(home);
  }
  const bool fits = is_pipeline ? at_top == 0 : at_top > 0;
  return top > 0 && fits ? found : all_at_the_top(outputs);
}

}  // namespace shw

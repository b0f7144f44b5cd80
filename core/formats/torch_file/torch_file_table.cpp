#include "core/formats/torch_file/torch_file_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/words.h"
#include "core/formats/common/tensor_subclass.h"
#include "core/formats/small_json.h"
#include "core/formats/torch_file/open_state.h"
#include "core/formats/torch_file/torch_file.h"
#include "core/formats/torch_file/torch_file_choice.h"
#include "core/formats/torch_file/torch_file_formats.h"
#include "core/formats/torch_file/torch_file_writer.h"
#include "core/formats/torch_file/torch_index.h"
#include "core/formats/torch_file/torch_several.h"
#include "core/formats/unsupported_formats.h"

namespace shw {
namespace {

// True for a part of another format's checkpoint: a rank's file is not a whole model.
bool is_unread(const Entry& entry) {
  auto others = unsupported_formats();
  return std::any_of(others.begin(), others.end(), [&](const UnsupportedFormat& other) {
    return !other.is_adjacent_file &&
           other.matches(entry.path,
                         std::string_view(entry.path).substr(entry.path.rfind('/') + 1));
  });
}

// True if all parts of one model exist.
Result<bool> has_all_parts(const DirectoryContents& look, std::span<const Entry> entries) {
  const TorchParts parts = torch_parts_among(entries);
  if (parts.files.empty() || !parts.missing.empty()) return false;
  return is_torch_archive(look, parts.files.front());
}

// The error if some parts are missing and no index lists their contents.
std::optional<Error> missing_parts_error(std::span<const Entry> entries) {
  const TorchParts parts = torch_parts_among(entries);
  if (parts.missing.empty()) return std::nullopt;
  const std::size_t all = parts.files.size() + parts.missing.size();
  return Error{ErrorKind::kUnsupported,
               fmt::format("is missing: only {1} of the {0} parts of a Hugging Face model in "
                           "torch.save files (.bin) are here, and no index says what was in {2}",
                           all, parts.files.size(), short_list_text(parts.missing)),
               {parts.missing.front()},
               "Download the missing parts. To open one part, give its path."};
}

// Megatron's zarr backend, whose tensors are arrays in folders next to common.pt.
bool is_megatron_zarr(const DirectoryContents& look) {
  const nlohmann::json metadata = read_small_json(look, "metadata.json");
  return metadata.is_object() && metadata.contains("sharded_backend") &&
         metadata["sharded_backend"] == "zarr";
}

Result<bool> has_torch_file(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  if (is_megatron_zarr(look)) return false;
  const bool may_have_index = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.path.ends_with(".bin.index.json");
  });
  if (may_have_index) {
    SHW_TRY(auto index, find_torch_index(look.directory()));
    if (index && !index->files.empty()) return true;
  }
  SHW_TRY(bool has_all, has_all_parts(look, entries));
  if (has_all) return true;
  if (std::any_of(entries.begin(), entries.end(), is_unread)) return false;
  SHW_TRY(auto file, torch_file_in(look));
  return file ? true : has_torch_file_group(look);
}

// "0.weight" for the entry "0.weight.qdata".
std::string wrapping_fqn(const StateEntry& part, const TensorSubclass& subclass) {
  for (const WrappedTensor& one : subclass.tensors) {
    const std::string ending = "." + one.name;
    if (one.node == part.value && part.fqn.ends_with(ending))
      return part.fqn.substr(0, part.fqn.size() - ending.size());
  }
  return {};
}

void add_classes_of_file(const OpenedState& state, const std::string& path,
                         const Checkpoint& checkpoint, std::vector<TensorClass>& classes) {
  auto entries = entries_of(state, path);
  if (!entries) return;
  std::set<std::string> seen;
  for (const StateEntry& entry : *entries) {
    if (entry.subclass == NodeId::kAbsent) continue;
    const TensorSubclass subclass = tensor_subclass(state.tree, entry.subclass);
    const bool is_prefixed = !checkpoint.find(entry.fqn);
    std::string fqn = wrapping_fqn(entry, subclass);
    if (fqn.empty() || !seen.insert(fqn).second) continue;
    if (is_prefixed) fqn = torch_stem(path) + "." + fqn;
    TensorClass found{fqn, class_without_module(subclass.type), subclass.stands_for};
    for (const WrappedTensor& one : subclass.tensors) found.parts.push_back(fqn + "." + one.name);
    classes.push_back(std::move(found));
  }
}

std::vector<TensorClass> classes_in_files(const Checkpoint& checkpoint) {
  std::vector<TensorClass> classes;
  if (checkpoint.directory() == nullptr) return classes;
  for (const FileRow& file : checkpoint.files()) {
    if (!file.referenced || !file.safe || file.kind != EntryKind::kFile) continue;
    if (auto state = open_state(*checkpoint.directory(), file.path))
      add_classes_of_file(*state, file.path, checkpoint, classes);
  }
  return classes;
}

}  // namespace

constexpr FormatRow kTorchFileRow = {
    .format = &kTorchFileFormat,
    .sign = "torch.save file",
    .recognises = has_torch_file,
    .open = open_torch_file,
    .named = torch_file_role,
    .unfinished = missing_parts_error,
    .names_are_common = true,
    .noted_additions = torch_only_names,
    .tensor_classes = classes_in_files,
};

}  // namespace shw

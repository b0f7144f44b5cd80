#include "core/formats/refused_folder.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/formats/common/companion_names.h"
#include "core/formats/common/open_advice.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/unsafe_file.h"
#include "core/formats/folder_kind.h"

namespace shw {
namespace {

// The last names of the list, which are the latest steps.
std::string joined(const std::vector<std::string>& names, std::size_t most) {
  std::string text;
  const std::size_t last = names.size() > most ? names.size() - (most - 1) : 1;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0 && i < last) continue;
    text += (i == 0 ? "" : i == last && last > 1 ? ", ..., " : ", ") + names[i];
  }
  return text;
}

}  // namespace

std::string advice_to_open_one_of(const Directory& directory, std::span<const Entry> entries,
                                  const std::vector<std::string>& whole,
                                  std::span<const FormatRow> rows) {
  std::string text =
      (whole.size() == 1 ? "Open it by its folder: " : "Open one of them by its folder: ") +
      joined(whole, 12) + ".";
  const auto folders = folders_with_checkpoints(entries, rows);
  if (!folders.empty()) text += " " + advice_to_open(directory, folders.front());
  const IncompleteSubfolders broken = incomplete_subfolders(entries, rows);
  if (!broken.unfinished.empty())
    text += fmt::format(" The save of {} did not finish.", joined(broken.unfinished, 4));
  if (!broken.lacking.empty())
    text += fmt::format(" Parts of a model are missing in {}.", joined(broken.lacking, 4));
  return text;
}

std::string recognised_files_text(std::span<const FormatRow> rows) {
  std::string text;
  std::string_view last;
  for (const FormatRow& row : rows) {
    if (row.sign.empty() || row.sign == last) continue;
    text += (text.empty() ? "" : ", ") + std::string(row.sign);
    last = row.sign;
  }
  return text;
}

std::string names_at_top(std::span<const Entry> entries) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) {
    const std::size_t slash = entry.path.find('/');
    const bool is_folder = slash != entry.path.npos || entry.kind == EntryKind::kDirectory;
    names.push_back(entry.path.substr(0, slash) + (is_folder ? "/" : ""));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return short_list_text(names, 6);
}

bool is_read_next_to_weights(std::string_view path) {
  return is_model_companion(path) || path.ends_with("trainer_state.json");
}

tl::unexpected<Error> refused_file(const std::string& path, const std::string& parent,
                                   std::string_view format) {
  if (is_read_next_to_weights(path))
    return fail(ErrorKind::kUnsupported, "holds no tensors: loaders read it next to the weights",
                {path}, "Open its folder instead: " + parent);
  if (!format.empty())
    return fail(ErrorKind::kUnsupported, fmt::format("is not a checkpoint file: it is {}", format),
                {path});
  return fail(ErrorKind::kUnsupported,
              "is not a checkpoint: expected a directory, its .metadata, a .safetensors file or a "
              "torch.save file",
              {path});
}

void add_unsafe_pickles(Error& error, const Directory& directory) {
  constexpr std::size_t kMaxFiles = 64;
  if (error.kind != ErrorKind::kDamaged && error.kind != ErrorKind::kUnsupported) return;
  const auto entries = directory.list();
  if (!entries) return;
  std::size_t seen = 0;
  for (const Entry& entry : *entries) {
    const bool is_candidate =
        entries->size() == 1 || is_named_as_pickle(entry.path) || entry.path.ends_with(".metadata");
    if (!is_top_file(entry) || !is_candidate) continue;
    if (++seen > kMaxFiles) return;
    for (const Finding& finding : unsafe_findings_of_file(directory, entry.path)) {
      std::string text = entry.path + ": " + finding.cause;
      if (error.advice.find(text) != std::string::npos) return;  // added for a folder below
      error.advice += (error.advice.empty() ? "" : " ") + std::move(text);
      break;
    }
  }
}

}  // namespace shw

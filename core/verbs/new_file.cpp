#include "core/verbs/new_file.h"

#include <algorithm>
#include <array>

#include "core/io/path_text.h"
#include "core/io/store.h"
#include "core/verbs/output_place.h"
#include "core/verbs/view_ending.h"

namespace shw::verbs {
namespace {

struct NewFileRow {
  std::string_view word, name, ending;  // the last two are of PlaceRequest
};
constexpr std::array<NewFileRow, 7> kNewFiles{{{"report", "report", ".html"},
                                               {"view", "view", kViewEnding},
                                               {"hashes", "hashes", ".txt"},
                                               {"npy", "", ".npy"},
                                               {"csv", "", ".csv"},
                                               {"png", "view", ".png"},
                                               {"svg", "view", ".svg"}}};

const NewFileRow& new_file_row(NewFile file) {
  return kNewFiles[static_cast<std::size_t>(file)];
}

}  // namespace

std::string_view name(NewFile file) {
  return new_file_row(file).word;
}

std::optional<NewFile> parse_new_file(std::string_view text) {
  const auto found = std::ranges::find(kNewFiles, text, &NewFileRow::word);
  if (found == kNewFiles.end()) return std::nullopt;
  return static_cast<NewFile>(found - kNewFiles.begin());
}

PlaceRequest place_request(NewFile file, const std::string& checkpoint, std::string_view fqn,
                           const std::string& path) {
  const NewFileRow& row = new_file_row(file);
  return {checkpoint, path, row.name.empty() ? file_name_of(fqn) : std::string(row.name),
          std::string(row.ending)};
}

NewFilePlace inspect_new_file(const Store& store, const Opened& opened, const VerbOptions& options,
                              NewFile file, std::string_view fqn, const std::string& typed_path) {
  NewFilePlace place{file, typed_path};
  auto path = free_path(store, place_request(file, options.checkpoint, fqn, typed_path));
  if (!path) {
    place.refused = std::move(path).error();
    return place;
  }
  if (auto whole = store.resolved(*path)) *path = *whole;
  if (!store.exists(parent_of(*path))) {
    place.refused = Error{ErrorKind::kIo, "is not there", {parent_of(*path)}};
    return place;
  }
  if (Status apart = check_output_place(opened, options, *path); !apart) {
    place.refused = apart.error();
    return place;
  }
  if (auto free = store.free_bytes(parent_of(*path))) place.free = *free;
  place.path = std::move(*path);
  return place;
}

}  // namespace shw::verbs

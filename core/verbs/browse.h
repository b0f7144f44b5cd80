// Folders in the file browser: the kind of each, by its contents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"

namespace shw::verbs {

enum class PlaceKind : std::uint8_t { kFolder, kCheckpoint, kFile };

struct ListedPlace {
  std::string name;
  PlaceKind kind = PlaceKind::kFolder;   // kFile: a checkpoint file
  bool looked = false;                   // false: not examined, so `what` is unknown
  std::string what;                      // "DCP", "3 checkpoints inside"; may be empty
  std::optional<std::uint64_t> tensors;  // if it is cheap to know
  bool contains_checkpoints = false;     // true: a folder with checkpoints inside
  bool is_openable() const { return kind != PlaceKind::kFolder; }
};

struct FolderListing {
  std::string asked;                // as typed by the user: "~/runs/"
  std::string path;                 // "/home/me/runs"
  ListedPlace here;                 // the folder itself
  std::vector<ListedPlace> places;  // in natural order: step_9000 before step_10000
  std::size_t looked = 0;           // number of examined places
  std::size_t other_files = 0;
  std::optional<Error> error;  // why listing failed
  bool is_complete() const { return error || (here.looked && looked == places.size()); }
};

// Expands "~"; relative paths refer to the working directory.
std::string expanded(std::string_view path, std::string_view home);

// Lists names without examining them.
FolderListing list_folder(const std::string& asked);
// Examines the next few entries; may fail with kCancelled.
Result<FolderListing> inspect_entries(FolderListing listing, Progress* progress);

}  // namespace shw::verbs

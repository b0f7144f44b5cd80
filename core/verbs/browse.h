// Folders as somebody sees them who looks for a checkpoint: what each is, told by what lies in it.
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
  PlaceKind kind = PlaceKind::kFolder;   // kFile: a file that is a checkpoint by itself
  bool looked = false;                   // false: `what` is not known yet
  std::string what;                      // "DCP", "3 checkpoints inside"; empty: nothing to say
  std::optional<std::uint64_t> tensors;  // where that is cheap to know
  bool is_openable() const { return kind != PlaceKind::kFolder; }
};

struct FolderListing {
  std::string asked;                // "~/runs/"
  std::string path;                 // "/home/me/runs"
  ListedPlace here;                 // the folder itself
  std::vector<ListedPlace> places;  // step_9000 before step_10000
  std::size_t looked = 0;           // of them
  std::size_t other_files = 0;
  std::optional<Error> error;  // why it could not be listed
  bool is_complete() const { return error || looked == places.size(); }
};

// "~" is the home folder, a relative path is from where the program runs.
std::string expanded(std::string_view path, std::string_view home);

// Names only.
FolderListing list_folder(const std::string& asked);
// What the next few of them are; kCancelled.
Result<FolderListing> look_closer(FolderListing listing, Progress* progress);

}  // namespace shw::verbs

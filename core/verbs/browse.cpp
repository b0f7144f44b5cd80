#include "core/verbs/browse.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/base/natural_order.h"
#include "core/base/words.h"
#include "core/formats/folder_kind.h"
#include "core/formats/open.h"
#include "core/io/list_names.h"
#include "core/io/path_text.h"
#include "core/io/store.h"
#include "core/verbs/view_ending.h"

namespace shw::verbs {
namespace {

// Entries examined before the list is shown: a moment on a slow disk.
constexpr std::size_t kAtOnce = 16;

void describe(ListedPlace& place, const std::string& path) {
  place.looked = true;
  auto directory = open_directory(path);
  if (!directory) {
    place.what = "cannot be listed";
    return;
  }
  auto kind = kind_of_folder(*directory);
  if (!kind) {
    place.what = "cannot be listed";
    return;
  }
  if (kind->format != nullptr) {
    place.kind = PlaceKind::kCheckpoint;
    place.what = kind->format->title;
    if (!kind->is_fast_to_open) return;
    auto opened = open_checkpoint(*directory);
    if (opened)
      place.tensors = (*opened)->tensor_count();
    else
      place.what += ", damaged";
  } else if (kind->below > 0) {
    place.what = plural(kind->below, "checkpoint") + " inside";
    place.contains_checkpoints = true;
  } else if (!kind->unread.empty()) {
    place.what = std::string(kind->unread) + ", not read";
  } else if (kind->has_many) {
    place.what = "many files";
  }
}

}  // namespace

std::string expanded(std::string_view path, std::string_view home) {
  std::string text(path.empty() ? "." : path);
  if (text == "~" || text.starts_with("~/")) text = std::string(home) + text.substr(1);
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

FolderListing list_folder(const std::string& asked) {
  FolderListing listing;
  listing.asked = asked;
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  std::string wanted = expanded(asked, home != nullptr ? home : "/");
  listing.path = posix_store().resolved(wanted).value_or(wanted);
  auto directory = open_directory(listing.path);
  if (!directory) {
    listing.error = directory.error();
    return listing;
  }
  auto names = names_in(listing.path);
  if (!names) {
    listing.error = names.error();
    return listing;
  }
  for (std::string& name : *names) {
    if (name.find(kPartialMark) != name.npos) continue;
    Entry entry = (*directory)->stat(name);
    ListedPlace place;
    if (entry.kind == EntryKind::kFile && is_file_of_checkpoint(name)) {
      place.kind = PlaceKind::kFile;
      place.what = human_bytes(entry.size);
    } else if (entry.kind == EntryKind::kFile && name.ends_with(kViewEnding)) {
      place.kind = PlaceKind::kFile;
      place.what = "a saved view";
    } else if (entry.kind != EntryKind::kDirectory || name.starts_with('.')) {
      ++listing.other_files;
      continue;
    }
    place.name = std::move(name);
    listing.places.push_back(std::move(place));
  }
  std::sort(
      listing.places.begin(), listing.places.end(),
      [](const ListedPlace& a, const ListedPlace& b) { return natural_less(a.name, b.name); });
  return listing;
}

Result<FolderListing> inspect_entries(FolderListing listing, Progress* progress) {
  if (listing.error) return listing;
  if (!listing.here.looked) describe(listing.here, listing.path);
  std::string base = listing.path == "/" ? "/" : listing.path + "/";
  std::size_t end = std::min(listing.places.size(), listing.looked + kAtOnce);
  for (; listing.looked < end; ++listing.looked) {
    if (is_cancelled(progress)) return cancelled_error();
    ListedPlace& place = listing.places[listing.looked];
    if (place.kind == PlaceKind::kFile)
      place.looked = true;
    else
      describe(place, base + place.name);
  }
  return listing;
}

}  // namespace shw::verbs

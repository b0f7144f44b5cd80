#include "core/io/remote/open_remote.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "core/io/path_suffix.h"
#include "core/io/remote/bucket_files.h"
#include "core/io/remote/http_files.h"
#include "core/io/remote/hub_files.h"
#include "core/io/remote/remote_path.h"
#include "core/io/remote/sftp_files.h"

namespace shw {
namespace {

struct OpenedPlaces {
  std::mutex guard;
  std::map<std::string, std::weak_ptr<const RemoteDirectory>> of;
};
OpenedPlaces& opened_places() {
  static OpenedPlaces places;
  return places;
}

// Splits off the last part ("a/b/c" becomes "a/b" and "c"), in both `path` and `shown`.
std::string remove_last_path_part(RemotePlace& place) {
  const std::size_t slash = place.path.rfind('/');
  std::string last = place.path.substr(slash == place.path.npos ? 0 : slash + 1);
  place.path.resize(slash == place.path.npos ? 0 : slash);
  place.shown.resize(place.shown.size() - last.size() - 1);
  return last;
}

// True for endings that no folder has on a web server.
bool is_named_like_a_file(const std::string& path) {
  constexpr std::string_view kEndings[] = {".safetensors", ".json", ".pt",   ".pth",     ".bin",
                                           ".ckpt",        ".h5",   ".hdf5", ".metadata"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

Result<std::unique_ptr<RemoteFiles>> files_of(RemotePlace place, bool is_deep) {
  switch (place.kind) {
    case RemoteKind::kHttp:
      return http_files(std::move(place), {});
    case RemoteKind::kHub:
      return hub_files(std::move(place), is_deep);
    case RemoteKind::kS3:
    case RemoteKind::kGs:
      return bucket_files(std::move(place), is_deep);
    case RemoteKind::kSsh:
      break;
  }
  return sftp_files(place, is_deep);
}

Result<std::shared_ptr<const RemoteDirectory>> listed(const RemotePlace& place,
                                                      std::unique_ptr<RemoteFiles> files) {
  return remote_directory(place.shown, std::move(files));
}

// HTTP does not distinguish folders from files: the name is used as a hint, then the server's
// answer.
Result<OpenedRemote> open_http(RemotePlace place, bool is_typed_as_folder) {
  RemotePlace above = place;
  const std::string last = place.path.empty() ? std::string() : remove_last_path_part(above);
  bool is_file = false;
  if (!is_typed_as_folder && !last.empty()) {
    SHW_TRY(is_file, is_http_file(place));
  }
  OpenedRemote opened;
  // Some servers answer a folder's URL with a page that is not HTML, so it is also tried as a
  // folder.
  if (!is_file || !is_named_like_a_file(last)) {
    auto folder = listed(place, http_files(place, {}));
    if (folder) {
      opened.directory = std::move(*folder);
      return opened;
    }
    if (!is_file) return tl::unexpected<Error>(std::move(folder).error());
  }
  opened.file = percent_decoded(last);
  SHW_TRY(opened.directory, listed(above, http_files(above, opened.file)));
  return opened;
}

// Opens a prefix as a folder; an empty prefix is an error.
Result<OpenedRemote> open_listed(RemotePlace place) {
  OpenedRemote opened;
  SHW_TRY(auto files, files_of(place, true));
  SHW_TRY(opened.directory, listed(place, std::move(files)));
  if (auto entries = opened.directory->list(1); !entries || !entries->empty()) return opened;
  return fail(ErrorKind::kIo, "there is no such file or folder", {place.shown});
}

// A file's folder may be a home directory, so only its direct entries are listed.
Result<OpenedRemote> open_ssh(RemotePlace place) {
  SHW_TRY(auto connection, sftp_connection(place));
  SHW_TRY(const auto found, sftp_attributes(place, connection));
  if (!found) return fail(ErrorKind::kIo, "there is no such file or folder", {place.shown});
  OpenedRemote opened;
  if (found->is_file()) opened.file = remove_last_path_part(place);
  SHW_TRY(auto files, sftp_files(place, opened.file.empty()));
  SHW_TRY(opened.directory, listed(place, std::move(files)));
  return opened;
}

// Opens the folder of a file of the hub or of a bucket, so that files next to it are found too.
// nullopt if the path names no file.
Result<std::optional<OpenedRemote>> open_listed_file(const RemotePlace& place) {
  if (place.kind != RemoteKind::kHub) {
    SHW_TRY(const bool is_object, is_bucket_object(place));
    if (!is_object) return std::nullopt;
  }
  RemotePlace above = place;
  OpenedRemote opened;
  opened.file = remove_last_path_part(above);
  SHW_TRY(auto files, files_of(above, false));
  SHW_TRY(opened.directory, listed(above, std::move(files)));
  if (opened.directory->stat(opened.file).kind != EntryKind::kFile) return std::nullopt;
  return opened;
}

Result<OpenedRemote> open_place(RemotePlace place, bool is_typed_as_folder) {
  if (place.kind == RemoteKind::kSsh) return open_ssh(std::move(place));
  if (place.kind == RemoteKind::kHttp) return open_http(std::move(place), is_typed_as_folder);
  if (is_typed_as_folder || place.path.empty()) return open_listed(std::move(place));
  // What the name says is asked for first: that of a file has an ending.
  const bool is_file_likely = place.path.find('.', place.path.rfind('/') + 1) != std::string::npos;
  if (is_file_likely) {
    SHW_TRY(auto file, open_listed_file(place));
    if (file) return std::move(*file);
  }
  auto folder = open_listed(place);
  if (folder || is_file_likely) return folder;
  auto file = open_listed_file(place);
  return file && *file ? Result<OpenedRemote>(std::move(**file)) : folder;
}

// Finds an open directory that is the path or contains it as a file.
OpenedRemote find_opened_place(OpenedPlaces& places, const std::string& shown) {
  std::lock_guard lock(places.guard);
  for (std::size_t end = shown.size(); end != shown.npos && end > 0;
       end = shown.rfind('/', end - 1)) {
    const auto found = places.of.find(shown.substr(0, end));
    auto directory = found == places.of.end() ? nullptr : found->second.lock();
    if (directory == nullptr) continue;
    if (end == shown.size()) return {std::move(directory), {}};
    const std::string below = shown.substr(end + 1);
    if (directory->stat(below).kind == EntryKind::kFile) return {std::move(directory), below};
  }
  return {};
}

}  // namespace

Result<OpenedRemote> open_remote(const std::string& path) {
  without_secrets(path);
  SHW_TRY(const RemotePlace place, parse_remote(path));
  OpenedPlaces& places = opened_places();
  if (OpenedRemote open = find_opened_place(places, place.shown); open.directory != nullptr)
    return open;
  SHW_TRY(OpenedRemote opened, open_place(place, path.ends_with('/')));
  std::lock_guard lock(places.guard);
  places.of[opened.directory->name()] = opened.directory;
  return opened;
}

void forget_listings(const std::string& path) {
  if (const auto computed = parse_computed_suffix(path)) {
    forget_listings(computed->before);
    for (const std::string& other : computed->others) forget_listings(other);
    return;
  }
  const auto place = is_remote(path) ? parse_remote(path) : Result<RemotePlace>(RemotePlace{});
  if (!place || place->shown.empty()) return;
  const std::string& shown = place->shown;
  const auto is_below = [](const std::string& below, const std::string& folder) {
    return below == folder || below.starts_with(folder + "/");
  };
  OpenedPlaces& places = opened_places();
  std::lock_guard lock(places.guard);
  std::erase_if(places.of, [&](const auto& one) {
    return is_below(one.first, shown) || is_below(shown, one.first);
  });
}

}  // namespace shw

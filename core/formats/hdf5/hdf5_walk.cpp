#include "core/formats/hdf5/hdf5_walk.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "core/base/checked.h"
#include "core/formats/hdf5/hdf5_messages.h"

namespace shw {
namespace {

constexpr std::size_t kMaxGroups = 64;
constexpr int kMaxSoftLinks = 16;  // in sequence, as in HDF5
// Memory for names of a file. A link takes about 40 bytes of the file and a dataset 250, so this
// allows several names for each. Two groups that contain each other would yield 2^n names.
constexpr std::uint64_t kMaxNameBytesOfFile = std::uint64_t{1} << 20;
constexpr std::uint64_t kNameBytesPerFileByte = 32;
constexpr std::uint64_t kBytesPerName = 64;

// The bytes of a dataset with that number, or metadata if there is no number.
struct Hdf5OwnedRange {
  Hdf5Run run;
  std::optional<std::uint32_t> dataset = {};
};
constexpr std::size_t kMostOverlaps = 32;

struct Hdf5Walker {
  Hdf5Objects objects;
  std::uint64_t room = 0;   // memory left for names
  std::uint64_t steps = 0;  // steps left for following soft links
  Hdf5Walk found = {};
  // Cache of objects read, which may have several names.
  std::map<std::uint64_t, Result<std::vector<Hdf5Link>>> groups = {};
  std::map<std::uint64_t, std::shared_ptr<const Result<Hdf5Array>>> datasets = {};
  // Links of groups, for following soft links.
  using Members = std::unordered_map<std::string_view, const Hdf5Link*>;
  std::map<std::uint64_t, Members> members = {};
  std::set<std::uint64_t> way = {};     // enclosing groups; links back to them are skipped
  std::vector<std::string> names = {};  // first name of each dataset
  std::vector<Hdf5OwnedRange> owned = {};

  bool reserve_name_bytes(const std::string& path, std::uint64_t more);
  void visit(const std::string& path, std::uint64_t address, std::size_t level);
  void visit_link(const std::string& path, std::uint64_t group, const Hdf5Link& link,
                  std::size_t level);
  void visit_soft_link(const std::string& path, std::uint64_t group, const Hdf5Link& link,
                       std::size_t level);
  void record_lost_link(const std::string& path, Error error);
  Result<const Hdf5Link*> member(std::uint64_t group, std::string_view name);
  Result<std::uint64_t> follow(std::uint64_t from, std::string_view target, int& links_left);
  void visit_group(const std::string& path, std::uint64_t address, std::size_t level);
  void read_object(const std::string& path, std::uint64_t address);
  void own(const std::string& path, const Hdf5Array& array);
  void find_overlaps();
};

std::uint64_t bytes_of(const Result<Hdf5Array>& array) {
  if (!array) return 0;
  const std::uint64_t tile = sizeof(Hdf5Tile) + array->shape.size() * sizeof(std::int64_t);
  return array->tiles.size() * tile;
}

std::uint64_t bytes_of(const Result<std::vector<Hdf5Link>>& links) {
  std::uint64_t bytes = 0;
  if (!links) return 0;
  for (const Hdf5Link& link : *links)
    bytes += kBytesPerName + link.name.size() + link.target.size();
  return bytes;
}

// True if a dataset exceeds an embedded HDF5 file, where other bytes follow. In separate files the
// file's length shows this.
bool exceeds_file(const Hdf5Array& array, std::uint64_t size) {
  auto ends_past = [&](std::uint64_t offset, std::uint64_t length) {
    return offset > size || length > size - offset;
  };
  return (array.offset && ends_past(*array.offset, array.length)) ||
         std::any_of(array.tiles.begin(), array.tiles.end(),
                     [&](const Hdf5Tile& tile) { return ends_past(tile.offset, tile.length); });
}

// Converts offsets in the source to offsets in the enclosing file.
void shift_offsets(Hdf5Array& array, std::uint64_t begin) {
  array.unread_offset += begin;
  array.fill.offset += begin;
  if (array.offset) *array.offset += begin;
  for (Hdf5Tile& tile : array.tiles) tile.offset += begin;
}

// Reserves memory; false from the first failure on.
bool Hdf5Walker::reserve_name_bytes(const std::string& path, std::uint64_t more) {
  const std::uint64_t wanted = path.size() + kBytesPerName + more;
  if (wanted <= room) {
    room -= wanted;
    return true;
  }
  if (room != 0)
    found.lost_groups.emplace_back(path, Error{ErrorKind::kDamaged,
                                               "the file lists more names than fit in its size, so "
                                               "its links may be damaged or circular"});
  room = 0;
  return false;
}

// Keeps an object's contents only if memory allows, since objects may share parts.
void Hdf5Walker::read_object(const std::string& path, std::uint64_t address) {
  auto messages = objects.known(address);
  // Unreadable objects have a name and may be tensors.
  if (!messages || Hdf5Objects::is_dataset(*messages)) {
    auto array = messages ? objects.array(*messages)
                          : Result<Hdf5Array>(tl::unexpected<Error>(messages.error()));
    // Ends beyond the file itself are reported with its length.
    const std::uint64_t end = std::min(objects.size(), objects.end_of_file());
    if (array && (objects.begin() != 0 || end < objects.size()) && exceeds_file(*array, end))
      array = fail(ErrorKind::kDamaged, "its elements are expected past the end of the HDF5 file",
                   {{}, objects.begin() + end});
    if (array) own(path, *array);
    if (array) shift_offsets(*array, objects.begin());
    if (reserve_name_bytes(path, bytes_of(array)))
      datasets.emplace(address, std::make_shared<const Result<Hdf5Array>>(std::move(array)));
  } else {
    auto links = objects.links(*messages);
    if (reserve_name_bytes(path, bytes_of(links))) groups.emplace(address, std::move(links));
  }
}

void Hdf5Walker::own(const std::string& path, const Hdf5Array& array) {
  const auto number = static_cast<std::uint32_t>(names.size());
  names.push_back(path);
  auto add = [&](std::uint64_t begin, std::uint64_t length) {
    auto end = checked_add(begin, length);
    if (end && length != 0) owned.push_back({{begin, *end}, number});
  };
  if (array.offset && !array.is_compact) add(*array.offset, array.length);
  for (const Hdf5Tile& tile : array.tiles) add(tile.offset, tile.length);
}

// Reports datasets whose chunks share bytes with another dataset or with the file's metadata. One
// finding per dataset, because all chunks of a damaged dataset may overlap.
void Hdf5Walker::find_overlaps() {
  for (const Hdf5Run& run : objects.described()) owned.push_back({run});
  std::sort(owned.begin(), owned.end(), [](const Hdf5OwnedRange& a, const Hdf5OwnedRange& b) {
    return std::tie(a.run.begin, a.run.end, a.dataset) <
           std::tie(b.run.begin, b.run.end, b.dataset);
  });
  std::set<std::uint32_t> told;
  const Hdf5OwnedRange* reach = nullptr;  // the previous range with the greatest end
  for (const Hdf5OwnedRange& one : owned) {
    const bool meets = reach != nullptr && one.run.begin < reach->run.end;
    auto who = one.dataset ? one.dataset : reach != nullptr ? reach->dataset : std::nullopt;
    if (meets && who && told.size() < kMostOverlaps && told.insert(*who).second) {
      const auto& other = one.dataset ? reach->dataset : std::nullopt;
      const std::string what = !other                   ? "what describes the file"
                               : *other == *one.dataset ? "others of it"
                                                        : "those of " + names[*other];
      found.overlaps.emplace_back(
          names[*who],
          Error{ErrorKind::kDamaged,
                fmt::format("elements are recorded where {} {}", what, other ? "do" : "does"),
                {{}, objects.begin() + one.run.begin}});
    }
    if (reach == nullptr || one.run.end > reach->run.end) reach = &one;
  }
}

void Hdf5Walker::visit_group(const std::string& path, std::uint64_t address, std::size_t level) {
  const Result<std::vector<Hdf5Link>>& links = groups.at(address);
  if (!links) {
    found.lost_groups.emplace_back(path, links.error());
    return;
  }
  if (level > kMaxGroups || path.size() > kLongestHdf5Path) {
    found.lost_groups.emplace_back(path, Error{ErrorKind::kDamaged, "groups are nested too deep"});
    return;
  }
  way.insert(address);
  for (const Hdf5Link& link : *links)
    visit_link(path.empty() ? link.name : path + "/" + link.name, address, link, level + 1);
  way.erase(address);
}

void Hdf5Walker::visit_link(const std::string& path, std::uint64_t group, const Hdf5Link& link,
                            std::size_t level) {
  switch (link.kind) {
    case Hdf5LinkKind::kHard:
      return visit(path, link.address, level);
    case Hdf5LinkKind::kSoft:
      return visit_soft_link(path, group, link, level);
    case Hdf5LinkKind::kExternal:
      if (reserve_name_bytes(path, link.target.size()))
        found.links_outside.emplace_back(path, link.target);
      return;
    case Hdf5LinkKind::kOther:
      return record_lost_link(
          path, {ErrorKind::kUnsupported, "is a user-defined link, which was not followed"});
  }
}

void Hdf5Walker::record_lost_link(const std::string& path, Error error) {
  if (reserve_name_bytes(path, error.message.size()))
    found.lost_links.emplace_back(path, std::move(error));
}

// Adds another name for the target.
void Hdf5Walker::visit_soft_link(const std::string& path, std::uint64_t group, const Hdf5Link& link,
                                 std::size_t level) {
  int links_left = kMaxSoftLinks - 1;
  auto address = follow(group, link.target, links_left);
  if (address) return visit(path, *address, level);
  Error error = std::move(address).error();
  error.message = "is a soft link to " + link.target + ", and " + error.message;
  record_lost_link(path, std::move(error));
}

// The link of that name in a group.
Result<const Hdf5Link*> Hdf5Walker::member(std::uint64_t group, std::string_view name) {
  if (steps == 0)
    return fail(ErrorKind::kDamaged, "following the soft links of the file takes too many steps");
  --steps;
  if (!groups.contains(group) && !datasets.contains(group)) read_object(std::string(name), group);
  auto read = groups.find(group);
  if (read == groups.end())
    return fail(ErrorKind::kDamaged, fmt::format("the parent of {} is not a group", name));
  if (!read->second)
    return fail(read->second.error().kind, fmt::format("the parent group of {} cannot be read: {}",
                                                       name, read->second.error().message));
  auto [all, is_new] = members.try_emplace(group);
  if (is_new) {
    for (const Hdf5Link& link : *read->second) all->second.emplace(link.name, &link);
  }
  auto found_link = all->second.find(name);
  if (found_link == all->second.end())
    return fail(ErrorKind::kDamaged, fmt::format("there is no {}", name));
  return found_link->second;
}

// Resolves like HDF5: from the root or the enclosing group; "." is the current group, ".." an
// ordinary name.
Result<std::uint64_t> Hdf5Walker::follow(std::uint64_t from, std::string_view target,
                                         int& links_left) {
  if (target.empty() || target.size() > kLongestHdf5Path)
    return fail(ErrorKind::kDamaged, "that is not a path");
  std::uint64_t at = target.starts_with('/') ? objects.root() : from;
  while (!target.empty()) {
    const std::string_view name = target.substr(0, target.find('/'));
    target.remove_prefix(std::min(name.size() + 1, target.size()));
    if (name.empty() || name == ".") continue;
    SHW_TRY(const Hdf5Link* link, member(at, name));
    if (link->kind == Hdf5LinkKind::kHard) {
      at = link->address;
    } else if (link->kind == Hdf5LinkKind::kSoft) {
      if (links_left-- <= 0) return fail(ErrorKind::kDamaged, "more than 16 soft links in a chain");
      SHW_TRY(at, follow(at, link->target, links_left));
    } else {
      return fail(ErrorKind::kUnsupported,
                  fmt::format("{} points outside the file{} and was not followed", name,
                              link->target.empty() ? "" : " to " + link->target));
    }
  }
  return at;
}

void Hdf5Walker::visit(const std::string& path, std::uint64_t address, std::size_t level) {
  if (way.contains(address) || !reserve_name_bytes(path, 0)) return;
  if (!groups.contains(address) && !datasets.contains(address)) read_object(path, address);
  if (auto dataset = datasets.find(address); dataset != datasets.end()) {
    if (reserve_name_bytes(path, bytes_of(*dataset->second)))
      found.arrays.push_back({path, dataset->second});
  } else if (groups.contains(address)) {
    visit_group(path, address, level);
  }
}

}  // namespace

Result<Hdf5Walk> walk_hdf5(std::shared_ptr<const ByteSource> source, std::uint64_t begin) {
  SHW_TRY(Hdf5Objects objects, Hdf5Objects::open(std::move(source), begin));
  const std::uint64_t root = objects.root(),
                      room = kMaxNameBytesOfFile + kNameBytesPerFileByte * objects.size();
  Hdf5Walker walker{std::move(objects), room, room};
  SHW_TRY(auto messages, walker.objects.known(root));
  if (!Hdf5Objects::is_group(messages))
    return fail(ErrorKind::kDamaged, "has a root that is not a group",
                {walker.objects.file(), begin + root});
  SHW_TRY(auto links, walker.objects.links(messages));
  walker.groups.emplace(root, std::move(links));
  walker.visit_group("", root, 0);
  walker.find_overlaps();
  walker.found.was_left_open = walker.objects.was_left_open();
  walker.found.end_of_file = walker.objects.end_of_file();
  return std::move(walker.found);
}

}  // namespace shw

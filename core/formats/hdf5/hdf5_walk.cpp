#include "core/formats/hdf5/hdf5_walk.h"

#include <map>

namespace shw {
namespace {

constexpr std::size_t kMostGroups = 64;
constexpr std::size_t kLongestPath = 4096;

struct Hdf5Walker {
  Hdf5Objects objects;
  Hdf5Walk found = {};
  std::set<std::uint64_t> groups = {};                       // on no way twice
  std::map<std::uint64_t, Result<Hdf5Array>> datasets = {};  // an object may have several names

  void visit(const std::string& path, std::uint64_t address, std::size_t level);
  Status visit_group(const std::string& path, const std::vector<Hdf5Message>& messages,
                     std::size_t level);
};

Status Hdf5Walker::visit_group(const std::string& path, const std::vector<Hdf5Message>& messages,
                               std::size_t level) {
  SHW_TRY(auto links, objects.links(messages));
  for (const Hdf5Link& link : links)
    visit(path.empty() ? link.name : path + "/" + link.name, link.address, level + 1);
  return {};
}

void Hdf5Walker::visit(const std::string& path, std::uint64_t address, std::size_t level) {
  if (auto known = datasets.find(address); known != datasets.end()) {
    found.arrays.push_back({path, known->second});
    return;
  }
  if (groups.contains(address)) return;  // a link back, or a second name of a group
  auto messages = objects.messages(address);
  Status status;
  if (!messages) {
    status = tl::unexpected<Error>(messages.error());
  } else if (Hdf5Objects::is_dataset(*messages)) {
    auto array = objects.array(*messages);
    datasets.emplace(address, array);
    found.arrays.push_back({path, std::move(array)});
    return;
  } else if (level > kMostGroups || path.size() > kLongestPath) {
    status = fail(ErrorKind::kDamaged, "groups lie too deep in each other");
  } else {
    groups.insert(address);
    status = visit_group(path, *messages, level);
  }
  groups.insert(address);
  if (!status) found.lost_groups.emplace_back(path, std::move(status).error());
}

}  // namespace

Result<Hdf5Walk> walk_hdf5(std::shared_ptr<const ByteSource> source) {
  SHW_TRY(Hdf5Objects objects, Hdf5Objects::open(std::move(source)));
  const std::uint64_t root = objects.root();
  Hdf5Walker walker{std::move(objects)};
  SHW_TRY(auto messages, walker.objects.messages(root));
  walker.groups.insert(root);
  SHW_CHECK(walker.visit_group("", messages, 0));
  walker.found.end_of_file = walker.objects.end_of_file();
  return std::move(walker.found);
}

}  // namespace shw

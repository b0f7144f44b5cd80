#include "core/exec/part_assignment.h"

#include <algorithm>

namespace shw {
namespace {

// Finds files with several writers; the rank of the first part becomes the owner.
void find_shared_files(std::span<const FilePart> parts, PartAssignment& dealt) {
  for (std::size_t first = 0; first < parts.size();) {
    std::size_t last = first;
    bool is_shared = false;
    for (; last < parts.size() && parts[last].file == parts[first].file; ++last)
      is_shared = is_shared || dealt.writer[last] != dealt.writer[first];
    if (is_shared) dealt.shared.push_back({parts[first].file, dealt.writer[first], {first, last}});
    first = last;
  }
}

}  // namespace

std::uint64_t bytes_of(const FilePart& part) {
  if (part.kind != FilePart::Kind::kMade) return part.length;
  return part.length / part.block_count * (part.blocks.last - part.blocks.first);
}

PartAssignment assign_parts(const FileAssignment& files, std::span<const FilePart> parts) {
  PartAssignment dealt;
  dealt.own.resize(files.machine.size());
  std::size_t first_part = 0;
  for (std::size_t first = 0; first < files.order.size();) {
    const std::uint32_t machine = files.machine[files.order[first]];
    std::size_t last = first;
    while (last < files.order.size() && files.machine[files.order[last]] == machine) ++last;
    std::vector<std::uint64_t> costs;
    for (std::size_t i = first_part; i < parts.size(); ++i) {
      if (files.machine[files.writer[parts[i].file]] != machine) break;
      costs.push_back(bytes_of(parts[i]));
    }
    const std::vector<IndexRange> shares = partition_by_cost(costs, last - first);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const std::uint32_t worker = files.order[first + i];
      dealt.own[worker] = {first_part + shares[i].first, first_part + shares[i].last};
      dealt.writer.insert(dealt.writer.end(), shares[i].last - shares[i].first, worker);
    }
    first_part += costs.size();
    first = last;
  }
  find_shared_files(parts, dealt);
  return dealt;
}

}  // namespace shw

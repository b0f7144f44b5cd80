#include "core/exec/shared_files.h"

#include <algorithm>

#include "core/base/parallel.h"

namespace shw {

Status create_shared_files(const PartAssignment& dealt, std::uint32_t self, FileWriter& writer) {
  for (const SharedFile& shared : dealt.shared) {
    if (shared.owner == self) SHW_CHECK(writer.create(shared.file));
  }
  return {};
}

Result<Bytes> finish_own_parts_of_shared_files(const PartAssignment& dealt, std::uint32_t self,
                                               FileWriter& writer) {
  const IndexRange mine = dealt.own[self];
  Bytes words;
  for (const SharedFile& shared : dealt.shared) {
    const std::size_t first = std::max(mine.first, shared.parts.first);
    const std::size_t last = std::min(mine.last, shared.parts.last);
    if (shared.owner == self || first >= last) continue;
    SHW_TRY(Bytes of_file, writer.leave(shared.file, writer.parts().subspan(first, last - first)));
    words.insert(words.end(), of_file.begin(), of_file.end());
  }
  return words;
}

Status finish_shared_files(const PartAssignment& dealt, std::uint32_t self, FileWriter& writer) {
  std::vector<std::uint32_t> own;
  for (const SharedFile& shared : dealt.shared) {
    if (shared.owner == self) own.push_back(shared.file);
  }
  return parallel_for(own.size(), [&](std::size_t i) { return writer.finish(own[i]); });
}

}  // namespace shw

#include "core/exec/write_files.h"

#include "core/base/parallel.h"

namespace shw {

Result<std::vector<std::optional<Fingerprint>>> write_files(
    const FolderRun& run, const MemoryShares& shares, const Executors& executors,
    const std::vector<bool>& there, WritableDirectory& directory, const FileDone& done,
    PassingItems& came_along, Progress* progress) {
  FileWriter writer(run, shares, executors, directory, done, came_along, progress);
  SHW_TRY(std::vector<FilePart> whole, file_parts_of(run.laid_out));
  std::vector<bool> has_parts = there;
  for (const FilePart& part : whole) {
    has_parts[part.file] = true;
    if (!there[part.file]) writer.add(part, kPieceBytes);
  }
  writer.expect(writer.parts());
  SHW_CHECK(each_in_parallel(writer.parts().size(),
                             [&](std::size_t i) { return writer.write(writer.parts()[i]); }));
  for (std::uint32_t file = 0; file < has_parts.size(); ++file) {
    if (!has_parts[file]) SHW_CHECK(writer.finish(file));
  }
  return writer.take_elements();
}

}  // namespace shw

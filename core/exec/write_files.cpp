#include "core/exec/write_files.h"

#include "core/exec/file_scheduler.h"
#include "core/exec/spill_plan.h"

namespace shw {
namespace {

// Adds all parts and updates `there`: a file without parts consists of metadata only.
Result<std::vector<bool>> add_parts(const LaidOut& laid_out, const std::vector<bool>& there,
                                    FileWriter& writer) {
  std::vector<bool> has_parts = there;
  SHW_CHECK(for_each_file_part(laid_out, [&](const FilePart& part) {
    has_parts[part.file] = true;
    if (!there[part.file]) writer.add(part, kPieceBytes);
  }));
  return has_parts;
}

// Start index of each run of parts, and the end of the last. Small adjacent chunks are one run:
// threads taking them in turn would read and write the same pages many times.
std::vector<std::size_t> split_into_runs(const FileWriter& writer) {
  std::vector<std::size_t> begins;
  const auto parts = writer.parts();
  for (std::size_t at = 0; at < parts.size(); at += writer.length_of_run(parts.subspan(at)))
    begins.push_back(at);
  begins.push_back(parts.size());
  return begins;
}

}  // namespace

Result<WrittenElementSums> write_files(const FileWriterInputs& with, const OnFileDurable& done) {
  FileWriter writer(with, done);
  SHW_TRY(const std::vector<bool> has_parts, add_parts(with.run.laid_out, with.there, writer));
  writer.expect(writer.parts());
  const std::vector<std::size_t> runs = split_into_runs(writer);
  std::vector<std::uint32_t> files;
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) files.push_back(writer.parts()[runs[i]].file);
  SHW_CHECK(parallel_for_by_file(files, needs_decoded_items(with.run.program), [&](std::size_t i) {
    return writer.write_run(writer.parts().subspan(runs[i], runs[i + 1] - runs[i]));
  }));
  for (std::uint32_t file = 0; file < has_parts.size(); ++file) {
    if (!has_parts[file]) SHW_CHECK(writer.finish(file));
  }
  return writer.release_elements();
}

}  // namespace shw

#include "core/formats/file_check.h"

#include <algorithm>

#include "core/formats/table.h"

namespace shw {
namespace {

const FormatRow* row_of(const Checkpoint& checkpoint) {
  auto rows = formats();
  auto row = std::find_if(rows.begin(), rows.end(),
                          [&](const FormatRow& one) { return one.format == &checkpoint.format(); });
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace

bool has_file_checks(const Checkpoint& checkpoint) {
  const FormatRow* row = row_of(checkpoint);
  return row != nullptr && row->check_file != nullptr;
}

Result<DataCheck> check_file_data(const Checkpoint& checkpoint, FileId file, Progress* progress) {
  const FileRow& there = checkpoint.file(file);
  const bool is_file = there.safe && there.kind == EntryKind::kFile;
  if (!is_file || checkpoint.directory() == nullptr || !has_file_checks(checkpoint))
    return DataCheck{};
  SHW_TRY(auto source, checkpoint.directory()->open(there.path));
  return row_of(checkpoint)->check_file(source, progress);
}

}  // namespace shw

#include "core/formats/common/zip_check.h"

#include "core/formats/zip/zip.h"

namespace shw {

Result<DataCheck> check_zip_records(const std::shared_ptr<const ByteSource>& file,
                                    Progress* progress) {
  DataCheck check;
  SHW_TRY(ZipReader archive, ZipReader::open(file, 0, file->size()));
  if (archive.lacks_crcs()) return check;
  for (const ZipEntry& entry : archive.entries()) {
    check.expected = entry.crc;
    SHW_TRY(check.actual, archive.crc_of(entry, progress));
    if (check.actual == check.expected) continue;
    check.crc = DataCheck::Crc::kDiffers;
    check.record = entry.name;
    SHW_TRY(check.record_offset, archive.data_offset(entry));
    check.record_length = entry.stored_length;
    return check;
  }
  check.crc = DataCheck::Crc::kMatches;
  return check;
}

}  // namespace shw

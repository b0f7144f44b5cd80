#include "core/formats/common/zip_check.h"

#include <algorithm>

#include "core/formats/common/crc32.h"
#include "core/formats/common/zip.h"

namespace shw {

Result<DataCheck> check_zip_records(const std::shared_ptr<const ByteSource>& file,
                                    Progress* progress) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  DataCheck check;
  SHW_TRY(ZipReader archive, ZipReader::open(file, 0, file->size()));
  if (archive.crcs_absent()) return check;
  for (const ZipEntry& entry : archive.entries()) {
    SHW_TRY(auto record, archive.source_of(entry));
    check.expected = entry.crc;
    check.actual = 0;
    for (std::uint64_t at = 0; at < entry.length; at += kPiece) {
      if (is_cancelled(progress)) return cancelled_error();
      SHW_TRY(Bytes piece, read_bytes(*record, at, std::min(kPiece, entry.length - at)));
      check.actual = crc32_of(piece, check.actual);
      if (progress != nullptr) progress->add(piece.size());
    }
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

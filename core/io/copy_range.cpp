#include "core/io/copy_range.h"

namespace shw {

Status copy_range(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                  OutputFile& out, std::uint64_t at, Progress* progress,
                  const RangeParts* passing) {
  RangeParts parts;
  parts.bytes = [&](BytesView bytes) -> Status {
    if (passing != nullptr) SHW_CHECK(passing->bytes(bytes));
    SHW_CHECK(out.write_at(at, bytes));
    at += bytes.size();
    return {};
  };
  parts.hole = [&](std::uint64_t hole) -> Status {
    at += hole;
    return passing == nullptr ? Status{} : passing->hole(hole);
  };
  return read_through(source, offset, length, parts, progress);
}

}  // namespace shw

#include "core/io/copy_range.h"

#include "core/io/read_through.h"

namespace shw {

Status copy_range(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                  OutputFile& out, std::uint64_t at, Progress* progress) {
  RangeParts parts;
  parts.bytes = [&](BytesView bytes) -> Status {
    SHW_CHECK(out.write_at(at, bytes));
    at += bytes.size();
    return {};
  };
  parts.hole = [&](std::uint64_t hole) -> Status {
    at += hole;
    return {};
  };
  return read_through(source, offset, length, parts, progress);
}

}  // namespace shw

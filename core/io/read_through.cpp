#include "core/io/read_through.h"

#include <algorithm>
#include <cstring>

namespace shw {
namespace {

constexpr std::uint64_t kAtOnce = 1 << 20;

}  // namespace

Status read_through(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                    const RangeParts& parts, Progress* progress) {
  Bytes buffer;
  bool zeros = false;  // all that is in it
  for (const Extent& extent : source.extents(offset, length)) {
    if (is_cancelled(progress)) return cancelled_error();
    if (extent.hole && parts.hole != nullptr) {
      SHW_CHECK(parts.hole(extent.length));
      if (progress != nullptr) progress->add(extent.length);
      continue;
    }
    for (std::uint64_t done = 0; done < extent.length; done += buffer.size()) {
      if (is_cancelled(progress)) return cancelled_error();
      buffer.resize(std::min(kAtOnce, extent.length - done));
      if (!extent.hole) SHW_CHECK(source.read(extent.offset + done, buffer));
      if (extent.hole && !zeros) std::memset(buffer.data(), 0, buffer.size());
      zeros = extent.hole;
      SHW_CHECK(parts.bytes(buffer));
      if (progress != nullptr) progress->add(buffer.size());
    }
  }
  return {};
}

}  // namespace shw

#include "core/io/copy_range.h"

#include <algorithm>

namespace shw {

Status copy_range(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                  ByteSink& out, Progress* progress) {
  constexpr std::uint64_t kAtOnce = 1 << 20;
  Bytes buffer;
  for (const Extent& extent : source.extents(offset, length)) {
    if (extent.hole) {
      SHW_CHECK(out.skip(extent.length));
      if (progress != nullptr) progress->add(extent.length);
      continue;
    }
    for (std::uint64_t done = 0; done < extent.length; done += buffer.size()) {
      if (is_cancelled(progress)) return cancelled_error();
      buffer.resize(std::min(kAtOnce, extent.length - done));
      SHW_CHECK(source.read(extent.offset + done, buffer));
      SHW_CHECK(out.write(buffer));
      if (progress != nullptr) progress->add(buffer.size());
    }
  }
  return {};
}

}  // namespace shw

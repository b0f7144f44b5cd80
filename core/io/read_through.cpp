#include "core/io/read_through.h"

#include <algorithm>
#include <cstring>

#include "core/base/page_memory.h"

namespace shw {
namespace {

constexpr std::uint64_t kAtOnce = 1 << 18;

}  // namespace

Status read_through(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                    const ExtentVisitor& parts, Progress* progress) {
  const auto room = static_cast<std::size_t>(std::min(kAtOnce, length));
  const PageMemory memory = page_memory(room + kPageBytes);
  bool zeros = false;  // the part contains only zeros
  for (const Extent& extent : source.extents(offset, length)) {
    if (is_cancelled(progress)) return cancelled_error();
    if (extent.hole && parts.hole != nullptr) {
      SHW_CHECK(parts.hole(extent.length));
      if (progress != nullptr) progress->add(extent.length);
      continue;
    }
    // Keep the offset within a page equal to that in the file.
    std::span<std::byte> buffer{memory.get() + extent.offset % kPageBytes, room};
    for (std::uint64_t done = 0; done < extent.length; done += buffer.size()) {
      if (is_cancelled(progress)) return cancelled_error();
      buffer = buffer.first(std::min<std::uint64_t>(room, extent.length - done));
      if (!extent.hole) SHW_CHECK(source.read(extent.offset + done, buffer));
      if (extent.hole && !zeros) std::memset(memory.get(), 0, room + kPageBytes);
      zeros = extent.hole;
      SHW_CHECK(parts.bytes(buffer));
      if (progress != nullptr) progress->add(buffer.size());
    }
  }
  return {};
}

}  // namespace shw

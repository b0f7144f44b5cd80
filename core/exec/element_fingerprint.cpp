#include "core/exec/element_fingerprint.h"

#include <algorithm>
#include <array>

#include "core/exec/change_elements.h"

namespace shw {
namespace {

// Adds converted elements in small blocks, ordered by source address and by tensor
// index.
void add_changed(ElementSums& to, const std::byte* bytes, const TileJob& job) {
  constexpr std::int64_t kAtOnce = 256;
  std::array<std::byte, kAtOnce * 8> made;  // float64 is the widest
  std::array<std::uint8_t, kAtOnce> out_of_range;
  const Layout &source = job.layouts.source, &target = job.layouts.target;
  const int last = source.ndim - 1;
  const std::int64_t row = last < 0 ? 1 : source.shape[last], all = elements(source);
  const std::int64_t step = last < 0 ? 0 : source.stride[last];
  const std::int64_t apart = last < 0 ? 1 : target.stride[last];
  const std::size_t size = size_of(job.to);
  for (std::int64_t first = 0; first < all; first += row) {
    std::int64_t from = byte_of(source, first), index = byte_of(target, first);
    for (std::int64_t done = 0; done < row; done += kAtOnce) {
      std::int64_t count = std::min(kAtOnce, row - done);
      out_of_range.fill(0);
      convert_elements(job, bytes + from + done * step, step, made.data(),
                       static_cast<std::int64_t>(size), count, out_of_range.data());
      for (const std::uint8_t one : out_of_range) to.out_of_range += one;
      const std::int64_t runs = apart == 1 ? 1 : count, length = apart == 1 ? count : 1;
      for (std::int64_t i = 0; i < runs; ++i)
        add_run(to.fingerprint, made.data() + static_cast<std::size_t>(i) * size, size,
                static_cast<std::uint64_t>(index + (done + i) * apart),
                static_cast<std::uint64_t>(length));
    }
  }
}

}  // namespace

void add_elements(ElementSums& to, const std::byte* in, const TileJob& job) {
  if (job.op == ElementOp::kCast || job.op == ElementOp::kScale) return add_changed(to, in, job);
  if (job.op == ElementOp::kCopy)
    return add_strided(to.fingerprint, in, job.layouts, size_of(job.to));
  if (job.constant[0] == 0 && job.constant[1] == 0) return;  // zeros do not change a fingerprint
  LayoutPair everywhere = job.layouts;
  everywhere.source.offset = 0;
  std::fill_n(everywhere.source.stride, kLayoutDims, 0);
  add_strided(to.fingerprint, reinterpret_cast<const std::byte*>(job.constant), everywhere,
              size_of(job.to));
}

}  // namespace shw

#include "core/io/gather.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/checked.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// Gaps up to one page are read rather than skipped: the disk reads the page anyway, and a system
// call costs as much as copying the gap.
constexpr std::int64_t kMaxReadGap = 4 << 10;
constexpr std::int64_t kWindow = 1 << 20;

struct Dim {
  std::int64_t size, stride;
};

// The box in source order: smallest stride first, all strides positive.
struct Walk {
  std::int64_t first = 0;
  std::int64_t run = 0;  // contiguous bytes
  std::vector<Dim> dims;
};

Walk walk_over_elements(std::int64_t first, ExtentsView sizes, ExtentsView strides,
                        std::size_t element) {
  Walk walk{first, static_cast<std::int64_t>(element), {}};
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] <= 1 || strides[d] == 0) continue;
    if (strides[d] < 0) walk.first += (sizes[d] - 1) * strides[d];
    walk.dims.push_back({sizes[d], strides[d] < 0 ? -strides[d] : strides[d]});
  }
  std::stable_sort(walk.dims.begin(), walk.dims.end(),
                   [](const Dim& a, const Dim& b) { return a.stride < b.stride; });
  std::size_t joined = 0;
  while (joined < walk.dims.size() && walk.dims[joined].stride == walk.run)
    walk.run *= walk.dims[joined++].size;
  walk.dims.erase(walk.dims.begin(), walk.dims.begin() + static_cast<std::ptrdiff_t>(joined));
  return walk;
}

// The innermost dimensions whose runs are so close together that they are read in one call.
struct CoalescedDims {
  std::size_t ndim = 0;
  std::int64_t span = 0;  // from the first byte to the last
  std::int64_t runs = 1;
};
CoalescedDims contiguous_stretch_of(const Walk& walk) {
  CoalescedDims stretch{0, walk.run, 1};
  for (const Dim& dim : walk.dims) {
    if (dim.stride - stretch.span > kMaxReadGap) break;
    stretch.span += (dim.size - 1) * dim.stride;
    stretch.runs *= dim.size;
    ++stretch.ndim;
  }
  return stretch;
}

// True if both place the elements alike; the stride of a dim of one element is never used.
bool have_equal_element_places(ExtentsView sizes, ExtentsView a, ExtentsView b) {
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && a[d] != b[d]) return false;
  }
  return true;
}

class Window {
 public:
  explicit Window(const ByteSource& source) : source_(source) {}
  // Reads nothing at or beyond `end`.
  Status copy(std::int64_t at, std::int64_t end, std::span<std::byte> out) {
    auto length = static_cast<std::int64_t>(out.size());
    if (length >= kWindow || end - at == length)
      return source_.read(static_cast<std::uint64_t>(at), out);
    if (at < begin_ || at + length > begin_ + static_cast<std::int64_t>(held_.size())) {
      begin_ = at;
      held_.resize(static_cast<std::size_t>(std::min(kWindow, end - at)));
      SHW_CHECK(source_.read(static_cast<std::uint64_t>(begin_), held_));
    }
    std::memcpy(out.data(), held_.data() + (at - begin_), out.size());
    return {};
  }

 private:
  const ByteSource& source_;
  std::int64_t begin_ = 0;
  Bytes held_;
};

// Advances to the next run; false after the last.
bool step(const std::vector<Dim>& dims, std::vector<std::int64_t>& index, std::int64_t& at) {
  for (std::size_t d = 0; d < dims.size(); ++d) {
    at += dims[d].stride;
    if (++index[d] < dims[d].size) return true;
    at -= dims[d].stride * dims[d].size;
    index[d] = 0;
  }
  return false;
}

}  // namespace

std::optional<PackedBox> packed(ExtentsView sizes, ExtentsView strides, std::size_t element) {
  PackedBox box{Extents(sizes.size(), 0), 0, static_cast<std::int64_t>(element)};
  auto count = volume(sizes);
  if (!count) return std::nullopt;
  if (*count == 0) {
    box.length = 0;
    return box;
  }
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && strides[d] != 0) order.push_back(d);
  }
  auto width = [&](std::size_t d) { return strides[d] < 0 ? -strides[d] : strides[d]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return width(a) < width(b); });
  for (std::size_t d : order) {
    auto length = checked_mul(box.length, sizes[d]);
    if (!length) return std::nullopt;
    box.strides[d] = strides[d] < 0 ? -box.length : box.length;
    if (strides[d] < 0) box.offset += (sizes[d] - 1) * box.length;
    box.length = *length;
  }
  return box;
}

bool for_each_run(
    std::int64_t first, ExtentsView sizes, ExtentsView strides, std::size_t element,
    const std::function<bool(std::int64_t at, std::size_t done, std::int64_t length)>& visit) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return true;
  const Walk walk = walk_over_elements(first, sizes, strides, element);
  std::vector<std::int64_t> index(walk.dims.size(), 0);
  std::int64_t at = walk.first;
  std::size_t done = 0;
  do {
    if (!visit(at, done, walk.run)) return false;
    done += static_cast<std::size_t>(walk.run);
  } while (step(walk.dims, index, at));
  return true;
}

Status gather(const ByteSource& source, std::int64_t first, ExtentsView sizes, ExtentsView strides,
              std::size_t element, std::span<std::byte> out) {
  if (out.empty()) return {};
  Walk walk = walk_over_elements(first, sizes, strides, element);
  if (walk.first < 0)
    return fail(ErrorKind::kDamaged, "a box begins before the first byte", {source.name()});
  CoalescedDims stretch = contiguous_stretch_of(walk);
  Window window(source);
  std::vector<std::int64_t> index(walk.dims.size(), 0);
  std::int64_t at = walk.first, end = 0, run = 0;
  for (std::size_t done = 0; done < out.size();) {
    if (run % stretch.runs == 0) end = at + stretch.span;
    ++run;
    auto part = out.subspan(done, static_cast<std::size_t>(walk.run));
    SHW_CHECK(window.copy(at, end, part));
    done += part.size();
    step(walk.dims, index, at);
  }
  return {};
}

Status read_strided(const ByteSource& source, std::int64_t first, ExtentsView sizes,
                    ExtentsView strides, std::size_t element, Bytes& to) {
  auto box = packed(sizes, strides, element);
  auto elements = volume(sizes);
  auto length =
      elements ? checked_mul(*elements, static_cast<std::int64_t>(element)) : std::nullopt;
  if (!box || !length)
    return fail(ErrorKind::kUnsupported, "a box is too large to be read", {source.name()});
  to.resize(static_cast<std::size_t>(box->length));
  SHW_CHECK(gather(source, first, sizes, strides, element, to));
  Extents dense = byte_strides(sizes, element);
  if (*length == 0 || have_equal_element_places(sizes, box->strides, dense)) return {};
  Bytes out(static_cast<std::size_t>(*length));
  for_each_canonical_pair(
      pair_of(sizes, box->strides, box->offset, dense, 0),
      [&](const LayoutPair& part) { copy_elements(to.data(), out.data(), part, element); });
  to = std::move(out);
  return {};
}

Status read_box(const ByteSource& source, std::uint64_t offset, ExtentsView sizes, const Box& box,
                std::size_t element, Bytes& to) {
  auto first = narrow<std::int64_t>(offset);
  if (!first || !is_inside(box.offsets, box.sizes, sizes) || !volume(sizes))
    return fail(ErrorKind::kDamaged, "has no such box", {source.name(), offset});
  Extents strides = byte_strides(sizes, element);
  for (std::size_t d = 0; d < strides.size(); ++d) *first += box.offsets[d] * strides[d];
  return read_strided(source, *first, box.sizes, strides, element, to);
}

}  // namespace shw

#include "core/tensor/shape.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <limits>

#include "core/base/checked.h"

namespace shw {

bool same(ExtentsView a, ExtentsView b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

Extents copy_of(ExtentsView view) {
  return Extents(view.begin(), view.end());
}

std::optional<std::int64_t> volume(ExtentsView sizes) {
  return checked_volume(sizes);
}

bool is_empty(const Box& box) {
  return std::any_of(box.sizes.begin(), box.sizes.end(),
                     [](std::int64_t size) { return size <= 0; });
}

bool is_valid_box(const Box& box, std::size_t ndim) {
  if (box.offsets.size() != ndim || box.sizes.size() != ndim) return false;
  for (std::size_t d = 0; d < ndim; ++d) {
    if (box.sizes[d] < 0 || !checked_add(box.offsets[d], box.sizes[d])) return false;
  }
  return true;
}

bool is_inside(ExtentsView offsets, ExtentsView sizes, ExtentsView shape) {
  if (offsets.size() != shape.size() || sizes.size() != shape.size()) return false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (offsets[d] < 0 || sizes[d] < 0) return false;
    auto end = checked_add(offsets[d], sizes[d]);
    if (!end || *end > shape[d]) return false;
  }
  return true;
}

std::optional<Box> intersect(const Box& a, const Box& b) {
  assert(a.offsets.size() == b.offsets.size());
  Box out{Extents(a.offsets.size()), Extents(a.offsets.size())};
  for (std::size_t d = 0; d < a.offsets.size(); ++d) {
    std::int64_t begin = std::max(a.offsets[d], b.offsets[d]);
    std::int64_t end = std::min(a.offsets[d] + a.sizes[d], b.offsets[d] + b.sizes[d]);
    if (end <= begin) return std::nullopt;
    out.offsets[d] = begin;
    out.sizes[d] = end - begin;
  }
  return out;
}

std::vector<Box> subtract(const Box& a, const Box& b) {
  auto common = intersect(a, b);
  if (!common) return is_empty(a) ? std::vector<Box>{} : std::vector<Box>{a};
  std::vector<Box> parts;
  Box rest = a;
  for (std::size_t d = 0; d < a.offsets.size(); ++d) {
    std::int64_t before = common->offsets[d] - rest.offsets[d];
    if (before > 0) {
      Box part = rest;
      part.sizes[d] = before;
      parts.push_back(part);
    }
    std::int64_t end = common->offsets[d] + common->sizes[d];
    std::int64_t after = rest.offsets[d] + rest.sizes[d] - end;
    if (after > 0) {
      Box part = rest;
      part.offsets[d] = end;
      part.sizes[d] = after;
      parts.push_back(part);
    }
    rest.offsets[d] = common->offsets[d];
    rest.sizes[d] = common->sizes[d];
  }
  return parts;
}

Box whole(ExtentsView shape) {
  return Box{Extents(shape.size(), 0), copy_of(shape)};
}

Extents row_major_strides(ExtentsView sizes) {
  Extents strides(sizes.size(), 1);
  // An empty shape may have extents whose product overflows; its strides are never used.
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (std::size_t d = sizes.size(); d-- > 1;)
    strides[d - 1] = checked_mul(strides[d], std::max<std::int64_t>(sizes[d], 1)).value_or(kMost);
  return strides;
}

std::string to_text(ExtentsView extents) {
  std::string text = "[";
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (d != 0) text += ", ";
    text += std::to_string(extents[d]);
  }
  return text + "]";
}

std::string to_text(const Box& box) {
  std::string text = "[";
  for (std::size_t d = 0; d < box.offsets.size(); ++d) {
    if (d != 0) text += ", ";
    text += fmt::format("{}:{}", box.offsets[d], box.offsets[d] + box.sizes[d]);
  }
  return text + "]";
}

}  // namespace shw

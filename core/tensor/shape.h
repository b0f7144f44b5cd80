// Extents and boxes of a tensor. Units are elements; row-major ("C") order everywhere unless
// strides say otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/extents.h"

namespace shw {

using ExtentsView = std::span<const std::int64_t>;

// torch's limit is 64 dimensions (c10 kDimVectorStaticSize is 5, the hard limit is 64); more is
// damage.
inline constexpr std::size_t kMaxDims = 64;

// A box inside a tensor: [offsets, offsets + sizes). A 0-d box has no extents and one element.
struct Box {
  Extents offsets;
  Extents sizes;
  friend bool operator==(const Box&, const Box&) = default;
};

bool same(ExtentsView a, ExtentsView b);
Extents copy_of(ExtentsView view);
// Number of elements of a box or shape; nullopt if an extent is negative or on int64 overflow.
std::optional<std::int64_t> volume(ExtentsView sizes);
bool is_empty(const Box& box);
// True if the box has `ndim` dims, no negative size and ends below 2^63.
bool is_valid_box(const Box& box, std::size_t ndim);
// True if offsets and sizes have the rank of `shape`, are not negative and end inside it.
bool is_inside(ExtentsView offsets, ExtentsView sizes, ExtentsView shape);
std::optional<Box> intersect(const Box& a, const Box& b);
// `a` minus `b` as disjoint boxes, at most 2 * ndim of them.
std::vector<Box> subtract(const Box& a, const Box& b);
// The box that covers all of `shape`.
Box whole(ExtentsView shape);
// Row-major strides in elements.
Extents row_major_strides(ExtentsView sizes);
// Formats as "[288, 8192, 640]".
std::string to_text(ExtentsView extents);
// Formats as "[0:9, 4096:8192, 0:640]".
std::string to_text(const Box& box);

}  // namespace shw

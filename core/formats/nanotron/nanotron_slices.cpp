#include "core/formats/nanotron/nanotron_slices.h"

#include <algorithm>

#include "core/base/parse_text.h"
#include "core/base/words.h"

namespace shw {
namespace {

constexpr std::size_t kMaxPairs = 4096;

std::vector<std::string_view> parts_between(std::string_view text, char between) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(between);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos || parts.size() > kMaxPairs) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  const auto value = parse_number<std::int64_t>(trim(text));
  return value && *value >= 0 ? value : std::nullopt;
}

tl::unexpected<Error> invalid_slices_error(std::string what) {
  return fail(ErrorKind::kDamaged, std::move(what), {});
}

// Parses "0,4,None" for an axis of `size`.
bool parse_slice(std::string_view text, std::int64_t size, Box& box) {
  const auto parts = parts_between(text, ',');
  if (parts.size() != 3) return false;
  const auto start = parts[0] == "None" ? std::optional<std::int64_t>(0) : whole_number(parts[0]);
  const auto stop = parts[1] == "None" ? std::optional(size) : whole_number(parts[1]);
  const bool has_step = parts[2] != "None" && parts[2] != "1";
  if (!start || !stop || has_step || *start > *stop || *stop > size) return false;
  box.offsets.push_back(*start);
  box.sizes.push_back(*stop - *start);
  return true;
}

Result<Box> box_of_slices(std::string_view text, const Extents& sizes) {
  const auto slices = parts_between(text, '|');
  Box box;
  for (std::size_t d = 0; d < slices.size() && d < sizes.size(); ++d) {
    if (!parse_slice(slices[d], sizes[d], box)) break;
  }
  if (slices.size() != sizes.size() || box.sizes.size() != sizes.size())
    return invalid_slices_error("the slices " + std::string(text.substr(0, 200)) + " are not in " +
                                to_text(sizes));
  return box;
}

}  // namespace

std::optional<Extents> nanotron_shape(std::string_view text) {
  text = trim(text);
  if (!text.starts_with('(') || !text.ends_with(')')) return std::nullopt;
  text.remove_prefix(1);
  text.remove_suffix(1);
  Extents shape;
  for (std::string_view part : parts_between(text, ',')) {
    if (trim(part).empty()) continue;
    const auto size = whole_number(part);
    if (!size || shape.size() == kMaxDims) return std::nullopt;
    shape.push_back(*size);
  }
  return shape;
}

Result<std::vector<Box>> nanotron_boxes(std::string_view pairs, const Extents& sizes,
                                        const Extents& whole) {
  const auto texts = parts_between(pairs, ';');
  if (texts.size() > kMaxPairs) return invalid_slices_error("there are too many slices");
  std::vector<std::pair<Box, Box>> boxes;  // in the part, in the whole tensor
  for (std::string_view text : texts) {
    const auto sides = parts_between(text, '#');
    if (sides.size() != 2) return invalid_slices_error("the slices are not pairs");
    SHW_TRY(Box local, box_of_slices(sides[0], sizes));
    SHW_TRY(Box global, box_of_slices(sides[1], whole));
    if (local.sizes != global.sizes)
      return invalid_slices_error("the two slices of a pair differ in size");
    boxes.emplace_back(std::move(local), std::move(global));
  }
  std::sort(boxes.begin(), boxes.end(),
            [](const auto& a, const auto& b) { return a.first.offsets < b.first.offsets; });
  std::size_t axis = 0;
  while (axis + 1 < sizes.size() && boxes.front().first.sizes[axis] == sizes[axis]) ++axis;
  std::int64_t at = 0;
  std::vector<Box> out;
  for (auto& [local, global] : boxes) {
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      const bool fits = d == axis ? local.offsets[d] == at : local.sizes[d] == sizes[d];
      if (!fits) return invalid_slices_error("the slices are not contiguous along one axis");
    }
    if (!sizes.empty()) at += local.sizes[axis];
    out.push_back(std::move(global));
  }
  if (!sizes.empty() && at != sizes[axis])
    return invalid_slices_error("the slices do not cover the whole shard");
  return out;
}

}  // namespace shw

#include "core/facts/values/flat_shift.h"

#include <algorithm>
#include <functional>

namespace shw {
namespace {

constexpr std::size_t kAnchor = 16;  // 16 elements of 16 bits are unique in practice

bool is_constant(std::span<const std::uint16_t> run) {
  return std::all_of(run.begin(), run.end(), [&](std::uint16_t one) { return one == run.front(); });
}

bool is_shifted(std::span<const std::uint16_t> part, std::span<const std::uint16_t> whole,
                std::int64_t by) {
  const auto distance = static_cast<std::size_t>(by < 0 ? -by : by);
  if (distance >= part.size() || part.size() - distance < kSureOverlap) return false;
  const std::size_t count = part.size() - distance;
  const auto mine = part.subspan(by < 0 ? distance : 0, count);
  const auto theirs = whole.subspan(by < 0 ? 0 : distance, count);
  return !is_constant(mine) && std::equal(mine.begin(), mine.end(), theirs.begin());
}

}  // namespace

std::optional<std::int64_t> flat_shift(std::span<const std::uint16_t> part,
                                       std::span<const std::uint16_t> whole) {
  if (part.size() != whole.size() || part.size() < kSureOverlap) return std::nullopt;
  // If values moved forward, the other run contains the start; if backward, the end.
  for (std::size_t at : {std::size_t{0}, part.size() / 4, part.size() / 2, part.size() - kAnchor}) {
    if (at + kAnchor > part.size()) continue;
    const auto anchor = part.subspan(at, kAnchor);
    if (is_constant(anchor)) continue;
    const auto found =
        std::search(whole.begin(), whole.end(),
                    std::boyer_moore_horspool_searcher(anchor.begin(), anchor.end()));
    if (found == whole.end()) continue;
    const std::int64_t by = (found - whole.begin()) - static_cast<std::int64_t>(at);
    if (by != 0 && is_shifted(part, whole, by)) return by;
  }
  return std::nullopt;
}

}  // namespace shw

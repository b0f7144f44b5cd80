#include "core/verbs/place_mark.h"

#include <algorithm>
#include <charconv>

#include "core/tensor/shape.h"

namespace shw {
namespace {

constexpr std::string_view kCopy = " copy ";

std::string_view rule_of_finding_mark(std::string_view finding) {
  return finding.substr(0, finding.find(' '));
}

}  // namespace

std::string tile_mark(const Checkpoint& checkpoint, ChunkId chunk) {
  const Box box = box_of(checkpoint, chunk);
  std::size_t copies = 0;
  for (ChunkId each : checkpoint.chunks(checkpoint.tensor_of(chunk))) {
    if (box_of(checkpoint, each) == box) ++copies;
    if (each == chunk) break;
  }
  std::string mark = to_text(box);
  if (copies > 1) mark += std::string(kCopy) + std::to_string(copies);
  return mark;
}

std::optional<ChunkId> tile_of_mark(const Checkpoint& checkpoint, TensorId tensor,
                                    std::string_view mark) {
  const std::size_t end = mark.find(kCopy);
  const std::string_view box = mark.substr(0, end);
  std::uint32_t copy = 1;
  if (end != mark.npos) {
    const std::string_view number = mark.substr(end + kCopy.size());
    std::from_chars(number.data(), number.data() + number.size(), copy);
  }
  for (ChunkId each : checkpoint.chunks(tensor)) {
    if (to_text(box_of(checkpoint, each)) == box && --copy == 0) return each;
  }
  return std::nullopt;
}

std::string finding_mark(const Finding& finding) {
  return finding.subjects.empty() ? finding.rule : finding.rule + " " + finding.subjects.front();
}

std::optional<std::size_t> finding_of_mark(std::span<const Finding> findings,
                                           std::string_view mark) {
  if (mark.empty()) return std::nullopt;
  auto find = [&](auto is_it) -> std::optional<std::size_t> {
    auto found = std::find_if(findings.begin(), findings.end(), is_it);
    if (found == findings.end()) return std::nullopt;
    return static_cast<std::size_t>(found - findings.begin());
  };
  if (auto same = find([&](const Finding& each) { return finding_mark(each) == mark; }))
    return same;
  return find([&](const Finding& each) { return each.rule == rule_of_finding_mark(mark); });
}

}  // namespace shw

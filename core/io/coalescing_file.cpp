#include "core/io/coalescing_file.h"

#include <algorithm>

namespace shw {
namespace {

constexpr std::size_t kLong = 64 << 10;
constexpr std::size_t kMaxHeld = 4 << 20;

}  // namespace

Status CoalescingFile::write_at(std::uint64_t offset, BytesView bytes) {
  if (bytes.size() >= kLong) return file_.write_at(offset, bytes);
  if (held_.size() + bytes.size() > kMaxHeld) SHW_CHECK(flush());
  runs_.push_back({offset, held_.size(), bytes.size()});
  held_.insert(held_.end(), bytes.begin(), bytes.end());
  return {};
}

Status CoalescingFile::sync() {
  SHW_CHECK(flush());
  return file_.sync();
}

Status CoalescingFile::finish(std::uint64_t length) {
  SHW_CHECK(flush());
  return file_.finish(length);
}

Status CoalescingFile::flush() {
  std::sort(runs_.begin(), runs_.end(),
            [](const Run& a, const Run& b) { return a.offset < b.offset; });
  for (std::size_t first = 0, last = 0; first < runs_.size(); first = last) {
    joined_.clear();
    std::uint64_t end = runs_[first].offset;
    for (; last < runs_.size() && runs_[last].offset == end; ++last) {
      const auto begin = held_.begin() + static_cast<std::ptrdiff_t>(runs_[last].begin);
      joined_.insert(joined_.end(), begin, begin + static_cast<std::ptrdiff_t>(runs_[last].length));
      end += runs_[last].length;
    }
    SHW_CHECK(file_.write_at(runs_[first].offset, joined_));
  }
  runs_.clear();
  held_.clear();
  return {};
}

}  // namespace shw

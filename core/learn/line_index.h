// Maps a line to its tensor: an open-addressing table of 12 bytes per slot, half full.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace shw {

class LineIndex {
 public:
  explicit LineIndex(std::size_t lines);
  // A line that is added for two tensors belongs to neither.
  void add(std::uint64_t line, std::uint32_t tensor);
  // nullopt if no tensor or several tensors have the line.
  std::optional<std::uint32_t> tensor_of(std::uint64_t line) const;

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX, kSeveral = UINT32_MAX - 1;
  std::size_t place_of(std::uint64_t line) const;

  std::size_t mask_ = 0;
  std::vector<std::uint64_t> lines_;
  std::vector<std::uint32_t> tensors_;
};

}  // namespace shw

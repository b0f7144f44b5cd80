// In which tensor a line stands: an open table of 12 bytes per place, half of them free.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace shw {

class LineIndex {
 public:
  explicit LineIndex(std::size_t lines);
  // A line of two tensors belongs to neither.
  void add(std::uint64_t line, std::uint32_t tensor);
  // Nothing where no tensor has it, or several have.
  std::optional<std::uint32_t> tensor_of(std::uint64_t line) const;

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX, kSeveral = UINT32_MAX - 1;
  std::size_t place_of(std::uint64_t line) const;

  std::size_t mask_ = 0;
  std::vector<std::uint64_t> lines_;
  std::vector<std::uint32_t> tensors_;
};

}  // namespace shw

// Typed row indices into the columns of a Checkpoint; ids of different columns do not convert.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shw {

enum class TensorId : std::uint32_t {};
enum class ChunkId : std::uint32_t { kNone = 0xFFFFFFFFu };
enum class StorageId : std::uint32_t { kNone = 0xFFFFFFFFu };
enum class FileId : std::uint32_t { kNone = 0xFFFFFFFFu };

template <class Id>
requires requires(Id id) {
  static_cast<std::uint32_t>(id);
}
constexpr std::size_t index_of(Id id) {
  return static_cast<std::size_t>(id);
}

// The ids [first, last) of a column.
template <class Id>
struct IdRange {
  static constexpr bool kIsView = true;
  std::uint32_t first = 0, last = 0;
  std::uint32_t size() const { return last - first; }
  bool empty() const { return first == last; }
  Id operator[](std::uint32_t i) const { return Id{first + i}; }
  struct Iterator {
    std::uint32_t at;
    Id operator*() const { return Id{at}; }
    Iterator& operator++() {
      ++at;
      return *this;
    }
    bool operator==(const Iterator&) const = default;
  };
  Iterator begin() const { return {first}; }
  Iterator end() const { return {last}; }
};

}  // namespace shw

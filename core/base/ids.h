// Ids index into the columns of a Checkpoint; they are not pointers and cannot be mixed up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shw {

enum class TensorId : std::uint32_t {};
enum class ChunkId : std::uint32_t {};
enum class StorageId : std::uint32_t { kNone = 0xFFFFFFFFu };
enum class FileId : std::uint32_t { kNone = 0xFFFFFFFFu };

template <class Id>
requires requires(Id id) {
  static_cast<std::uint32_t>(id);
}
constexpr std::size_t index_of(Id id) {
  return static_cast<std::size_t>(id);
}

}  // namespace shw

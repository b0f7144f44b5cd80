#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/base/ids.h"

namespace shw {

struct ShownBytes;

struct BytesState {
  bool open = false;                    // requested; true before the first bytes arrive
  std::string jump;                     // the offset or pattern being typed
  bool structure_open = false;          // the parts of the record next to the bytes
  std::weak_ptr<const ShownBytes> of;   // the bytes to which `chosen` belongs
  std::optional<std::uint64_t> chosen;  // the byte whose values are shown
  std::size_t rows = 32;                // rows that fit in the last frame
  std::optional<TensorId> followed;     // the selection that was last followed
  std::optional<ChunkId> followed_tile;
};

}  // namespace shw

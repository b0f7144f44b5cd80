#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/base/ids.h"

namespace shw {

struct BytesLook;

struct BytesState {
  bool open = false;                    // asked for: stands before the first bytes are there
  std::string jump;                     // the offset that is being typed
  std::weak_ptr<const BytesLook> of;    // whose byte is chosen
  std::optional<std::uint64_t> chosen;  // the byte that the values beside are of
  std::size_t rows = 32;                // that had room in the last frame
  std::optional<TensorId> followed;     // the selection that was last gone to
  std::optional<ChunkId> followed_tile;
};

}  // namespace shw

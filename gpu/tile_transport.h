// What the tiles of a team travel by: what joins it already, or NCCL, where every worker has a card
// of its own and all have one library. Chosen before anything is written, alike by all workers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/exec/device.h"
#include "gpu/nccl_options.h"
#include "gpu/nccl_stage.h"

namespace shw {

enum class TileTransport : std::uint8_t { kAuto, kMpi, kNccl };
// "auto", "mpi", "nccl".
std::optional<TileTransport> parse_tile_transport(std::string_view text);

struct TileTransportWish {
  TileTransport kind = TileTransport::kAuto;
  DeviceWish device = {};  // whose card it is: the one that would make this worker's elements
  NcclOptions options = {};
  // Where tests have no card and no library of their own to offer.
  std::function<Result<NcclLibrary>()> library = [] { return load_nccl(); };
  std::function<Result<std::unique_ptr<NcclStage>>(int card)> stage = cuda_stage;
};

struct ChosenTileTransport {
  std::unique_ptr<Transport> nccl;  // null: tiles go as all else does
  std::string why;
};

// All workers ask for it at once. `control` joins them and carries nothing else as long as what is
// chosen lives. An error, the same for all, where NCCL was asked for and cannot be had.
Result<ChosenTileTransport> choose_tile_transport(const TileTransportWish& wish,
                                                  Transport& control);

}  // namespace shw

// Selects the transport for chunk data: the existing one, or NCCL if every rank has its own GPU and
// the same library. Selected before anything is written, equally on all ranks.
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
// Parses "auto", "mpi" or "nccl".
std::optional<TileTransport> parse_tile_transport(std::string_view text);

struct TransportOptions {
  TileTransport kind = TileTransport::kAuto;
  DeviceOptions device = {};  // the device that would compute this rank's elements
  NcclOptions options = {};
  // Replaced in tests without a GPU or library.
  std::function<Result<NcclLibrary>()> library = [] { return load_nccl(); };
  std::function<Result<std::unique_ptr<NcclStagingBuffer>>(int card)> stage = cuda_staging_buffer;
};

struct ChosenTileTransport {
  std::unique_ptr<Transport> nccl;  // null: chunk data uses the existing transport
  std::string why;
};

// Collective. `control` connects the ranks and must not be used otherwise while the result lives.
// An error, equal on all ranks, if NCCL was requested and is not available.
Result<ChosenTileTransport> choose_tile_transport(const TransportOptions& options,
                                                  Transport& control);

}  // namespace shw

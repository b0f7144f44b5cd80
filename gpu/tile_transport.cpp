#include "gpu/tile_transport.h"

#include <fmt/core.h>

#include <map>

#include "core/base/encoder.h"
#include "core/cluster/collectives.h"
#include "gpu/nccl_transport.h"

namespace shw {
namespace {

// A rank's preconditions for NCCL.
struct NcclCapability {
  std::string lacks;  // why the rank cannot use NCCL; empty: it can
  std::string card;   // Gpu::id
};

// The library and the GPU of this rank.
struct OpenedNccl {
  NcclLibrary nccl;
  int card = 0;
};

Result<OpenedNccl> open_nccl_on_rank(const TransportOptions& options, std::string& id) {
  OpenedNccl ready;
  SHW_TRY(ready.nccl, options.library());
  const Gpus gpus =
      options.device.gpus == nullptr ? Gpus{{}, "none was looked for", {}} : options.device.gpus();
  SHW_TRY(const std::vector<int> taken, choose_gpus(options.device, gpus));
  if (taken.size() != 1)
    return fail(ErrorKind::kIo,
                "the launcher does not say which of the cards of its machine a "
                "process is to take");
  ready.card = taken.front();
  for (const Gpu& gpu : gpus.found) {
    if (gpu.index == ready.card) id = gpu.id;
  }
  return ready;
}

Result<std::vector<NcclCapability>> gather_capabilities(Transport& control,
                                                        const NcclCapability& own,
                                                        const WaitStep& step) {
  // Encoded as two lines; neither text contains a line end.
  const std::string text = own.lacks + "\n" + own.card;
  const auto bytes = std::as_bytes(std::span(text));
  SHW_TRY(auto told, all_gather(control, Bytes(bytes.begin(), bytes.end()), 1 << 20, step));
  std::vector<NcclCapability> all;
  for (const Bytes& one : told) {
    const std::string_view line(reinterpret_cast<const char*>(one.data()), one.size());
    const std::size_t end = std::min(line.rfind('\n'), line.size());
    all.push_back({std::string(line.substr(0, end)),
                   std::string(line.substr(std::min(end + 1, line.size())))});
  }
  return all;
}

// Why these ranks cannot use NCCL; nullopt if they can.
std::optional<std::string> reason_against_nccl(const std::vector<NcclCapability>& all) {
  std::map<std::string, std::size_t> owners;
  for (std::size_t worker = 0; worker < all.size(); ++worker) {
    if (!all[worker].lacks.empty())
      return fmt::format("worker {} cannot: {}", worker, all[worker].lacks);
    const auto [owner, is_new] = owners.try_emplace(all[worker].card, worker);
    if (!is_new)
      return fmt::format("workers {} and {} would share a card, and NCCL wants one for each",
                         owner->second, worker);
  }
  return std::nullopt;
}

}  // namespace

std::optional<TileTransport> parse_tile_transport(std::string_view text) {
  if (text == "auto") return TileTransport::kAuto;
  if (text == "mpi") return TileTransport::kMpi;
  if (text == "nccl") return TileTransport::kNccl;
  return std::nullopt;
}

Result<ChosenTileTransport> choose_tile_transport(const TransportOptions& options,
                                                  Transport& control) {
  if (options.kind == TileTransport::kMpi) return ChosenTileTransport{nullptr, "it was asked for"};
  // Slabs are read into host memory and written from it. Without a measurement the detour over two
  // GPUs is not assumed to be faster.
  if (options.kind == TileTransport::kAuto)
    return ChosenTileTransport{
        nullptr,
        "tiles are read into the memory of the host and written from it: whether they are there "
        "sooner by way of cards and NCCL was never measured"};
  NcclCapability own;
  auto ready = open_nccl_on_rank(options, own.card);
  if (!ready) own.lacks = ready.error().message;
  const WaitStep step{"who has NCCL", options.options.opening.within};
  SHW_TRY(const std::vector<NcclCapability> all, gather_capabilities(control, own, step));
  if (auto why = reason_against_nccl(all))
    return fail(ErrorKind::kIo, "tiles cannot travel by NCCL: " + *why, {},
                "repeat this with --transport mpi");
  auto stage = options.stage(ready->card);
  if (!stage) {
    control.abort(stage.error());
    return tl::unexpected<Error>(std::move(stage).error());
  }
  SHW_TRY(auto nccl, open_nccl(ready->nccl, std::move(*stage), control, options.options));
  return ChosenTileTransport{std::move(nccl), "it was asked for"};
}

}  // namespace shw

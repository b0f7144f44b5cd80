#include "core/cluster/transport_team.h"

#include <fmt/core.h>

#include "core/cluster/collectives.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{4}
                                           << 30;  // limit of all messages of one step

}  // namespace

Result<std::vector<Bytes>> TransportTeam::allgather(Bytes own, const std::string& step) {
  return all_gather(transport_, std::move(own), kMaxMessageBytes,
                    {fmt::format("{}, round {}", step, ++rounds_), patience_});
}

Result<std::vector<Bytes>> TransportTeam::exchange(std::vector<Bytes> to_each,
                                                   const std::string& step) {
  for (std::size_t member = 0; member < to_each.size(); ++member)
    traffic_.bytes += member == rank() ? 0 : to_each[member].size();
  return shw::exchange(tiles_ == nullptr ? transport_ : *tiles_, std::move(to_each),
                       kMaxMessageBytes, {fmt::format("{}, round {}", step, ++rounds_), patience_});
}

void TransportTeam::set_tile_transport(Transport* tiles, std::string by, std::string why) {
  tiles_ = tiles;
  traffic_.by = std::move(by);
  traffic_.why = std::move(why);
}

// Aborts both transports, because a rank may wait on either.
void TransportTeam::stop(const Error& why) {
  if (tiles_ != nullptr) tiles_->abort(why);
  transport_.abort(why);
}

}  // namespace shw

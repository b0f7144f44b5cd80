#include "core/cluster/transport_team.h"

#include <fmt/core.h>

#include "core/cluster/collectives.h"

namespace shw {
namespace {

constexpr std::uint64_t kMostWords = std::uint64_t{4} << 30;  // of all, in one step

}  // namespace

Result<std::vector<Bytes>> TransportTeam::tell_all(Bytes own, const std::string& step) {
  return gather_all(transport_, std::move(own), kMostWords,
                    {fmt::format("{}, round {}", step, ++told_), patience_});
}

Result<std::vector<Bytes>> TransportTeam::exchange(std::vector<Bytes> to_each,
                                                   const std::string& step) {
  return shw::exchange(transport_, std::move(to_each), kMostWords,
                       {fmt::format("{}, round {}", step, ++told_), patience_});
}

}  // namespace shw

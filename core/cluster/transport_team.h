// The Team interface on top of a Transport.
#pragma once

#include "core/base/team.h"
#include "core/cluster/transport.h"

namespace shw {

class TransportTeam final : public Team {
 public:
  // `patience`: how long a rank may be silent in a step. `machine`: the name returned by machine();
  // threads share one machine.
  TransportTeam(Transport& transport, std::chrono::milliseconds patience, std::string machine = {})
      : transport_(transport), patience_(patience), machine_(std::move(machine)) {}

  std::size_t rank() const override { return static_cast<std::size_t>(transport_.rank()); }
  std::size_t size() const override { return static_cast<std::size_t>(transport_.size()); }
  std::string machine() const override { return machine_; }
  Result<std::vector<Bytes>> allgather(Bytes own, const std::string& step) override;
  Result<std::vector<Bytes>> exchange(std::vector<Bytes> to_each, const std::string& step) override;
  void stop(const Error& why) override;
  TeamTraffic traffic() const override { return traffic_; }

  // Sends the messages of exchange() over `tiles`, a transport of the same ranks; null: over the
  // main transport. `by` and `why` are returned by traffic().
  void set_tile_transport(Transport* tiles, std::string by, std::string why);

 private:
  Transport& transport_;
  std::chrono::milliseconds patience_;
  std::string machine_;
  std::size_t rounds_ = 0;
  Transport* tiles_ = nullptr;
  TeamTraffic traffic_;
};

}  // namespace shw

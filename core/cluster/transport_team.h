// The workers of a transport as a team.
#pragma once

#include "core/base/team.h"
#include "core/cluster/transport.h"

namespace shw {

class TransportTeam final : public Team {
 public:
  // `patience`: how long one may be silent in a step. `machine`: Team::machine(); threads are on
  // one.
  TransportTeam(Transport& transport, std::chrono::milliseconds patience, std::string machine = {})
      : transport_(transport), patience_(patience), machine_(std::move(machine)) {}

  std::size_t rank() const override { return static_cast<std::size_t>(transport_.rank()); }
  std::size_t size() const override { return static_cast<std::size_t>(transport_.size()); }
  std::string machine() const override { return machine_; }
  Result<std::vector<Bytes>> tell_all(Bytes own, const std::string& step) override;
  Result<std::vector<Bytes>> exchange(std::vector<Bytes> to_each, const std::string& step) override;
  void stop(const Error& why) override;
  TeamTraffic traffic() const override { return traffic_; }

  // From here on what exchange() moves goes by `tiles`, which joins the same workers; null: as all
  // else does. `by` and `why` are what traffic() says of it.
  void send_tiles_by(Transport* tiles, std::string by, std::string why);

 private:
  Transport& transport_;
  std::chrono::milliseconds patience_;
  std::string machine_;
  std::size_t told_ = 0;
  Transport* tiles_ = nullptr;
  TeamTraffic traffic_;
};

}  // namespace shw

// Where somebody has been: checkpoints and tensors, so that one step back leads to the source of
// what was repaired. A pure value; the session notes every change in it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/session/command.h"

namespace shw {

struct Visit {
  std::string path, spec, against, mesh, fqn;  // fqn: empty while no tensor is selected
  bool same_checkpoint(const Visit& other) const {
    return path == other.path && spec == other.spec && against == other.against;
  }
  friend bool operator==(const Visit&, const Visit&) = default;
};

class History {
 public:
  // What is on the screen now. A step back or forward that has arrived is no new visit.
  void note(const Visit& now);
  bool can_go(int step) const;
  // Where a step leads, and that it is under way; nothing where there is none.
  std::optional<Visit> go(int step);
  // It did not arrive.
  void stay() { going_to_.reset(); }
  const Visit* now() const { return visits_.empty() ? nullptr : &visits_[at_]; }

 private:
  static constexpr std::size_t kMost = 200;
  std::optional<std::size_t> place(int step) const;

  std::vector<Visit> visits_;
  std::size_t at_ = 0;
  std::optional<std::size_t> going_to_;
};

// Nothing while nothing is open.
std::optional<Visit> visit_of(const Snapshot& snapshot);

}  // namespace shw

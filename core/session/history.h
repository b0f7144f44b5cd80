// The history of opened checkpoints and selected tensors, so that one step back leads from a result
// to its source. A plain value, updated by the session.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/session/command.h"

namespace shw {

struct Visit {
  std::string path, spec, against, mesh, fqn;  // fqn: empty if no tensor is selected
  bool same_checkpoint(const Visit& other) const {
    return path == other.path && spec == other.spec && against == other.against;
  }
  friend bool operator==(const Visit&, const Visit&) = default;
};

class History {
 public:
  // Records the current view, unless it is the arrival of a go().
  void note(const Visit& now);
  bool can_go(int step) const;
  // Starts a move and returns its target; nullopt if there is none.
  std::optional<Visit> go(int step);
  // The move failed.
  void stay() { going_to_.reset(); }
  const Visit* now() const { return visits_.empty() ? nullptr : &visits_[at_]; }

 private:
  static constexpr std::size_t kMost = 200;
  std::optional<std::size_t> place(int step) const;

  std::vector<Visit> visits_;
  std::size_t at_ = 0;
  std::optional<std::size_t> going_to_;
};

// nullopt if nothing is open.
std::optional<Visit> visit_of(const Snapshot& snapshot);

}  // namespace shw

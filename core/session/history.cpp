#include "core/session/history.h"

namespace shw {

void History::note(const Visit& now) {
  if (going_to_) {
    // The tensor may be missing or replaced by a finding's: the move has arrived
    // anyway.
    if (visits_[*going_to_].same_checkpoint(now)) {
      at_ = *going_to_;
      if (visits_[at_].fqn.empty() || visits_[at_].fqn == now.fqn) going_to_.reset();
    }
    if (going_to_ || visits_[at_].same_checkpoint(now)) return;
  }
  if (visits_.empty()) {
    visits_.push_back(now);
    return;
  }
  if (visits_[at_] == now) return;
  // A checkpoint without a selected tensor is not a separate entry.
  bool same = visits_[at_].same_checkpoint(now);
  if (same && (visits_[at_].fqn.empty() || visits_[at_].fqn == now.fqn || now.fqn.empty())) {
    if (!now.fqn.empty()) visits_[at_] = now;
    return;
  }
  visits_.resize(at_ + 1);
  visits_.push_back(now);
  if (visits_.size() > kMost) visits_.erase(visits_.begin());
  at_ = visits_.size() - 1;
}

std::optional<std::size_t> History::place(int step) const {
  std::size_t from = going_to_.value_or(at_);
  if (step < 0) return from > 0 ? std::optional(from - 1) : std::nullopt;
  return from + 1 < visits_.size() ? std::optional(from + 1) : std::nullopt;
}

bool History::can_go(int step) const {
  return place(step).has_value();
}

std::optional<Visit> History::go(int step) {
  auto to = place(step);
  if (!to) return std::nullopt;
  going_to_ = to;
  return visits_[*to];
}

std::optional<Visit> visit_of(const Snapshot& snapshot) {
  if (snapshot.checkpoint == nullptr) return std::nullopt;
  Visit visit{snapshot.options.checkpoint, snapshot.options.spec, snapshot.options.against,
              snapshot.options.mesh, ""};
  if (snapshot.tensor) visit.fqn = snapshot.checkpoint->fqn(*snapshot.tensor);
  return visit;
}

}  // namespace shw

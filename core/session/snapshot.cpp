#include "core/session/snapshot.h"

namespace shw {

Snapshot blank(std::uint64_t revision) {
  Snapshot snapshot;
  snapshot.revision = revision;
  return snapshot;
}

verbs::Opened opened_in(const Snapshot& snapshot) {
  return {snapshot.checkpoint, snapshot.spec, snapshot.reference, snapshot.mesh};
}

}  // namespace shw

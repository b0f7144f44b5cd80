#include "core/session/snapshot.h"

namespace shw {

Snapshot blank(const Snapshot& before) {
  Snapshot snapshot;
  snapshot.revision = before.revision;
  snapshot.recent = before.recent;
  snapshot.explained = before.explained;
  snapshot.written = before.written;
  return snapshot;
}

verbs::Opened opened_in(const Snapshot& snapshot) {
  return {snapshot.checkpoint, snapshot.spec, snapshot.reference, snapshot.mesh};
}

}  // namespace shw

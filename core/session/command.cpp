#include "core/session/command.h"

namespace shw {

OpenCommand open_again(const Snapshot& snapshot, const std::string& path) {
  return {path, snapshot.said.spec, snapshot.said.against, snapshot.said.mesh};
}

}  // namespace shw

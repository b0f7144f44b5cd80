#include "core/session/command.h"

namespace shw {

OpenCommand open_again(const Snapshot& snapshot, const std::string& path) {
  return {path, snapshot.options.spec, snapshot.options.against, snapshot.options.mesh};
}

}  // namespace shw

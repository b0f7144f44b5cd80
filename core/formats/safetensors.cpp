#include "core/formats/safetensors.h"

namespace shw {

Result<std::shared_ptr<const Checkpoint>> open_safetensors(
    std::shared_ptr<const Directory> directory, Progress*) {
  return fail(ErrorKind::kUnsupported, "holds safetensors", {directory->name()});
}

}  // namespace shw

#include "core/repair/run/local_place.h"

#include "core/io/remote/remote_path.h"

namespace shw {

Status check_is_local(const std::string& out) {
  if (!is_remote(out)) return {};
  return fail(ErrorKind::kUsage, "is on another machine, and the result is written on this one",
              {out}, "name a folder of this machine with --out");
}

}  // namespace shw

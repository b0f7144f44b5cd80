// Implementation of mpi.h for builds without MPI.
#include "core/cluster/mpi.h"

namespace shw {

bool has_mpi() {
  return false;
}

Result<std::unique_ptr<MpiSession>> begin_mpi(const Launch&) {
  return fail(ErrorKind::kUnsupported, "this program was built without MPI", {},
              "build it where libopenmpi-dev is installed");
}

}  // namespace shw

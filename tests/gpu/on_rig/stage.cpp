// The program as it is (app/cli), on cards that the rig makes up: what NCCL's double moves lies in
// memory of the host, whichever card it is.
#include "gpu/nccl/on_double.h"

namespace shw {

Result<std::unique_ptr<NcclStage>> cuda_stage(int) {
  return test::host_stage();
}

}  // namespace shw

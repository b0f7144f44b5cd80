// Implementations for builds without CUDA.
#include "gpu/cuda_executor.h"
#include "gpu/nccl_stage.h"

namespace shw {

Gpus cuda_gpus() {
  return {{}, "this program was built without CUDA", cuda_executor};
}

Result<std::unique_ptr<Executor>> cuda_executor(int) {
  return fail(ErrorKind::kUnsupported, cuda_gpus().none, {},
              "build it where nvcc is found, or take --device cpu");
}

Result<std::unique_ptr<NcclStagingBuffer>> cuda_staging_buffer(int) {
  return fail(ErrorKind::kUnsupported, cuda_gpus().none);
}

}  // namespace shw

// What stands in for the CUDA executor where nobody could build it.
#include "gpu/cuda_executor.h"

namespace shw {

CudaDevices cuda_devices() {
  return {{}, "this program was built without CUDA"};
}

Result<std::unique_ptr<Executor>> cuda_executor(int) {
  return fail(ErrorKind::kUnsupported, cuda_devices().none, {},
              "build it where nvcc is found, or take --device cpu");
}

}  // namespace shw

// Where bytes lie while NCCL has them, and the stream on which it moves them: memory of a GPU, or
// of the host in front of the double of tests/gpu/nccl.
#pragma once

#include <memory>
#include <span>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "gpu/nccl_library.h"

namespace shw {

class NcclStage {
 public:
  virtual ~NcclStage() = default;
  // All is done on this device by this thread: before NCCL is asked for a communicator.
  virtual Status take() = 0;
  virtual NcclStream stream() const = 0;
  // At least so many bytes, at a multiple of 256; what was there before is gone. Only while idle.
  virtual Result<std::byte*> reserve(std::size_t bytes) = 0;
  // On the stream: `from` stays as it is until that is idle.
  virtual Status fill(std::byte* staged, BytesView from) = 0;
  // At once, and only while idle.
  virtual Status fetch(std::span<std::byte> to, const std::byte* staged) = 0;
  // Whether the stream has done all that it was given; never waits for it.
  virtual Result<bool> is_idle() = 0;
};

// On a GPU. kUnsupported in words where there is none, or in a build without CUDA.
Result<std::unique_ptr<NcclStage>> cuda_stage(int device);

}  // namespace shw

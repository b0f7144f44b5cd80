// The staging memory of NCCL transfers and their stream: on a GPU, or in host memory for the NCCL
// test double.
#pragma once

#include <memory>
#include <span>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "gpu/nccl_library.h"

namespace shw {

class NcclStagingBuffer {
 public:
  virtual ~NcclStagingBuffer() = default;
  // Binds this thread to the device; call before creating a communicator.
  virtual Status take() = 0;
  virtual NcclStream stream() const = 0;
  // Reserves at least `bytes` bytes, 256-byte aligned, with undefined contents. Call only while
  // idle.
  virtual Result<std::byte*> reserve(std::size_t bytes) = 0;
  // Copies on the stream: `from` must stay unchanged until the stream is idle.
  virtual Status fill(std::byte* staged, BytesView from) = 0;
  // Copies synchronously. Call only while idle.
  virtual Status fetch(std::span<std::byte> to, const std::byte* staged) = 0;
  // True if the stream has completed all its work; does not block.
  virtual Result<bool> is_idle() = 0;
};

// A stage on a GPU. kUnsupported without a GPU or in a build without CUDA.
Result<std::unique_ptr<NcclStagingBuffer>> cuda_staging_buffer(int device);

}  // namespace shw

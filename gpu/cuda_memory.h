// Device memory, pinned host memory, and conversion of CUDA errors to
// Status.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "core/base/result.h"

namespace shw {

// `what` names the attempted operation.
Status cuda_status(cudaError_t error, const char* what);

enum class CudaMemoryKind : unsigned char { kDevice, kPinned };

// A buffer that grows and never shrinks; growing discards the contents. 256-byte aligned.
template <CudaMemoryKind kind>
class CudaMemory {
 public:
  CudaMemory() = default;
  ~CudaMemory() { free(); }
  CudaMemory(CudaMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  CudaMemory& operator=(CudaMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  Status reserve(std::size_t bytes) {
    if (bytes <= size_) return {};
    free();
    if constexpr (kind == CudaMemoryKind::kDevice)
      SHW_CHECK(cuda_status(cudaMalloc(&data_, bytes), "taking memory of the GPU"));
    else
      SHW_CHECK(cuda_status(cudaMallocHost(&data_, bytes), "pinning memory"));
    size_ = bytes;
    return {};
  }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t size() const { return size_; }

 private:
  void free() {
    if (data_ == nullptr) return;
    if constexpr (kind == CudaMemoryKind::kDevice)
      cudaFree(data_);
    else
      cudaFreeHost(data_);
    data_ = nullptr;
    size_ = 0;
  }

  void* data_ = nullptr;
  std::size_t size_ = 0;
};
using DeviceMemory = CudaMemory<CudaMemoryKind::kDevice>;
using PinnedMemory = CudaMemory<CudaMemoryKind::kPinned>;

}  // namespace shw

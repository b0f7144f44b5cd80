#include "gpu/cuda_executor.h"
#include "gpu/cuda_memory.h"
#include "gpu/nccl_stage.h"

namespace shw {
namespace {

class CudaStagingBuffer final : public NcclStagingBuffer {
 public:
  explicit CudaStagingBuffer(int device) : device_(device) {}
  ~CudaStagingBuffer() override {
    cudaSetDevice(device_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  Status open() {
    SHW_CHECK(take());
    return cuda_status(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                       "opening a stream for NCCL");
  }

  Status take() override { return cuda_status(cudaSetDevice(device_), "taking the GPU"); }
  NcclStream stream() const override { return stream_; }

  Result<std::byte*> reserve(std::size_t bytes) override {
    SHW_CHECK(memory_.reserve(bytes));
    return memory_.data();
  }

  Status fill(std::byte* staged, BytesView from) override {
    return cuda_status(
        cudaMemcpyAsync(staged, from.data(), from.size(), cudaMemcpyHostToDevice, stream_),
        "copying to the GPU for NCCL");
  }

  Status fetch(std::span<std::byte> to, const std::byte* staged) override {
    SHW_CHECK(
        cuda_status(cudaMemcpyAsync(to.data(), staged, to.size(), cudaMemcpyDeviceToHost, stream_),
                    "copying from the GPU for NCCL"));
    // Waits only for this stream.
    return cuda_status(cudaStreamSynchronize(stream_), "copying from the GPU for NCCL");
  }

  Result<bool> is_idle() override {
    const cudaError_t error = cudaStreamQuery(stream_);
    if (error == cudaErrorNotReady) return false;
    SHW_CHECK(cuda_status(error, "waiting for NCCL on the GPU"));
    return true;
  }

 private:
  const int device_;
  cudaStream_t stream_ = nullptr;
  DeviceMemory memory_;
};

}  // namespace

Result<std::unique_ptr<NcclStagingBuffer>> cuda_staging_buffer(int device) {
  Gpus found = cuda_gpus();
  if (!found.none.empty()) return fail(ErrorKind::kUnsupported, found.none);
  auto stage = std::make_unique<CudaStagingBuffer>(device);
  SHW_CHECK(stage->open());
  return std::unique_ptr<NcclStagingBuffer>(std::move(stage));
}

}  // namespace shw

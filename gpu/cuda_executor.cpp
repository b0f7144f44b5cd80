#include "gpu/cuda_executor.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "gpu/device_tables.h"

namespace shw {
namespace {

// Pinned memory that what lies elsewhere goes through, half at a time.
constexpr std::size_t kStaged = std::size_t{8} << 20;

class Stream {
 public:
  ~Stream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  Status open() {
    return cuda_status(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                       "opening a stream");
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

bool is_pinned(const void* memory) {
  cudaPointerAttributes attributes = {};
  const bool known = cudaPointerGetAttributes(&attributes, memory) == cudaSuccess;
  if (!known) cudaGetLastError();  // it is told once more at the next call
  return known && attributes.type == cudaMemoryTypeHost;
}

// Jobs never meet in what they make: as many bytes as there are mean all of them.
bool makes_all(const SlabWork& work) {
  std::uint64_t bytes = 0;
  for (const TileJob& job : work.tiles)
    bytes += static_cast<std::uint64_t>(elements(job.layouts.target)) * size_of(job.to);
  return bytes == work.out.size();
}

class CudaExecutor final : public Executor {
 public:
  explicit CudaExecutor(int device) : device_(device) {}
  ~CudaExecutor() override {
    // What is freed belongs to this device, whichever one the thread has meanwhile.
    cudaSetDevice(device_);
  }

  Status open() {
    SHW_CHECK(cuda_status(cudaSetDevice(device_), "taking the GPU"));
    return stream_.open();
  }

  Result<Fingerprint> run(const SlabWork& work) override {
    SHW_CHECK(cuda_status(cudaSetDevice(device_), "taking the GPU"));
    SHW_CHECK(in_.reserve(work.in.size()));
    SHW_CHECK(out_.reserve(work.out.size()));
    slab_.clear();
    add_tiles(slab_, work.tiles);
    add_scans(slab_, work.elements);
    SHW_CHECK(tables_.upload(slab_, stream_.get()));
    SHW_CHECK(send(work.in, in_.data()));
    if (!makes_all(work)) SHW_CHECK(send(work.out, out_.data()));
    SHW_CHECK(tables_.launch(in_.data(), out_.data(), stream_.get()));
    SHW_CHECK(fetch(out_.data(), work.out));
    return tables_.sum(stream_.get());
  }

 private:
  Status copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    return cuda_status(
        cudaMemcpyAsync(to, from, bytes, kind, stream_.get()),
        kind == cudaMemcpyHostToDevice ? "copying to the GPU" : "copying from the GPU");
  }
  Status wait() { return cuda_status(cudaStreamSynchronize(stream_.get()), "waiting for the GPU"); }

  // Pageable memory goes by way of pinned pieces.
  Status send(std::span<const std::byte> from, std::byte* to) {
    if (from.empty()) return {};
    if (is_pinned(from.data())) return copy(to, from.data(), from.size(), cudaMemcpyHostToDevice);
    SHW_CHECK(staged_.reserve(kStaged));
    for (std::size_t done = 0; done < from.size(); done += kStaged) {
      const std::size_t now = std::min(kStaged, from.size() - done);
      SHW_CHECK(wait());
      std::memcpy(staged_.data(), from.data() + done, now);
      SHW_CHECK(copy(to + done, staged_.data(), now, cudaMemcpyHostToDevice));
    }
    return wait();
  }
  Status fetch(const std::byte* from, std::span<std::byte> to) {
    if (to.empty()) return {};
    if (is_pinned(to.data())) return copy(to.data(), from, to.size(), cudaMemcpyDeviceToHost);
    SHW_CHECK(staged_.reserve(kStaged));
    for (std::size_t done = 0; done < to.size(); done += kStaged) {
      const std::size_t now = std::min(kStaged, to.size() - done);
      SHW_CHECK(copy(staged_.data(), from + done, now, cudaMemcpyDeviceToHost));
      SHW_CHECK(wait());
      std::memcpy(to.data() + done, staged_.data(), now);
    }
    return {};
  }

  int device_;
  Stream stream_;
  SlabTables slab_;
  DeviceTables tables_;
  DeviceMemory in_, out_;
  PinnedMemory staged_;
};

}  // namespace

Status cuda_status(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  std::string message = std::string(what) + ": CUDA says: " + cudaGetErrorString(error);
  if (error == cudaErrorMemoryAllocation)
    return fail(ErrorKind::kIo, std::move(message), {}, "take less with --memory, or --device cpu");
  return fail(ErrorKind::kIo, std::move(message), {}, "take --device cpu");
}

Gpus cuda_gpus() {
  Gpus found;
  found.open = cuda_executor;
  int count = 0;  // an error leaves it as it is
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0;
    const bool has_driver = cudaDriverGetVersion(&driver) == cudaSuccess && driver != 0;
    found.none = has_driver ? "the driver of the GPU is older than CUDA " +
                                  std::to_string(CUDART_VERSION / 1000) + " needs"
                            : "no driver of a GPU was found";
  } else if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
    found.none = "no GPU was found";
  } else if (error != cudaSuccess) {
    found.none = std::string("CUDA says: ") + cudaGetErrorString(error);
  }
  if (!found.none.empty()) {
    cudaGetLastError();  // it is told once more at the next call
    return found;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    found.found.push_back({i, properties.name, properties.totalGlobalMem});
  }
  return found;
}

Result<std::unique_ptr<Executor>> cuda_executor(int device) {
  Gpus found = cuda_gpus();
  if (!found.none.empty())
    return fail(ErrorKind::kUnsupported, found.none, {}, "take --device cpu");
  auto executor = std::make_unique<CudaExecutor>(device);
  SHW_CHECK(executor->open());
  return std::unique_ptr<Executor>(std::move(executor));
}

}  // namespace shw

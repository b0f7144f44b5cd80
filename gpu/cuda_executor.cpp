// Pipelines slabs over three streams: transfer to the GPU, kernels, and transfer back, so that
// three slabs progress at once; events order the stages of one slab. Each slab in flight has a
// lane, which is reused only when the slab is back; the number of lanes limits how far a fast
// reader can run ahead.
#include "gpu/cuda_executor.h"

#include <fmt/core.h>

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "gpu/device_tables.h"

namespace shw {
namespace {

// One slab in each stage, and one being read or written by the host.
constexpr std::size_t kLanes = 4;

class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  Status open() {
    return cuda_status(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                       "opening a stream");
  }
  // Waits for the stream; errors no longer matter.
  void drain() const {
    if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// A CUDA event: a point in time on a stream.
class CudaEvent {
 public:
  CudaEvent() = default;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Status open() { return cuda_status(cudaEventCreate(&event_), "making an event"); }
  Status record(const Stream& stream) {
    return cuda_status(cudaEventRecord(event_, stream.get()), "recording an event");
  }
  Status make_stream_wait(const Stream& stream) const {
    return cuda_status(cudaStreamWaitEvent(stream.get(), event_, 0), "waiting for an event");
  }
  Status wait() const { return cuda_status(cudaEventSynchronize(event_), "waiting for the GPU"); }
  double seconds_since(const CudaEvent& before) const {
    float milliseconds = 0;
    const bool known = cudaEventElapsedTime(&milliseconds, before.event_, event_) == cudaSuccess;
    if (!known) cudaGetLastError();  // clears the sticky error
    return known ? static_cast<double>(milliseconds) * 1e-3 : 0;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// True if the jobs write every output byte: jobs never overlap, so their sizes add up.
bool writes_every_byte(const SlabWork& work) {
  std::uint64_t bytes = 0;
  for (const TileJob& job : work.tiles)
    bytes += static_cast<std::uint64_t>(elements(job.layouts.target)) * size_of(job.to);
  return bytes == work.out.size();
}

// Begin and end event of a stage of one slab.
struct StageEvents {
  CudaEvent begun, done;
  Status open() {
    SHW_CHECK(begun.open());
    return done.open();
  }
};

// The resources of one slab in flight.
struct Lane {
  SlabTables slab;
  DeviceTables tables;
  DeviceMemory in, out;
  std::array<StageEvents, kDeviceStages> stages;
  DeviceWorks works;
  std::span<std::byte> to;

  StageEvents& of(DeviceStage stage) { return stages[static_cast<std::size_t>(stage)]; }
  Status open() {
    for (StageEvents& stage : stages) SHW_CHECK(stage.open());
    return {};
  }
};

// Sets the device first: a thread without a current device would initialise device 0.
std::byte* lease_pinned(std::size_t bytes, int device) {
  void* memory = nullptr;
  if (cudaSetDevice(device) == cudaSuccess && cudaMallocHost(&memory, bytes) == cudaSuccess)
    return static_cast<std::byte*>(memory);
  cudaGetLastError();  // falls back to ordinary, slower memory
  return nullptr;
}
void free_pinned(std::byte* memory) {
  cudaFreeHost(memory);
}
// Never destroyed: slabs may outlive their executor.
const SlabMemory* pinned_slabs(int device) {
  static std::mutex guard;
  static std::map<int, SlabMemory> of_devices;
  std::lock_guard lock(guard);
  return &of_devices.try_emplace(device, SlabMemory{lease_pinned, free_pinned, device})
              .first->second;
}

class CudaExecutor final : public Executor {
 public:
  explicit CudaExecutor(int device) : device_(device) {}
  ~CudaExecutor() override {
    // Frees on this device, whatever the thread's current device is.
    cudaSetDevice(device_);
    for (const Stream* stream : {&send_, &make_, &fetch_}) stream->drain();
  }

  Status open() {
    SHW_CHECK(cuda_status(cudaSetDevice(device_), "taking the GPU"));
    for (Stream* stream : {&send_, &make_, &fetch_}) SHW_CHECK(stream->open());
    for (Lane& lane : lanes_) SHW_CHECK(lane.open());
    return {};
  }

  std::size_t max_in_flight() override { return kLanes; }
  const SlabMemory* memory() override { return pinned_slabs(device_); }

  Result<Fingerprint> run(const SlabWork& work) override {
    begin(work);
    return finish();
  }
  void begin(const SlabWork& work) override {
    under_way_.push_back({next_, start(lanes_[next_], work)});
    next_ = (next_ + 1) % kLanes;
  }
  Result<Fingerprint> finish() override {
    const SlabInFlight begun = std::move(under_way_.front());
    under_way_.pop_front();
    Lane& lane = lanes_[begun.lane];
    // Needed after a failed start too, because the started part may still access the slab.
    auto done =
        begun.started ? end(lane) : Result<Fingerprint>(tl::unexpected(begun.started.error()));
    if (!done) {
      for (const Stream* stream : {&send_, &make_, &fetch_}) stream->drain();
      return done;
    }
    lane.tables.add_numbers(lane.slab);
    for (std::size_t i = 0; i < kDeviceStages; ++i) {
      works_[i].bytes += lane.works[i].bytes;
      works_[i].seconds += lane.stages[i].done.seconds_since(lane.stages[i].begun);
    }
    return done;
  }
  DeviceWorks collect_device_times() override { return std::exchange(works_, {}); }

 private:
  struct SlabInFlight {
    std::size_t lane;
    Status started;
  };

  Status start(Lane& lane, const SlabWork& work) {
    SHW_CHECK(cuda_status(cudaSetDevice(device_), "taking the GPU"));
    SHW_CHECK(lane.in.reserve(work.in.size()));
    SHW_CHECK(lane.out.reserve(work.out.size()));
    lane.slab.clear();
    add_slab_work_to_tables(lane.slab, work);
    lane.to = work.out;
    const bool all = writes_every_byte(work);
    const std::size_t sent = work.in.size() + (all ? 0 : work.out.size());
    lane.works = {{{sent, 0}, {work.in.size() + work.out.size(), 0}, {work.out.size(), 0}}};
    StageEvents& send = lane.of(DeviceStage::kSend);
    SHW_CHECK(send.begun.record(send_));
    SHW_CHECK(lane.tables.upload(lane.slab, send_.get()));
    SHW_CHECK(copy(lane.in.data(), work.in.data(), work.in.size(), cudaMemcpyHostToDevice, send_));
    if (!all)
      SHW_CHECK(
          copy(lane.out.data(), work.out.data(), work.out.size(), cudaMemcpyHostToDevice, send_));
    SHW_CHECK(send.done.record(send_));
    SHW_CHECK(make(lane));
    return fetch(lane);
  }
  Status make(Lane& lane) {
    StageEvents& kernels = lane.of(DeviceStage::kKernels);
    SHW_CHECK(lane.of(DeviceStage::kSend).done.make_stream_wait(make_));
    SHW_CHECK(kernels.begun.record(make_));
    SHW_CHECK(lane.tables.launch(lane.in.data(), lane.out.data(), make_.get()));
    return kernels.done.record(make_);
  }
  Status fetch(Lane& lane) {
    StageEvents& fetch = lane.of(DeviceStage::kFetch);
    SHW_CHECK(lane.of(DeviceStage::kKernels).done.make_stream_wait(fetch_));
    SHW_CHECK(fetch.begun.record(fetch_));
    SHW_CHECK(
        copy(lane.to.data(), lane.out.data(), lane.to.size(), cudaMemcpyDeviceToHost, fetch_));
    SHW_CHECK(lane.tables.fetch(fetch_.get()));
    return fetch.done.record(fetch_);
  }
  Result<Fingerprint> end(Lane& lane) {
    SHW_CHECK(cuda_status(cudaSetDevice(device_), "taking the GPU"));
    SHW_CHECK(lane.of(DeviceStage::kFetch).done.wait());
    return lane.tables.sum();
  }
  // Copies from ordinary memory go through the driver's staging buffer.
  static Status copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                     const Stream& stream) {
    if (bytes == 0) return {};
    return cuda_status(
        cudaMemcpyAsync(to, from, bytes, kind, stream.get()),
        kind == cudaMemcpyHostToDevice ? "copying to the GPU" : "copying from the GPU");
  }

  const int device_;
  Stream send_, make_, fetch_;
  std::array<Lane, kLanes> lanes_;
  std::size_t next_ = 0;
  std::deque<SlabInFlight> under_way_;
  DeviceWorks works_{};
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
  int count = 0;  // unchanged on errors
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
    cudaGetLastError();  // clears the sticky error
    return found;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    std::string id;
    for (const char byte : properties.uuid.bytes)
      id += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    found.found.push_back({i, properties.name, properties.totalGlobalMem, std::move(id)});
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

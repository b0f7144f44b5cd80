// The rig's streams: queues of pending work. Every CUDA call runs a random part of it from all
// streams; a waiting call runs it until its condition holds.
#include "streams.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <vector>

#include "cuda_runtime.h"

struct rig_event {
  std::uint64_t recorded = 0, done = 0;  // how often
};
namespace {

struct Operation {
  std::function<void()> work;
  std::shared_ptr<rig_event> waits, records;
  std::uint64_t which = 0;  // recording of `waits` or `records`
  std::uint64_t number = 0;
};

}  // namespace
struct rig_stream {
  std::deque<Operation> queue;
};

namespace {

// Device and size of an allocation.
struct Taken {
  int device = 0;
  std::size_t bytes = 0;
};

// Per thread, as in CUDA.
thread_local int current_device = 0;

// Seed for a whole program on the rig, from an environment variable.
std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Streams {
  std::mt19937_64 random{1};
  std::vector<std::unique_ptr<rig_stream>> all;
  std::map<rig_event*, std::shared_ptr<rig_event>> events;
  std::map<void*, Taken> memory;
  rig::StreamCounts counts;
  std::uint64_t next = 1, fails_from = number_of("SHW_RIG_FAILS_FROM", 0), waits = 0;
  bool forgets = false, is_broken = false;
  int devices = static_cast<int>(number_of("SHW_RIG_CARDS", 1)), driver = 13000;
};
Streams& streams() {
  static Streams one;
  return one;
}

// Threads may call CUDA concurrently; their work runs one at a time.
std::recursive_mutex guard;
struct Turn {
  std::lock_guard<std::recursive_mutex> held{guard};
};

bool is_ready(const Operation& operation) {
  return operation.waits == nullptr || operation.waits->done >= operation.which;
}

void run_command(rig_stream& stream) {
  Streams& s = streams();
  Operation operation = std::move(stream.queue.front());
  stream.queue.pop_front();
  for (const auto& other : s.all)
    if (!other->queue.empty() && other->queue.front().number < operation.number)
      ++s.counts.overtaken;
  if (operation.work != nullptr) {
    ++s.counts.operations;
    if (s.fails_from != 0 && s.counts.operations >= s.fails_from) s.is_broken = true;
    if (!s.is_broken) operation.work();
  }
  if (operation.records != nullptr)
    operation.records->done = std::max(operation.records->done, operation.which);
}

// Does one operation of a stream that can proceed; false if none can.
bool go_on() {
  Streams& s = streams();
  std::vector<rig_stream*> ready;
  for (const auto& stream : s.all)
    if (!stream->queue.empty() && is_ready(stream->queue.front())) ready.push_back(stream.get());
  if (ready.empty()) return false;
  run_command(*ready[s.random() % ready.size()]);
  return true;
}

cudaError_t state() {
  return streams().is_broken ? cudaErrorLaunchFailure : cudaSuccess;
}

// Runs work that happens before a call.
cudaError_t meanwhile() {
  for (std::uint64_t left = streams().random() % 4; left > 1; --left) go_on();
  return state();
}

template <class Done>
cudaError_t wait_until(Done done) {
  while (!done())
    if (!go_on()) std::abort();  // otherwise it would wait forever
  return state();
}

cudaError_t give(cudaStream_t stream, Operation operation) {
  if (streams().is_broken) return cudaErrorLaunchFailure;
  operation.number = streams().next++;
  stream->queue.push_back(std::move(operation));
  return meanwhile();
}

cudaError_t take_memory(void** memory, std::size_t bytes) {
  if (streams().is_broken || meanwhile() != cudaSuccess) return cudaErrorLaunchFailure;
  *memory = ::operator new (bytes, std::align_val_t{256});
  std::memset(*memory, 0xCD, bytes);  // rubbish
  streams().memory[*memory] = {current_device, bytes};
  return cudaSuccess;
}

cudaError_t give_memory_back(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  while (go_on()) {
  }
  streams().memory.erase(memory);
  ::operator delete (memory, std::align_val_t{256});
  return state();
}

}  // namespace

namespace rig {

void begin_streams(std::uint64_t seed) {
  const Turn turn;
  Streams& s = streams();
  s.random.seed(seed);
  s.counts = {};
  s.waits = 0;
  s.fails_from = 0;
  s.is_broken = false;
}
void forget_waits(bool forget) {
  const Turn turn;
  streams().forgets = forget;
}
void fail_from(std::uint64_t operation) {
  const Turn turn;
  streams().fails_from = operation;
}
StreamCounts stream_counts() {
  const Turn turn;
  return streams().counts;
}
std::size_t memory_held() {
  const Turn turn;
  std::size_t bytes = 0;
  for (const auto& [memory, taken] : streams().memory) bytes += taken.bytes;
  return bytes;
}
std::size_t memory_held(int device) {
  const Turn turn;
  std::size_t bytes = 0;
  for (const auto& [memory, taken] : streams().memory)
    if (taken.device == device) bytes += taken.bytes;
  return bytes;
}
void set_devices(int count, int driver) {
  const Turn turn;
  streams().devices = count;
  streams().driver = driver;
}

cudaError_t do_later(cudaStream_t stream, std::function<void()> work) {
  const Turn turn;
  if (stream == nullptr) {
    work();
    return cudaSuccess;
  }
  return give(stream, {std::move(work), nullptr, nullptr});
}

}  // namespace rig

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const Turn turn;
  return take_memory(memory, bytes);
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  const Turn turn;
  return take_memory(memory, bytes);
}
cudaError_t cudaFree(void* memory) {
  const Turn turn;
  return give_memory_back(memory);
}
cudaError_t cudaFreeHost(void* memory) {
  const Turn turn;
  return give_memory_back(memory);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  const Turn turn;
  return rig::do_later(stream, [=] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const Turn turn;
  return rig::do_later(stream, [=] { std::memset(to, value, bytes); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) {
  const Turn turn;
  if (streams().is_broken) return cudaErrorLaunchFailure;
  streams().all.push_back(std::make_unique<rig_stream>());
  *stream = streams().all.back().get();
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Turn turn;
  return wait_until([&] { return stream->queue.empty(); });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Turn turn;
  cudaStreamSynchronize(stream);
  auto& all = streams().all;
  all.erase(
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.get() == stream; }));
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  const Turn turn;
  if (++streams().waits % 2 == 0 && streams().forgets) return meanwhile();
  return give(stream, {nullptr, streams().events[event], nullptr, event->recorded});
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  const Turn turn;
  if (streams().is_broken) return cudaErrorLaunchFailure;
  auto made = std::make_shared<rig_event>();
  *event = made.get();
  streams().events[made.get()] = std::move(made);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Turn turn;
  streams().events.erase(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Turn turn;
  if (streams().is_broken) return cudaErrorLaunchFailure;
  return give(stream, {nullptr, nullptr, streams().events[event], ++event->recorded});
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Turn turn;
  return wait_until([&] { return event->done >= event->recorded; });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  const Turn turn;
  *milliseconds = 1;
  return state();
}

cudaError_t cudaSetDevice(int device) {
  const Turn turn;
  current_device = device;
  return state();
}
cudaError_t cudaGetLastError() {
  const Turn turn;
  return state();
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "unspecified launch failure";
}
cudaError_t cudaGetDeviceCount(int* count) {
  const Turn turn;
  const Streams& s = streams();
  if (s.driver == 0 || s.driver < CUDART_VERSION) return cudaErrorInsufficientDriver;
  *count = s.devices;
  return s.devices == 0 ? cudaErrorNoDevice : cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  const Turn turn;
  *version = streams().driver;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index) {
  const Turn turn;
  *properties = {};
  std::strcpy(properties->name, index == 0 ? "Rig 0" : "Rig");
  properties->uuid.bytes[15] = static_cast<char>(index + 1);
  properties->totalGlobalMem = std::size_t{1} << 30;
  return cudaSuccess;
}

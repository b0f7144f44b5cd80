#include "on_double.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/cluster/loopback.h"

namespace shw::test {
namespace {

class HostStage final : public NcclStagingBuffer {
 public:
  Status take() override { return {}; }
  NcclStream stream() const override { return const_cast<HostStage*>(this); }
  Result<std::byte*> reserve(std::size_t bytes) override {
    // New memory of exact size every time, so that ASan finds a use after it was freed.
    memory_ = std::make_unique<std::byte[]>(bytes + 256);
    void* at = memory_.get();
    std::size_t room = bytes + 256;
    return static_cast<std::byte*>(std::align(256, bytes, at, room));
  }
  Status fill(std::byte* staged, BytesView from) override {
    std::memcpy(staged, from.data(), from.size());
    return {};
  }
  Status fetch(std::span<std::byte> to, const std::byte* staged) override {
    std::memcpy(to.data(), staged, to.size());
    return {};
  }
  Result<bool> is_idle() override { return nccl_double().stream_idle(stream()) != 0; }

 private:
  std::unique_ptr<std::byte[]> memory_;
};

template <class Function>
void find(void* library, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function != nullptr) return;
  std::fprintf(stderr, "the double has no %s\n", name);
  std::abort();
}

NcclDouble load() {
  NcclDouble found;
  auto nccl = load_nccl(SHW_NCCL_DOUBLE);
  if (!nccl) {
    std::fprintf(stderr, "%s\n", nccl.error().message.c_str());
    std::abort();
  }
  found.nccl = *nccl;
  void* library = dlopen(SHW_NCCL_DOUBLE, RTLD_NOW | RTLD_LOCAL);
  find(library, found.counts, "ncclDoubleCounts");
  find(library, found.stream_idle, "ncclDoubleStreamIdle");
  find(library, found.fault, "ncclDoubleFault");
  find(library, found.tolerate, "ncclDoubleTolerate");
  find(library, found.violation, "ncclDoubleViolation");
  return found;
}

}  // namespace

const NcclDouble& nccl_double() {
  static const NcclDouble loaded = load();
  return loaded;
}

std::unique_ptr<NcclStagingBuffer> host_stage() {
  return std::make_unique<HostStage>();
}

NcclOptions nccl_options(std::chrono::milliseconds patience) {
  NcclOptions options;
  options.piece_bytes = 1000;
  options.most_staged = 50'000;
  options.opening.within = patience;
  return options;
}

std::vector<Status> run_on_nccl(int workers, const NcclOptions& options,
                                const std::function<Status(Transport&)>& work) {
  return run_on_threads(workers, {}, [&](Transport& control) -> Status {
    SHW_TRY(auto transport, open_nccl(nccl_double().nccl, host_stage(), control, options));
    return work(*transport);
  });
}

}  // namespace shw::test

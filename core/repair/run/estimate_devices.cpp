#include "core/repair/run/estimate_devices.h"

#include <fmt/core.h>

#include "core/base/parallel.h"
#include "core/base/words.h"

namespace shw {
namespace {

DeviceEstimate on_gpu(const Program& program, const Gpus& gpus, const Gpu& gpu,
                      const Forecast& on_cpu) {
  DeviceEstimate outlook{fmt::format("cuda:{}", gpu.index), gpu.name, 0};
  auto executor = gpus.open(gpu.index);
  auto spent = executor ? measure_compute_seconds(program, **executor)
                        : Result<ComputeSeconds>(tl::unexpected<Error>(executor.error()));
  if (!spent) {
    outlook.failed = spent.error().message;
    return outlook;
  }
  // Replaces the CPU's compute time by the device's, which includes fingerprints. Transfers of all
  // threads share one bus.
  const double on_cpu_made = on_cpu.seconds[static_cast<std::size_t>(Stage::kMake)];
  outlook.seconds = on_cpu.total - on_cpu_made + spent->make;
  return outlook;
}

}  // namespace

void estimate_devices(const Program& program, const DeviceOptions& options,
                      RepairEstimate& outlook) {
  outlook.devices.push_back({"cpu", plural(worker_count(), "thread"), outlook.forecast.total});
  if (options.gpus == nullptr) {
    outlook.no_gpu = "none was looked for";
    return;
  }
  const Gpus gpus = options.gpus();
  if (gpus.found.empty()) outlook.no_gpu = gpus.none.empty() ? "none was found" : gpus.none;
  for (const Gpu& gpu : gpus.found)
    outlook.devices.push_back(on_gpu(program, gpus, gpu, outlook.forecast));
}

}  // namespace shw

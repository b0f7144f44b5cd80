#include "gpu/device_tables.h"

#include <cstring>

namespace shw {
namespace {

bool is_scan(Kernel kernel) {
  return kernel >= Kernel::kScan1;
}

}  // namespace

Status DeviceTables::upload(const SlabTables& tables, cudaStream_t stream) {
  launches_.clear();
  sums_ = 0;
  jobs_ = tables.jobs.size() * sizeof(DeviceJob);
  std::size_t items = 0;
  for (std::size_t k = 0; k < tables.items.size(); ++k) {
    const auto kernel = static_cast<Kernel>(k);
    const std::size_t count = tables.of(kernel).size();
    if (count == 0) continue;
    launches_.push_back({kernel, items, static_cast<std::uint32_t>(count)});
    items += count;
    if (is_scan(kernel)) sums_ += count;
  }
  if (items == 0) return {};
  const std::size_t bytes = jobs_ + items * sizeof(Item);
  SHW_CHECK(staged_.reserve(bytes));
  SHW_CHECK(tables_.reserve(bytes));
  SHW_CHECK(staged_sums_.reserve(sums_ * sizeof(Fingerprint)));
  SHW_CHECK(device_sums_.reserve(sums_ * sizeof(Fingerprint)));
  std::memcpy(staged_.data(), tables.jobs.data(), jobs_);
  for (const Launch& launch : launches_)
    std::memcpy(staged_.data() + jobs_ + launch.first * sizeof(Item),
                tables.of(launch.kernel).data(), launch.count * sizeof(Item));
  return cuda_status(
      cudaMemcpyAsync(tables_.data(), staged_.data(), bytes, cudaMemcpyHostToDevice, stream),
      "copying a slab's tables");
}

Status DeviceTables::launch(const std::byte* in, std::byte* out, cudaStream_t stream) {
  std::size_t sums = 0;
  for (const Launch& launch : launches_) {
    DeviceSlab slab;
    slab.in = in;
    slab.out = out;
    slab.jobs = reinterpret_cast<const DeviceJob*>(tables_.data());
    slab.items = reinterpret_cast<const Item*>(tables_.data() + jobs_) + launch.first;
    if (is_scan(launch.kernel)) {
      slab.sums = reinterpret_cast<Fingerprint*>(device_sums_.data()) + sums;
      sums += launch.count;
      SHW_CHECK(
          cuda_status(launch_scan(launch.kernel, slab, launch.count, stream), "starting a kernel"));
    } else {
      SHW_CHECK(cuda_status(launch_tiles(launch.kernel, slab, launch.count, stream),
                            "starting a kernel"));
    }
  }
  return {};
}

Result<Fingerprint> DeviceTables::sum(cudaStream_t stream) {
  Fingerprint sum;
  const std::size_t bytes = sums_ * sizeof(Fingerprint);
  if (bytes != 0)
    SHW_CHECK(cuda_status(cudaMemcpyAsync(staged_sums_.data(), device_sums_.data(), bytes,
                                          cudaMemcpyDeviceToHost, stream),
                          "copying a slab's sums"));
  SHW_CHECK(cuda_status(cudaStreamSynchronize(stream), "waiting for the GPU"));
  const auto* parts = reinterpret_cast<const Fingerprint*>(staged_sums_.data());
  for (std::size_t i = 0; i < sums_; ++i) sum += parts[i];
  return sum;
}

}  // namespace shw

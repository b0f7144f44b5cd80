#include "gpu/device_tables.h"

#include <cstring>

#include "core/tensor/statistics.h"
#include "gpu/statistics_tables.h"

namespace shw {

Status DeviceTables::upload(const SlabTables& tables, cudaStream_t stream) {
  launches_.clear();
  sums_ = 0;
  jobs_ = tables.jobs.size() * sizeof(DeviceJob);
  numbers_ = tables.number_words * sizeof(std::uint64_t);
  std::size_t items = 0;
  for (std::size_t k = 0; k < tables.items.size(); ++k) {
    const auto kernel = static_cast<Kernel>(k);
    const std::size_t count = tables.of(kernel).size();
    if (count == 0) continue;
    launches_.push_back({kernel, items, static_cast<std::uint32_t>(count)});
    items += count;
    if (is_fingerprint_kernel(kernel)) sums_ += count;
  }
  if (items == 0) return {};
  const std::size_t bytes = jobs_ + items * sizeof(Item);
  SHW_CHECK(staged_.reserve(bytes));
  SHW_CHECK(tables_.reserve(bytes));
  SHW_CHECK(staged_sums_.reserve(sums_ * sizeof(Fingerprint)));
  SHW_CHECK(device_sums_.reserve(sums_ * sizeof(Fingerprint)));
  SHW_CHECK(staged_numbers_.reserve(numbers_));
  SHW_CHECK(device_numbers_.reserve(numbers_));
  std::memcpy(staged_.data(), tables.jobs.data(), jobs_);
  for (const Launch& launch : launches_)
    std::memcpy(staged_.data() + jobs_ + launch.first * sizeof(Item),
                tables.of(launch.kernel).data(), launch.count * sizeof(Item));
  return cuda_status(
      cudaMemcpyAsync(tables_.data(), staged_.data(), bytes, cudaMemcpyHostToDevice, stream),
      "copying a slab's tables");
}

Status DeviceTables::launch(const std::byte* in, std::byte* out, cudaStream_t stream) {
  if (numbers_ != 0)
    SHW_CHECK(cuda_status(cudaMemsetAsync(device_numbers_.data(), 0, numbers_, stream),
                          "clearing a slab's numbers"));
  std::size_t sums = 0;
  for (const Launch& one : launches_) {
    DeviceSlab slab;
    slab.in = in;
    slab.out = out;
    slab.jobs = reinterpret_cast<const DeviceJob*>(tables_.data());
    slab.items = reinterpret_cast<const Item*>(tables_.data() + jobs_) + one.first;
    slab.numbers = reinterpret_cast<std::uint64_t*>(device_numbers_.data());
    if (is_fingerprint_kernel(one.kernel)) {
      slab.sums = reinterpret_cast<Fingerprint*>(device_sums_.data()) + sums;
      sums += one.count;
    }
    SHW_CHECK(cuda_status(shw::launch(one.kernel, slab, one.count, stream), "starting a kernel"));
  }
  return {};
}

Status DeviceTables::fetch(cudaStream_t stream) {
  const std::size_t sums = sums_ * sizeof(Fingerprint);
  if (sums != 0)
    SHW_CHECK(cuda_status(cudaMemcpyAsync(staged_sums_.data(), device_sums_.data(), sums,
                                          cudaMemcpyDeviceToHost, stream),
                          "copying a slab's sums"));
  if (numbers_ != 0)
    SHW_CHECK(cuda_status(cudaMemcpyAsync(staged_numbers_.data(), device_numbers_.data(), numbers_,
                                          cudaMemcpyDeviceToHost, stream),
                          "copying a slab's numbers"));
  return {};
}

Fingerprint DeviceTables::sum() const {
  Fingerprint sum;
  const auto* parts = reinterpret_cast<const Fingerprint*>(staged_sums_.data());
  for (std::size_t i = 0; i < sums_; ++i) sum += parts[i];
  return sum;
}

void DeviceTables::add_numbers(const SlabTables& tables) const {
  const auto* words = reinterpret_cast<const std::uint64_t*>(staged_numbers_.data());
  for (const StatisticsTable& table : tables.numbers)
    *table.sums += sums_of_table(table.dtype, table.elements, words + table.begin);
}

}  // namespace shw

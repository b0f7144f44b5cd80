// The kernels of gpu/ behind the interface of an executor, run by the rig; only for tests.
#pragma once

#include <cstring>
#include <memory>

#include "core/exec/executor.h"
#include "gpu/kernels.h"
#include "gpu/statistics_tables.h"

namespace shw::test {

// Memory as a device allocates it: at multiples of 256 bytes, and not one byte more.
class DeviceRoom {
 public:
  explicit DeviceRoom(std::size_t bytes)
      : bytes_(bytes), held_(::operator new (bytes == 0 ? 1 : bytes, std::align_val_t{256})) {}
  ~DeviceRoom() { ::operator delete (held_, std::align_val_t{256}); }
  DeviceRoom(const DeviceRoom&) = delete;
  DeviceRoom& operator=(const DeviceRoom&) = delete;
  std::byte* data() { return static_cast<std::byte*>(held_); }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  void* held_;
};

class RigExecutor final : public Executor {
 public:
  Result<Fingerprint> run(const SlabWork& work) override {
    DeviceRoom in(work.in.size()), out(work.out.size());
    if (!work.in.empty()) std::memcpy(in.data(), work.in.data(), in.size());
    if (!work.out.empty()) std::memcpy(out.data(), work.out.data(), out.size());
    SlabTables tables;
    add_slab_work_to_tables(tables, work);
    std::vector<std::uint64_t> numbers(tables.number_words);
    Fingerprint sum;
    for (std::size_t k = 0; k < tables.items.size(); ++k) {
      const auto kernel = static_cast<Kernel>(k);
      const auto& items = tables.of(kernel);
      if (items.empty()) continue;
      ++launched[k];
      std::vector<Fingerprint> sums(items.size());
      DeviceSlab slab{in.data(),    out.data(),  tables.jobs.data(),
                      items.data(), sums.data(), numbers.data()};
      launch(kernel, slab, static_cast<std::uint32_t>(items.size()), nullptr);
      for (const Fingerprint& part : sums) sum += part;
    }
    if (!work.out.empty()) std::memcpy(work.out.data(), out.data(), out.size());
    for (const StatisticsTable& table : tables.numbers)
      *table.sums += sums_of_table(table.dtype, table.elements, numbers.data() + table.begin);
    return sum;
  }

  std::array<std::size_t, static_cast<std::size_t>(Kernel::kCount)> launched{};
};

}  // namespace shw::test

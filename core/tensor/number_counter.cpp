#include "core/tensor/number_counter.h"

#include "core/tensor/statistics_counter.h"

namespace shw {
namespace {

class CpuNumberCounter final : public NumberCounter {
 public:
  void begin(Dtype dtype) override { counter_.begin(dtype); }
  void add(BytesView bytes) override { counter_.add(bytes); }
  void add_zeros(std::uint64_t bytes) override { counter_.add_zeros(bytes); }
  Result<StatisticsSums> take() override { return counter_.take(); }

 private:
  StatisticsCounter counter_;
};

}  // namespace

std::unique_ptr<NumberCounter> cpu_number_counter() {
  return std::make_unique<CpuNumberCounter>();
}

}  // namespace shw

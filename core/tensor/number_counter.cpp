#include "core/tensor/number_counter.h"

#include "core/tensor/statistics_counter.h"

namespace shw {
namespace {

class CpuStatisticsBackend final : public StatisticsBackend {
 public:
  void begin(Dtype dtype) override { counter_.begin(dtype); }
  void add(BytesView bytes) override { counter_.add(bytes); }
  void add_zeros(std::uint64_t bytes) override { counter_.add_zeros(bytes); }
  Result<StatisticsSums> take() override { return counter_.take(); }

 private:
  StatisticsCounter counter_;
};

}  // namespace

std::unique_ptr<StatisticsBackend> cpu_statistics_backend() {
  return std::make_unique<CpuStatisticsBackend>();
}

}  // namespace shw

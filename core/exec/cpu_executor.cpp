#include <algorithm>
#include <cstring>

#include "core/exec/change_elements.h"
#include "core/exec/element_fingerprint.h"
#include "core/exec/executor.h"
#include "core/tensor/statistics_counter.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// Calls row(source byte, target byte) at the start of each row of the innermost dim.
template <class Row>
void each_row(const LayoutPair& pair, Row row) {
  if (elements(pair.target) == 0) return;
  int outer = std::max(pair.target.ndim - 1, 0);
  std::int64_t at[kLayoutDims] = {}, from = pair.source.offset, to = pair.target.offset;
  while (true) {
    row(from, to);
    int d = outer;
    while (d-- > 0) {
      from += pair.source.stride[d];
      to += pair.target.stride[d];
      if (++at[d] < pair.target.shape[d]) break;
      from -= pair.source.stride[d] * pair.target.shape[d];
      to -= pair.target.stride[d] * pair.target.shape[d];
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

// The innermost dimension.
struct RowShape {
  std::int64_t size = 1, source = 0, target = 0;
};
RowShape row_of(const LayoutPair& pair) {
  int last = pair.target.ndim - 1;
  if (last < 0) return {};
  return {pair.target.shape[last], pair.source.stride[last], pair.target.stride[last]};
}

void change(const std::byte* in, const TileJob& job, std::byte* out) {
  RowShape row = row_of(job.layouts);
  each_row(job.layouts, [&](std::int64_t from, std::int64_t to) {
    convert_elements(job, in + from, row.source, out + to, row.target, row.size);
  });
}

void fill(const TileJob& job, std::byte* out) {
  RowShape row = row_of(job.layouts);
  std::size_t size = size_of(job.to);
  bool zeros = job.constant[0] == 0 && job.constant[1] == 0;
  each_row(job.layouts, [&](std::int64_t, std::int64_t to) {
    if (zeros && row.target == static_cast<std::int64_t>(size)) {
      std::memset(out + to, 0, static_cast<std::size_t>(row.size) * size);
      return;
    }
    for (std::int64_t i = 0; i < row.size; ++i)
      std::memcpy(out + to + i * row.target, job.constant, size);
  });
}

class CpuExecutor final : public Executor {
 public:
  Result<Fingerprint> run(const SlabWork& work) override {
    for (const TileJob& job : work.tiles) {
      switch (job.op) {
        case ElementOp::kCopy:
          copy_elements(work.in.data(), work.out.data(), job.layouts, size_of(job.to));
          break;
        case ElementOp::kCast:
        case ElementOp::kScale:
          change(work.in.data(), job, work.out.data());
          break;
        case ElementOp::kConstant:
          fill(job, work.out.data());
          break;
      }
    }
    Fingerprint sum;
    for (const TileJob& job : work.elements) add_elements(sum, work.in.data(), job);
    for (const StatisticsJob& job : work.numbers) {
      if (counter_ == nullptr) counter_ = std::make_unique<StatisticsCounter>();
      counter_->begin(job.dtype);
      counter_->add(work.in.subspan(job.begin, job.count * size_of(job.dtype)));
      *job.sums += counter_->take();
    }
    return sum;
  }

 private:
  std::unique_ptr<StatisticsCounter> counter_;
};

}  // namespace

std::unique_ptr<Executor> cpu_executor() {
  return std::make_unique<CpuExecutor>();
}

}  // namespace shw

#include <algorithm>
#include <array>
#include <cstring>

#include "core/exec/executor.h"
#include "core/tensor/cast.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// Calls row(source byte, target byte) at the start of every row of the innermost dimension.
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

// Elements that take more than one step: a few at a time, from buffer to buffer.
class Chain {
 public:
  explicit Chain(const TileJob& job) : job_(job) {}

  void run(const std::byte* in, std::byte* out, const RowShape& row) {
    for (std::int64_t done = 0; done < row.size; done += kAtOnce) {
      std::int64_t count = std::min(kAtOnce, row.size - done);
      run_part(in + done * row.source, row.source, out + done * row.target, row.target, count);
    }
  }

 private:
  static constexpr std::int64_t kAtOnce = 512;

  void run_part(const std::byte* in, std::int64_t in_stride, std::byte* out,
                std::int64_t out_stride, std::int64_t count) {
    Dtype now = job_.from;
    auto hop = [&](Dtype to, std::byte* target, std::int64_t stride) {
      if (now == to)
        copy_row(in, in_stride, target, stride, count, size_of(to));
      else
        cast_row(now, in, in_stride, to, target, stride, count);
      now = to;
      in = target;
      in_stride = stride;
    };
    std::size_t turn = 0;
    auto through = [&](Dtype to) {
      hop(to, buffers_[turn].data(), size_of(to));
      turn = 1 - turn;
    };
    if (job_.op == ElementOp::kScale) {
      through(Dtype::kFloat32);
      scale(buffers_[1 - turn].data(), count);
    }
    for (Dtype to : job_.via) {
      if (to != Dtype::kUnknown) through(to);
    }
    hop(job_.to, out, out_stride);
  }

  static void copy_row(const std::byte* in, std::int64_t in_stride, std::byte* out,
                       std::int64_t out_stride, std::int64_t count, std::size_t size) {
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(out + i * out_stride, in + i * in_stride, size);
  }

  // One rounding to float32 each, as torch multiplies.
  void scale(std::byte* values, std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i) {
      float value = 0;
      std::memcpy(&value, values + i * 4, sizeof value);
      value *= job_.factor;
      std::memcpy(values + i * 4, &value, sizeof value);
    }
  }

  const TileJob& job_;
  std::array<std::array<std::byte, kAtOnce * 8>, 2> buffers_;  // float64 is the widest
};

void cast(const std::byte* in, const TileJob& job, std::byte* out) {
  RowShape row = row_of(job.layouts);
  if (job.op == ElementOp::kScale || job.via != Hops{}) {
    Chain chain(job);
    each_row(job.layouts,
             [&](std::int64_t from, std::int64_t to) { chain.run(in + from, out + to, row); });
    return;
  }
  each_row(job.layouts, [&](std::int64_t from, std::int64_t to) {
    cast_row(job.from, in + from, row.source, job.to, out + to, row.target, row.size);
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
  Status run(std::span<const std::byte> in, std::span<const TileJob> jobs,
             std::span<std::byte> out) override {
    for (const TileJob& job : jobs) {
      switch (job.op) {
        case ElementOp::kCopy:
          copy_elements(in.data(), out.data(), job.layouts, size_of(job.to));
          break;
        case ElementOp::kCast:
        case ElementOp::kScale:
          cast(in.data(), job, out.data());
          break;
        case ElementOp::kConstant:
          fill(job, out.data());
          break;
      }
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Executor> cpu_executor() {
  return std::make_unique<CpuExecutor>();
}

}  // namespace shw

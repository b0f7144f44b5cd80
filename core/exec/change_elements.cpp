#include "core/exec/change_elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/tensor/cast.h"
#include "core/tensor/float_steps.h"

namespace shw {
namespace {

// Conversions with more than one step: small blocks alternate between two buffers.
class ConversionChain {
 public:
  explicit ConversionChain(const TileJob& job) : job_(job) {}

  void run(const std::byte* in, std::int64_t in_stride, std::byte* out, std::int64_t out_stride,
           std::int64_t size, std::uint8_t* out_of_range) {
    for (std::int64_t done = 0; done < size; done += kAtOnce) {
      std::int64_t count = std::min(kAtOnce, size - done);
      out_of_range_ = out_of_range == nullptr ? nullptr : out_of_range + done;
      run_part(in + done * in_stride, in_stride, out + done * out_stride, out_stride, count);
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
        cast_row(now, in, in_stride, to, target, stride, count, out_of_range_);
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

  void scale(std::byte* values, std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i) {
      float value = 0;
      std::memcpy(&value, values + i * 4, sizeof value);
      const float product = scaled(value, job_.factor);
      if (out_of_range_ != nullptr && std::isfinite(value) && !std::isfinite(product))
        out_of_range_[i] = 1;
      std::memcpy(values + i * 4, &product, sizeof product);
    }
  }

  const TileJob& job_;
  std::uint8_t* out_of_range_ = nullptr;
  std::array<std::array<std::byte, kAtOnce * 8>, 2> buffers_;  // float64 is the widest
};

}  // namespace

void convert_elements(const TileJob& job, const std::byte* in, std::int64_t in_stride,
                      std::byte* out, std::int64_t out_stride, std::int64_t count,
                      std::uint8_t* out_of_range) {
  if (job.op == ElementOp::kScale || job.via != CastChain{})
    return ConversionChain(job).run(in, in_stride, out, out_stride, count, out_of_range);
  cast_row(job.from, in, in_stride, job.to, out, out_stride, count, out_of_range);
}

}  // namespace shw

// One tensor as torch.save writes it.
#pragma once

#include <cstdint>
#include <functional>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/io/sink.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

// One torch.save archive holding one row-major tensor, in the layout of torch >= 2.7 with real CRCs
// (spec/dcp-format.md 3.2, 3.7). `fill` is called in order for the payload and writes exactly
// elements * size_of(dtype) bytes through the given sink.
struct PayloadWriter {
  // Returns the CRC-32 of what it wrote.
  std::function<Result<std::uint32_t>(ByteSink&)> write;
  std::uint64_t length = 0;
};
// Returns the item's length; the sink must stand where the item begins.
Result<std::uint64_t> write_torch_item(ByteSink& sink, Dtype dtype, ExtentsView sizes,
                                       const PayloadWriter& payload);
// The payload given whole.
Result<std::uint64_t> write_torch_item(ByteSink& sink, Dtype dtype, ExtentsView sizes,
                                       BytesView payload);

}  // namespace shw

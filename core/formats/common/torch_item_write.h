// One tensor as torch.save writes it.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "core/formats/common/torch_archive.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

// One torch.save archive holding one row-major tensor; the payload has exactly
// elements * size_of(dtype) bytes.
// Returns the item's length; the sink must be where the item begins.
Result<std::uint64_t> write_torch_item(ByteSink& sink, Dtype dtype, ExtentsView sizes,
                                       const PayloadWriter& payload, StorageMarks* marks = nullptr);
// Writes an item whose payload is in memory.
Result<std::uint64_t> write_torch_item(ByteSink& sink, Dtype dtype, ExtentsView sizes,
                                       BytesView payload);

}  // namespace shw

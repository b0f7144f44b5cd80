// Tensor subclasses in items of DCP: torchao's int8 and float8 weights, its 8-bit and 4-bit
// optimizer states. .metadata records the shape and dtype that such a tensor stands for; its item
// holds the tensors that the class wraps (common/tensor_subclass.h). Each of these becomes a tensor
// of its own: "w" with "qdata" and "scale" becomes "w.qdata" and "w.scale".
#pragma once

#include "core/base/progress.h"
#include "core/formats/format_row.h"

namespace shw {

// The checkpoint itself where no item holds a subclass. Only the headers of items whose length does
// not fit their elements are read, and after a first subclass those of one item per tensor.
// Tensors whose items do not give one box of each wrapped tensor stay as they are.
OpenedCheckpoint with_wrapped_tensors(std::shared_ptr<const Checkpoint> checkpoint,
                                      Progress* progress);

}  // namespace shw

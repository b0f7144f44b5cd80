// A pickled tensor that consists of other tensors: torchao's int8, int4 and float8 weights, its
// 8-bit and 4-bit optimizer states, and torch's own sparse, nested and quantised tensors. The class
// is not instantiated; the wrapped tensors are read by attribute.
//
//   call  = _rebuild_from_type_v2(_rebuild_wrapper_subclass, CLASS, arguments, state)
//         | _rebuild_from_type_v2(_rebuild_njt, NestedTensor, (state,), ...)
//         | _rebuild_sparse_tensor(layout, (indices..., values, size [, is_coalesced]))
//         | _rebuild_nested_tensor(buffer, sizes, strides, storage_offsets)
//         | _rebuild_qtensor(storage, offset, size, strides, quantizer, requires_grad, hooks)
//         | _rebuild_parameter(call, requires_grad, hooks)
//   state = {attribute: tensor | call | value} | (None, {...})
//
// DTensor uses such a call too but is excluded, because its local tensor is only a part of it
// (torch_file_tensors.h).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/pickle/pickle.h"
#include "core/tensor/shape.h"

namespace shw {

struct WrappedTensor {
  std::string name;  // "qdata", "tensor_impl.scale", "crow_indices"
  NodeId node = NodeId::kAbsent;
};
struct TensorSubclass {
  NodeId call = NodeId::kAbsent;
  std::string type;                    // "torchao.quantization.Int8Tensor", "torch.sparse_csr"
  std::vector<WrappedTensor> tensors;  // in the order of the attributes
  // Values without which the tensors are not the whole: the size of a sparse tensor, the scale of a
  // quantised one.
  std::vector<WrappedTensor> values = {};
  // Sizes of the tensor that the class stands for; nullopt if the call does not record them.
  std::optional<Extents> stands_for = {};
};
// Has no tensors if `node` is not such a call or wraps none.
TensorSubclass tensor_subclass(const PickleTree& tree, NodeId node);

}  // namespace shw

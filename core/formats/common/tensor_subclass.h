// A pickled tensor subclass that wraps other tensors: torchao's int8, int4 and float8 weights, its
// 8-bit and 4-bit optimizer states. The class is not instantiated; the wrapped tensors are read by
// attribute.
//
//   call  = _rebuild_from_type_v2(_rebuild_wrapper_subclass, CLASS, arguments, state)
//         | _rebuild_parameter(call, requires_grad, hooks)
//   state = {attribute: tensor | call | value} | (None, {...})
//
// DTensor uses such a call too but is excluded, because its local tensor is only a part of it
// (side_tensors.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/formats/common/pickle.h"

namespace shw {

struct WrappedTensor {
  std::string name;  // "qdata", "tensor_impl.scale"
  NodeId node = NodeId::kAbsent;
};
struct TensorSubclass {
  NodeId call = NodeId::kAbsent;
  std::string type;                    // "torchao.quantization.Int8Tensor"
  std::vector<WrappedTensor> tensors;  // in the order of the attributes
};
// Has no tensors if `node` is not such a call or wraps none.
TensorSubclass tensor_subclass(const PickleTree& tree, NodeId node);

}  // namespace shw

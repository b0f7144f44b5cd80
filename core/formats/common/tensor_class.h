// The class of a tensor that a checkpoint stores as the tensors that it wraps, as torchao's classes
// do: "0.weight" is "0.weight.qdata" and "0.weight.scale", or "0._weight_qdata" in safetensors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace shw {

struct TensorClass {
  std::string fqn;                      // of the wrapping tensor: "0.weight"
  std::string type;                     // without its module: "Int4Tensor"
  std::optional<Extents> shape;         // of the wrapping tensor; nullopt if it is not recorded
  std::vector<std::string> parts = {};  // names of the tensors that the file says it wraps
  std::optional<Extents> block = {};    // elements that share a scale; one number if of a row
};

// "Int4Tensor" for "torchao.quantization.Int4Tensor".
inline std::string class_without_module(const std::string& type) {
  return type.substr(type.rfind('.') + 1);
}

}  // namespace shw

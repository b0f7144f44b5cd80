// A torch.nn.Module that torch.save wrote whole: an object of a program's own class, whose tensors
// are in its attributes. Nothing is made of it; the names are those of its state_dict().
//
//   module = object with the attributes _parameters, _buffers, _modules
//            {name: tensor | None}, {name: tensor | None}, {name: module | None}
//
// Buffers that _non_persistent_buffers_set names are no part of a state_dict(). Tensors that are
// attributes by themselves are not either, but nothing else has them: they are read.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/formats/common/pickle.h"

namespace shw {

bool is_pickled_module(const PickleTree& tree, NodeId node);
// "models.resnet.ResNet"; "an unknown class" where the pickle does not name it.
std::string class_of_pickled(const PickleTree& tree, NodeId node);

struct ModuleTensors {
  std::vector<std::pair<std::string, NodeId>> tensors = {};  // in the order of state_dict()
  std::vector<std::string> left_out = {};                    // buffers that are not persistent
};
// kUnsupported where the modules are nested or shared beyond a small multiple of the pickle.
Result<ModuleTensors> module_tensors(const PickleTree& tree, NodeId module,
                                     const std::string& file);

}  // namespace shw

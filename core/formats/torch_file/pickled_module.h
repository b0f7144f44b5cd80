// A torch.nn.Module that torch.save pickled whole: an object of a program's own class with tensors
// in its attributes. It is not instantiated; names are those of its state_dict().
//
//   module = object with the attributes _parameters, _buffers, _modules
//            {name: tensor | None}, {name: tensor | None}, {name: module | None}
//
// TorchScript (torch.jit.save) pickles objects of classes below `__torch__`, whose code is next to
// the pickle. Their tensors have the same names; those in lists and dicts have their index or key:
//
//   object = class `__torch__....`, then a state: {name: value} or a tuple of values
//   value  = tensor | object | list, tuple or dict of values | anything else, which is left out
//
// Buffers in _non_persistent_buffers_set are not part of a state_dict(). Neither are tensors in
// other attributes, but these are read, because they are stored nowhere else.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/formats/pickle/pickle.h"

namespace shw {

bool is_pickled_module(const PickleTree& tree, NodeId node);
// True for an object of TorchScript, which is a pickled module too.
bool is_script_object(const PickleTree& tree, NodeId node);
// "models.resnet.ResNet"; "an unknown class" if the pickle does not name it.
std::string class_of_pickled(const PickleTree& tree, NodeId node);

struct ModuleTensors {
  std::vector<std::pair<std::string, NodeId>> tensors = {};  // in the order of state_dict()
  std::vector<std::string> left_out = {};                    // non-persistent buffers
};
// kUnsupported if modules are nested or shared beyond a small multiple of the pickle.
Result<ModuleTensors> module_tensors(const PickleTree& tree, NodeId module,
                                     const std::string& file);

}  // namespace shw

// The leaves of a pickled state dict, with the names that torch.distributed.checkpoint gives them
// (torch 2.4 and later, _traverse.py and _nested_dict.py).
//
//   state dict = mapping | list | tuple | tensor ("tensor") | module | object with attributes
//   mapping    = {key: value}, OrderedDict and others that were filled like one
//   value      = mapping | list that holds a tensor or a mapping somewhere | module | leaf
//   module     = a pickled torch.nn.Module (pickled_module.h): the entries of its state_dict()
//   leaf       = tensor | anything else: tuples too, whatever they hold
//   tensor     = plain | subclass (tensor_subclass.h): an entry for each tensor that it wraps
//
// A name is the keys and list indices on the path, joined by dots; a key that is not text is
// converted to text. Unlike in torch, which drops it, an empty mapping is a leaf.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/pickle/pickle.h"
#include "core/model/checkpoint.h"

namespace shw {

struct StateEntry {
  std::string fqn;
  std::vector<PathPart> path;
  NodeId value = NodeId::kAbsent;
  NodeId module = NodeId::kAbsent;    // the pickled module that contains it
  NodeId subclass = NodeId::kAbsent;  // the call of the tensor subclass that wraps it
};

// True if the root is a mapping, as in nearly all files.
bool is_state_mapping(const PickleTree& tree);

// kUnsupported if the root has no entries, if two leaves have one name (torch refuses to save
// these), and if the pickle's graph expands to more than a small multiple of its bytes.
// `whole`: names that are leaves whatever they contain (torch_file_records.h). `is_tensor`: which
// nodes are tensors; pickles that torch.save did not write hold arrays of numpy.
using IsTensorNode = bool (*)(const PickleTree& tree, NodeId node);
Result<std::vector<StateEntry>> flatten_state_dict(const PickleTree& tree, const std::string& file,
                                                   const std::set<std::string>& whole = {},
                                                   IsTensorNode is_tensor = is_tensor_call);

// Information beyond names, by path.
struct StateForms {
  using Paths = std::set<std::vector<PathPart>>;
  // By entry name: the path with a distinguished part, for entries below a key whose text equals
  // that of a key of another type (True and "True"). Paths in the other members use the
  // distinguished part too.
  std::map<std::string, std::vector<PathPart>> apart = {};
  // Paths to integer keys. Paths contain their text, as in torch's distributed checkpoints, where 0
  // and "0" are one name.
  Paths numbers = {};
  Paths words = {};  // keys that are True, False or None, not text
  // Keys that are floats or tuples, as opcodes that create them.
  std::map<std::vector<PathPart>, std::string> keys = {};
  Paths ordered = {};     // mappings of type OrderedDict
  Paths parameters = {};  // tensors of type torch.nn.Parameter
  // Attributes of an OrderedDict (a module's _metadata) and of tensors, as opcodes that create
  // their dict; and attributes that are more than data: "layer.weight (argparse.Namespace)".
  std::map<std::vector<PathPart>, std::string> attributes = {};
  std::vector<std::string> not_plain = {};
  // Names of what only this format keeps: attributes ("_metadata of the state dict", "tag of
  // layer.weight"), and types of non-text keys ("type of the whole-number keys of state", "type of
  // key True of layer").
  std::vector<std::string> own_names = {};
};
Result<StateForms> state_forms(const PickleTree& tree, const std::string& file,
                               const std::set<std::string>& whole = {});

// True for a mapping without entries.
bool is_empty_mapping(const PickleTree& tree, NodeId value);

}  // namespace shw

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
// A name is the keys and list indices on the way, joined by dots; keys that are no text are their
// text. Beyond torch, which forgets it, a mapping without an entry is a leaf.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/common/pickle.h"
#include "core/model/checkpoint.h"

namespace shw {

struct StateEntry {
  std::string fqn;
  std::vector<PathPart> path;
  NodeId value = NodeId::kAbsent;
  NodeId module = NodeId::kAbsent;    // the pickled module that it was taken out of
  NodeId subclass = NodeId::kAbsent;  // the call of the tensor subclass that wraps it
};

// Whether the root is a mapping, as nearly all are.
bool is_state_mapping(const PickleTree& tree);

// kUnsupported where the root holds no entries, where two leaves have one name (torch refuses to
// save such), and where the pickle's graph is made to take more than a small multiple of its bytes.
// `whole`: names of what is a leaf whatever it holds (torch_file_records.h).
Result<std::vector<StateEntry>> flatten_state_dict(const PickleTree& tree, const std::string& file,
                                                   const std::set<std::string>& whole = {});

// What the names do not say, by paths.
struct StateForms {
  using Paths = std::set<std::vector<PathPart>>;
  // Paths here are those of the entries but below a key that another one beside it, of another
  // type, has the text of (True and "True"): its part is told apart, and this has the path of every
  // entry below it, by name.
  std::map<std::string, std::vector<PathPart>> apart = {};
  // Keys that are whole numbers. A path itself has their text, as torch's distributed checkpoints
  // do: 0 and "0" are one name there.
  Paths numbers = {};
  Paths words = {};  // keys that are True, False or None, and not text that says so
  // Keys that are floats or tuples, as opcodes that make them.
  std::map<std::vector<PathPart>, std::string> keys = {};
  Paths ordered = {};     // mappings that are an OrderedDict
  Paths parameters = {};  // tensors that are a torch.nn.Parameter
  // Attributes of an OrderedDict (_metadata of a module's) and of tensors, as opcodes that make
  // their dict; and those that are more than data: "layer.weight (argparse.Namespace)".
  std::map<std::vector<PathPart>, std::string> attributes = {};
  std::vector<std::string> not_plain = {};
  // What only this format keeps, each by its name: attributes of both kinds ("_metadata of the
  // state dict", "tag of layer.weight"), and what keys are that are no text ("type of the
  // whole-number keys of state", "type of key True of layer").
  std::vector<std::string> own_names = {};
};
Result<StateForms> state_forms(const PickleTree& tree, const std::string& file,
                               const std::set<std::string>& whole = {});

// A mapping without an entry.
bool is_empty_mapping(const PickleTree& tree, NodeId value);

}  // namespace shw

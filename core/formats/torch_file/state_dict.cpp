#include "core/formats/torch_file/state_dict.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "core/formats/common/tensor_subclass.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/pickle/plain_pickle.h"
#include "core/formats/torch_file/pickled_module.h"
#include "core/formats/torch_file/state_keys.h"

namespace shw {
namespace {

// Depth limit, above any real state dict; torch's own recursion fails at 1000.
constexpr int kDeepestState = 64;
// Limit of non-tensor entries. An optimizer has some per parameter; 1.8 million in a file of 18 MB
// took 2.6 GB of memory.
constexpr std::size_t kMaxOthers = std::size_t{1} << 18;

// The dict of a mapping's items, kAbsent if it is empty; nullopt if the node is not a mapping.
std::optional<NodeId> mapping_of(const PickleTree& tree, NodeId node) {
  if (tree.kind(node) == NodeKind::kDict) return node;
  if (tree.kind(node) != NodeKind::kReduce && tree.kind(node) != NodeKind::kObject)
    return std::nullopt;
  NodeId contents = tree.contents(node);
  if (tree.kind(contents) == NodeKind::kDict) return contents;
  bool is_empty = contents == NodeId::kAbsent &&
                  tree.is_global(tree.callable(node), "collections", "OrderedDict") &&
                  tree.items(tree.arguments(node)).empty();
  return is_empty ? std::optional(NodeId::kAbsent) : std::nullopt;
}

NodeId list_of(const PickleTree& tree, NodeId node) {
  if (tree.kind(node) == NodeKind::kList) return node;
  NodeId contents = tree.contents(node);
  return tree.kind(contents) == NodeKind::kList ? contents : NodeId::kAbsent;
}

// Error that names the object found instead of a dict.
Error not_a_state_dict_error(const PickleTree& tree, const std::string& file) {
  const NodeId root = tree.root();
  Error error{ErrorKind::kUnsupported, "holds no dict, so no state dict", {file, tree.at(root)}};
  if (tree.kind(root) == NodeKind::kTuple)
    error.message += ", but a tuple";
  else if (list_of(tree, root) != NodeId::kAbsent)
    error.message += ", but a list";
  else if (tree.kind(root) == NodeKind::kReduce || tree.kind(root) == NodeKind::kObject)
    error.message += ", but an object of " + class_of_pickled(tree, root);
  return error;
}

bool is_word(const PickleTree& tree, NodeId key) {
  return tree.kind(key) == NodeKind::kBool || tree.kind(key) == NodeKind::kNone;
}

bool is_ordered_dict(const PickleTree& tree, NodeId node) {
  return tree.kind(node) == NodeKind::kReduce &&
         tree.is_global(tree.callable(node), "collections", "OrderedDict");
}

// Opcodes of one attribute: plain data, or an OrderedDict of plain data, such as _metadata.
std::optional<std::string> attribute_pickle(const PickleTree& tree, NodeId value,
                                            std::size_t budget) {
  if (!is_ordered_dict(tree, value) || tree.state(value) != NodeId::kAbsent)
    return plain_pickle(tree, value, budget);
  const auto mapping = mapping_of(tree, value);
  if (!mapping) return std::nullopt;
  std::string out = "ccollections\nOrderedDict\n)R(";
  for (NodeId item : tree.items(*mapping)) {
    auto plain = plain_pickle(tree, item, budget - std::min(out.size(), budget));
    if (!plain) return std::nullopt;
    out += *plain;
  }
  return out + "u";
}

// nullopt if it is not a dict, or contains more than data.
std::optional<std::string> attributes_pickle(const PickleTree& tree, NodeId state,
                                             std::size_t budget) {
  if (tree.kind(state) != NodeKind::kDict) return std::nullopt;
  std::string out = "}(";
  for (NodeId item : tree.items(state)) {
    auto opcodes = attribute_pickle(tree, item, budget - std::min(out.size(), budget));
    if (!opcodes) return std::nullopt;
    out += *opcodes;
  }
  return out.size() > budget ? std::nullopt : std::optional(out + "u");
}

class StateDictFlattener {
 public:
  // Limits on names: a shared node is visited once per path, a pickle of some hundred bytes can
  // form 2^64 paths, and one long key can be in all of them.
  StateDictFlattener(const PickleTree& tree, const std::string& file,
                     const std::set<std::string>& whole, IsTensorNode is_tensor = is_tensor_call)
      : tree_(tree),
        file_(file),
        whole_(whole),
        is_tensor_(is_tensor),
        visits_left_(4 * tree.node_count() + 64),
        text_left_(16 * tree.end() + (1 << 20)),
        plain_left_(text_left_) {}

  Result<std::vector<StateEntry>> run(StateForms* forms = nullptr) {
    forms_ = forms;
    auto root = mapping_of(tree_, tree_.root());
    if (root) note_mapping(tree_.root());
    SHW_CHECK(root ? visit_mapping(*root, 0) : visit_root_that_is_not_a_dict(tree_.root()));
    return std::move(entries_);
  }

 private:
  tl::unexpected<Error> entangled(NodeId node) const {
    return fail(ErrorKind::kUnsupported, "the pickled structure is too complex to read",
                {file_, tree_.at(node)});
  }

  // Handles a root that is a list, a tuple, a tensor, a module, or an object with tensors in
  // attributes.
  Status visit_root_that_is_not_a_dict(NodeId root) {
    if (is_tensor_(tree_, root)) return visit_named("tensor", root);
    if (is_pickled_module(tree_, root)) return visit_module(root);
    const bool is_tuple = tree_.kind(root) == NodeKind::kTuple;
    const NodeId list = is_tuple ? root : list_of(tree_, root);
    const NodeId attributes = tree_.attributes(root);
    if (list != NodeId::kAbsent) {
      std::size_t index = 0;
      for (NodeId item : tree_.items(list)) SHW_CHECK(visit_named(std::to_string(index++), item));
    } else if (tree_.kind(attributes) == NodeKind::kDict) {
      SHW_CHECK(visit_mapping(attributes, 0));
    }
    const bool has_tensor = std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
      return is_tensor_(tree_, entry.value);
    });
    if (!has_tensor) return tl::unexpected<Error>(not_a_state_dict_error(tree_, file_));
    return {};
  }

  Status visit_named(const std::string& name, NodeId node) {
    push_path(name, name);
    SHW_CHECK(visit(node, 1));
    leave();
    return {};
  }

  // Keys of a module's state_dict() contain dots, but each is a single part of a path.
  Status visit_module(NodeId module) {
    SHW_TRY(ModuleTensors held, module_tensors(tree_, module, file_));
    for (const auto& [name, tensor] : held.tensors) {
      if (visits_left_-- == 0) return entangled(tensor);
      push_path(name, name);
      SHW_CHECK(visit_tensor(tensor));
      entries_.back().module = module;
      leave();
    }
    return {};
  }

  // A tensor subclass is replaced by the tensors that it wraps.
  Status visit_tensor(NodeId node) {
    const TensorSubclass wrapping = tensor_subclass(tree_, node);
    if (wrapping.tensors.empty()) {
      note_tensor(node);
      return add(node);
    }
    for (const WrappedTensor& one : wrapping.tensors) SHW_CHECK(visit_part(one, wrapping.call));
    for (const WrappedTensor& one : wrapping.values) SHW_CHECK(visit_part(one, NodeId::kAbsent));
    return {};
  }

  Status visit_part(const WrappedTensor& part, NodeId subclass) {
    if (visits_left_-- == 0) return entangled(part.node);
    push_path(part.name, part.name);
    if (subclass != NodeId::kAbsent) note_tensor(part.node);
    SHW_CHECK(add(part.node));
    entries_.back().subclass = subclass;
    leave();
    return {};
  }

  // True if neither the list nor a list inside it contains a tensor or a mapping.
  Result<bool> is_leaf(NodeId list, int depth) {
    if (auto known = leaf_.find(list); known != leaf_.end()) return known->second;
    if (depth > kDeepestState) return entangled(list);
    leaf_[list] = true;  // for a list that contains itself
    bool leaf = true;
    for (NodeId item : tree_.items(list)) {
      if (!leaf) break;
      if (visits_left_-- == 0) return entangled(item);
      if (NodeId inner = list_of(tree_, item); inner != NodeId::kAbsent) {
        SHW_TRY(leaf, is_leaf(inner, depth + 1));
      } else {
        leaf =
            !is_tensor_(tree_, item) && !mapping_of(tree_, item) && !is_pickled_module(tree_, item);
      }
    }
    return leaf_[list] = leaf;
  }

  void note_mapping(NodeId node) {
    if (forms_ == nullptr || !is_ordered_dict(tree_, node)) return;
    forms_->ordered.insert(distinct_path_);
    note_attributes(tree_.state(node));
  }

  void note_tensor(NodeId node) {
    if (forms_ == nullptr) return;
    if (is_parameter_call(tree_, node)) forms_->parameters.insert(distinct_path_);
    note_attributes(tensor_attributes(tree_, node));
  }

  void note_attributes(NodeId state) {
    const bool is_empty = tree_.kind(state) == NodeKind::kDict && tree_.items(state).empty();
    if (state == NodeId::kAbsent || tree_.kind(state) == NodeKind::kNone || is_empty) return;
    name_attributes(state);
    if (auto opcodes = attributes_pickle(tree_, state, plain_left_)) {
      plain_left_ -= opcodes->size();
      forms_->attributes.emplace(distinct_path_, std::move(*opcodes));
    } else {
      forms_->not_plain.push_back(name_of_path() + " (" + non_plain_value_reason(tree_, state) +
                                  ")");
    }
  }

  // Adds a name for data of the object at the current path that only this format can store.
  void add_format_only_name(const std::string& what) {
    const std::string whose = " of " + (path_.empty() ? "the state dict" : name_of_path());
    if (what.size() + whose.size() > plain_left_) return;
    plain_left_ -= what.size() + whose.size();
    forms_->own_names.push_back(what + whose);
  }

  void name_attributes(NodeId state) {
    if (tree_.kind(state) != NodeKind::kDict) return add_format_only_name("attributes");
    const auto items = tree_.items(state);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
      add_format_only_name(key_text(tree_, items[i]).value_or("an attribute"));
  }

  // Integer keys, of which an optimizer has thousands, share one name; True, False and None have
  // one each.
  void record_key_forms(NodeId mapping) {
    if (forms_ == nullptr) return;
    bool has_number = false;
    std::set<std::string> words;
    const auto items = tree_.items(mapping);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      has_number = has_number || tree_.kind(items[i]) == NodeKind::kInt;
      if (is_word(tree_, items[i])) words.insert(*key_text(tree_, items[i]));
      if (auto text = root_key_text(tree_, items[i]);
          text && is_float_or_tuple_key(tree_, items[i]))
        words.insert(std::move(*text));
    }
    if (has_number) add_format_only_name("type of the whole-number keys");
    for (const std::string& word : words) add_format_only_name("type of key " + word);
  }

  void note_key(NodeId key) {
    if (forms_ == nullptr) return;
    if (tree_.kind(key) == NodeKind::kInt) forms_->numbers.insert(distinct_path_);
    if (is_word(tree_, key)) forms_->words.insert(distinct_path_);
    if (!is_float_or_tuple_key(tree_, key)) return;
    if (auto opcodes = plain_pickle(tree_, key, plain_left_)) {
      plain_left_ -= opcodes->size();
      forms_->keys.emplace(distinct_path_, std::move(*opcodes));
    }
  }

  Status visit(NodeId node, int depth) {
    if (visits_left_-- == 0 || depth > kDeepestState) return entangled(node);
    if (!whole_.empty() && whole_.contains(name_of_path())) return add(node);
    if (is_tensor_(tree_, node)) return visit_tensor(node);
    if (auto mapping = mapping_of(tree_, node)) {
      if (!path_.empty() && !all_keys_have_text(*mapping, depth)) return add(node);
      note_mapping(node);
      if (tree_.items(*mapping).empty()) return add(node);
      return visit_mapping(*mapping, depth);
    }
    if (is_pickled_module(tree_, node)) return visit_module(node);
    NodeId list = list_of(tree_, node);
    if (list == NodeId::kAbsent) return add(node);
    SHW_TRY(bool leaf, is_leaf(list, depth));
    if (leaf) return add(node);
    std::int64_t index = 0;
    for (NodeId item : tree_.items(list)) {
      push_path(index, index);
      ++index;
      SHW_CHECK(visit(item, depth + 1));
      leave();
    }
    return {};
  }

  void push_path(PathPart part, PathPart told) {
    path_.push_back(std::move(part));
    distinct_path_.push_back(std::move(told));
  }
  void leave() {
    path_.pop_back();
    distinct_path_.pop_back();
  }

  // False for a mapping that is one entry: with a class as key, which has no name (callbacks of
  // Lightning before 1.5), or, as in torch.distributed.checkpoint, with float or tuple keys and no
  // tensors inside. The root mapping is always flattened.
  bool all_keys_have_text(NodeId mapping, int depth) {
    auto [known, is_new] = have_text_.try_emplace(mapping, true);
    if (!is_new) return known->second;
    bool all = true, has_rare = false;
    auto items = tree_.items(mapping);
    for (std::size_t i = 0; all && i + 1 < items.size(); i += 2) {
      has_rare = has_rare || is_float_or_tuple_key(tree_, items[i]);
      all = root_key_text(tree_, items[i]).has_value();
    }
    return have_text_[mapping] = all && (!has_rare || contains_tensor(mapping, depth));
  }

  // True if a mapping contains a tensor, directly or in mappings and lists inside it.
  bool contains_tensor(NodeId node, int depth) {
    if (depth > kDeepestState || visits_left_ == 0) return false;
    --visits_left_;
    if (is_tensor_(tree_, node)) return true;
    const auto mapping = mapping_of(tree_, node);
    const auto items = tree_.items(mapping ? *mapping : list_of(tree_, node));
    for (std::size_t i = mapping ? 1 : 0; i < items.size(); i += mapping ? 2 : 1) {
      if (contains_tensor(items[i], depth + 1)) return true;
    }
    return false;
  }

  Result<std::vector<MappingKey>> keys_of(std::span<const NodeId> items) {
    std::vector<MappingKey> keys;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      auto text = root_key_text(tree_, items[i]);
      if (!text)
        return fail(ErrorKind::kUnsupported, "a key of the state dict is neither text nor a number",
                    {file_, tree_.at(items[i])});
      if (text->size() > text_left_) return entangled(items[i]);
      text_left_ -= text->size();
      keys.push_back({std::move(*text), tree_.kind(items[i])});
    }
    flag_repeated_keys(keys);
    return keys;
  }

  Status visit_mapping(NodeId mapping, int depth) {
    record_key_forms(mapping);
    const auto items = tree_.items(mapping);
    SHW_TRY(const std::vector<MappingKey> keys, keys_of(items));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const MappingKey& key = keys[i];
      if (key.is_superseded) continue;
      const bool is_told = key.is_ambiguous && tree_.text(items[2 * i]) == std::nullopt;
      distinct_part_count_ += is_told ? 1 : 0;
      push_path(key.text, is_told ? std::string("\0", 1) + key.text : key.text);
      note_key(items[2 * i]);
      SHW_CHECK(visit(items[2 * i + 1], depth + 1));
      leave();
      distinct_part_count_ -= is_told ? 1 : 0;
    }
    return {};
  }

  // Names are limited by the memory left for all names.
  std::string name_of_path() const {
    std::string fqn;
    for (const PathPart& part : path_) {
      if (&part != &path_.front()) fqn += '.';
      const auto* text = std::get_if<std::string>(&part);
      fqn += text != nullptr ? *text : std::to_string(std::get<std::int64_t>(part));
      if (fqn.size() > text_left_) break;
    }
    return fqn;
  }

  Status add(NodeId value) {
    if (!is_tensor_(tree_, value) && ++others_ > kMaxOthers)
      return fail(ErrorKind::kUnsupported,
                  fmt::format("has more than {} entries that are not tensors", kMaxOthers),
                  {file_, tree_.at(value)});
    std::string fqn = name_of_path();
    if (fqn.size() > text_left_) return entangled(value);
    text_left_ -= fqn.size();
    if (!names_.insert(fqn).second)
      return fail(ErrorKind::kUnsupported,
                  "two entries of the state dict get the same flattened name",
                  {file_, tree_.at(value), fqn});
    if (forms_ != nullptr && distinct_part_count_ != 0) forms_->apart.emplace(fqn, distinct_path_);
    entries_.push_back({std::move(fqn), path_, value});
    return {};
  }

  std::size_t others_ = 0;
  const PickleTree& tree_;
  const std::string& file_;
  const std::set<std::string>& whole_;
  IsTensorNode is_tensor_;
  std::uint64_t visits_left_, text_left_, plain_left_;
  std::unordered_map<NodeId, bool> have_text_;  // by mapping: all its keys have text
  std::vector<PathPart> path_, distinct_path_;
  std::size_t distinct_part_count_ =
      0;  // number of parts in which distinct_path_ differs from path_
  std::unordered_map<NodeId, bool> leaf_;
  std::unordered_set<std::string> names_;
  std::vector<StateEntry> entries_;
  StateForms* forms_ = nullptr;  // null if not requested
};

}  // namespace

Result<std::vector<StateEntry>> flatten_state_dict(const PickleTree& tree, const std::string& file,
                                                   const std::set<std::string>& whole,
                                                   IsTensorNode is_tensor) {
  return StateDictFlattener(tree, file, whole, is_tensor).run();
}

Result<StateForms> state_forms(const PickleTree& tree, const std::string& file,
                               const std::set<std::string>& whole) {
  StateForms forms;
  SHW_CHECK(StateDictFlattener(tree, file, whole).run(&forms));
  return forms;
}

bool is_state_mapping(const PickleTree& tree) {
  return mapping_of(tree, tree.root()).has_value();
}

bool is_empty_mapping(const PickleTree& tree, NodeId value) {
  auto mapping = mapping_of(tree, value);
  return mapping && tree.items(*mapping).empty();
}

}  // namespace shw

#include "core/formats/torch_file/state_dict_pickle.h"

#include <algorithm>
#include <unordered_map>

#include "core/formats/common/carried_pickle.h"
#include "core/formats/common/torch_archive.h"
#include "core/formats/pickle/pickle_writer.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// Limit against hostile input; reading a file stops at a lower depth.
constexpr std::size_t kDeepestPath = 100;
// Missing list indices are written as None; more than this many are not plausible.
constexpr std::int64_t kMaxMissing = 1 << 20;

struct StateNode {
  enum class Kind : std::uint8_t { kTensor, kObject, kDict, kList };
  Kind kind = Kind::kDict;
  std::uint32_t index = 0;  // in Outputs
  bool has_number_key = false;
  bool has_word_key = false;
  bool is_ordered = false;                                            // for dicts
  bool is_parameter = false;                                          // for tensors
  const std::string* rare_key = nullptr;                              // opcodes of its key
  const std::string* attributes = nullptr;                            // opcodes of attributes
  std::vector<std::pair<const PathPart*, std::uint32_t>> items = {};  // children, in order
  std::unordered_map<std::string, std::uint32_t> by_key = {};
};

std::string key_of(const PathPart& part) {
  const auto* text = std::get_if<std::string>(&part);
  return text != nullptr ? "t" + *text : "i" + std::to_string(std::get<std::int64_t>(part));
}

class StateTree {
 public:
  explicit StateTree(const StateForms& forms) : forms_(forms), nodes_(1) {
    nodes_.front().is_ordered = forms.ordered.contains({});
    nodes_.front().attributes = opcodes_of(forms_.attributes, {}, 0);
  }
  const StateNode& node(std::uint32_t i) const { return nodes_[i]; }

  // `path` must outlive the node.
  Status put(const std::vector<PathPart>& path, const std::string& fqn, StateNode leaf) {
    auto contradicts = [&](const char* how) {
      return fail(ErrorKind::kUnsupported, how, Place{.file = {}, .tensor = fqn});
    };
    if (path.size() > kDeepestPath) return contradicts("is too deep in the state dict");
    auto told = forms_.apart.find(fqn);
    const auto& form =
        told != forms_.apart.end() && told->second.size() == path.size() ? told->second : path;
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < path.size(); ++i) {
      const auto* index = std::get_if<std::int64_t>(&path[i]);
      if (nodes_[at].kind != StateNode::Kind::kDict && nodes_[at].kind != StateNode::Kind::kList)
        return contradicts("is nested under an entry that is a value");
      bool is_list = nodes_[at].kind == StateNode::Kind::kList;
      if (is_list && (index == nullptr || *index < 0))
        return contradicts("has a name where the entries next to it have numbers");
      auto [found, added] =
          nodes_[at].by_key.try_emplace(key_of(form[i]), static_cast<std::uint32_t>(nodes_.size()));
      std::uint32_t next = found->second;
      bool is_last = i + 1 == path.size();
      if (added) {
        nodes_[at].items.emplace_back(&path[i], next);
        bool holds_list = !is_last && std::holds_alternative<std::int64_t>(path[i + 1]);
        StateNode inner{.kind = holds_list ? StateNode::Kind::kList : StateNode::Kind::kDict};
        nodes_.push_back(std::move(is_last ? leaf : inner));
        nodes_.back().has_number_key = is_one_of(forms_.numbers, form, i + 1);
        nodes_.back().has_word_key = is_one_of(forms_.words, form, i + 1);
        nodes_.back().is_ordered = is_one_of(forms_.ordered, form, i + 1);
        nodes_.back().is_parameter = is_one_of(forms_.parameters, form, i + 1);
        nodes_.back().rare_key = opcodes_of(forms_.keys, form, i + 1);
        nodes_.back().attributes = opcodes_of(forms_.attributes, form, i + 1);
        if (is_last) return {};
      } else if (is_last) {
        return contradicts("has the same path as another entry of the state dict");
      }
      at = next;
    }
    return {};
  }

  // Sorts items of lists by index.
  Status sort_lists() {
    for (StateNode& node : nodes_) {
      if (node.kind != StateNode::Kind::kList) continue;
      auto index_of = [](const auto& item) { return std::get<std::int64_t>(*item.first); };
      std::sort(node.items.begin(), node.items.end(),
                [&](const auto& a, const auto& b) { return index_of(a) < index_of(b); });
      auto count = static_cast<std::int64_t>(node.items.size());
      if (index_of(node.items.back()) - count >= kMaxMissing)
        return fail(ErrorKind::kUnsupported, "a list of the state dict has too many gaps");
    }
    return {};
  }

 private:
  // True if the first parts of a path are in `paths`.
  static bool is_one_of(const StateForms::Paths& paths, const std::vector<PathPart>& path,
                        std::size_t parts) {
    if (paths.empty()) return false;
    auto end = path.begin() + static_cast<std::ptrdiff_t>(parts);
    return paths.contains(std::vector<PathPart>(path.begin(), end));
  }

  static const std::string* opcodes_of(const std::map<std::vector<PathPart>, std::string>& opcodes,
                                       const std::vector<PathPart>& path, std::size_t parts) {
    if (opcodes.empty()) return nullptr;
    auto end = path.begin() + static_cast<std::ptrdiff_t>(parts);
    auto found = opcodes.find(std::vector<PathPart>(path.begin(), end));
    return found == opcodes.end() ? nullptr : &found->second;
  }

  const StateForms& forms_;
  std::vector<StateNode> nodes_;
};

class StatePickle {
 public:
  StatePickle(const Outputs& outputs, const std::vector<std::string>& plain, const StateTree& tree)
      : outputs_(outputs), plain_(plain), tree_(tree), out_(sink_) {
    for (std::size_t i = 0; i < outputs.tensors.size(); ++i)
      storage_keys_.push_back(std::to_string(i));
    auto storages = static_cast<std::uint32_t>(outputs.tensors.size());
    for (const OutputObject& object : outputs.objects) {
      first_storage_.push_back(storages);
      storages += static_cast<std::uint32_t>(object.storages.size());
    }
  }

  Result<Bytes> run() {
    out_.raw("\x80\x02");
    SHW_CHECK(value(tree_.node(0)));
    out_.raw(".");
    SHW_CHECK(out_.flush());
    return std::move(sink_.parts.front().bytes);
  }

 private:
  Status value(const StateNode& node) {
    switch (node.kind) {
      case StateNode::Kind::kTensor:
        tensor(node);
        return out_.flush_if_full();
      case StateNode::Kind::kObject:
        // This object is an empty mapping.
        if (node.is_ordered) return dict(node);
        return object(node.index);
      case StateNode::Kind::kDict:
        return dict(node);
      case StateNode::Kind::kList:
        return list(node);
    }
    return {};
  }

  Status object(std::uint32_t index) {
    SHW_TRY(RenumberedOpcodes placed,
            renumber_memo_entries(plain_[index], out_.next_memo(), first_storage_[index]));
    out_.raw(placed.opcodes);
    out_.skip_memo_numbers(placed.memo);
    return out_.flush_if_full();
  }

  Status dict(const StateNode& node) {
    if (node.is_ordered) {
      out_.global("collections", "OrderedDict");
      out_.raw(")R(");
    } else {
      out_.raw("}(");
    }
    std::uint64_t count = 0;
    for (const auto& [part, child] : node.items) {
      out_.batch(count++, 'u');
      key(*part, tree_.node(child));
      SHW_CHECK(value(tree_.node(child)));
    }
    out_.raw("u");
    // Plain dicts have no attributes.
    if (node.is_ordered && node.attributes != nullptr) out_.raw(*node.attributes + "b");
    return {};
  }

  // Writes a key as the number or word from which its text was made.
  void key(const PathPart& part, const StateNode& of) {
    const auto* text = std::get_if<std::string>(&part);
    if (text == nullptr)
      out_.integer(std::get<std::int64_t>(part));
    else if (of.rare_key != nullptr)
      out_.raw(*of.rare_key);
    else if (of.has_number_key)
      out_.integer(std::stoll(*text));
    else if (of.has_word_key)
      out_.raw(*text == "None" ? "N" : *text == "True" ? "\x88" : "\x89");
    else
      out_.text(*text);
  }

  Status list(const StateNode& node) {
    out_.raw("](");
    std::uint64_t count = 0;
    for (const auto& [part, child] : node.items) {
      auto index = static_cast<std::uint64_t>(std::get<std::int64_t>(*part));
      while (count < index) {
        out_.batch(count++, 'e');
        out_.raw("N");
      }
      out_.batch(count++, 'e');
      SHW_CHECK(value(tree_.node(child)));
    }
    out_.raw("e");
    return {};
  }

  void tensor(const StateNode& node) {
    const OutputTensor& made = outputs_.tensors[node.index];
    const bool requires_grad = made.requires_grad && can_have_grad(made.dtype);
    // torch.load cannot create a tensor that requires grad through _rebuild_tensor_v3 (2.6 to
    // 2.15).
    const bool is_wrapped = requires_grad && !is_legacy(node.index);
    if (node.is_parameter || is_wrapped) return parameter(node, made.requires_grad);
    if (node.attributes == nullptr) return tensor(node.index, requires_grad);
    out_.global("torch._tensor", "_rebuild_from_type_v2");
    out_.raw("(");
    tensor_function(node.index);
    out_.global("torch", "Tensor");
    tensor_arguments(node.index, requires_grad);
    out_.raw(*node.attributes);
    out_.raw("tR");
  }

  void parameter(const StateNode& node, bool requires_grad) {
    const bool has_state = node.attributes != nullptr;
    out_.global("torch._utils", has_state ? "_rebuild_parameter_with_state" : "_rebuild_parameter");
    out_.raw("(");
    tensor(node.index, false);
    out_.raw(requires_grad ? "\x88" : "\x89");
    out_.global("collections", "OrderedDict");
    out_.raw(")R");
    if (has_state) out_.raw(*node.attributes);
    out_.raw("tR");
  }

  void tensor(std::uint32_t index, bool requires_grad) {
    tensor_function(index);
    tensor_arguments(index, requires_grad);
    out_.raw("R");
  }

  bool is_legacy(std::uint32_t index) const {
    return !info(outputs_.tensors[index].dtype).storage_class.empty();
  }

  void tensor_function(std::uint32_t index) {
    out_.global("torch._utils", is_legacy(index) ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  }

  void tensor_arguments(std::uint32_t index, bool requires_grad) {
    const OutputTensor& tensor = outputs_.tensors[index];
    const DtypeInfo& type = info(tensor.dtype);
    const bool legacy = is_legacy(index);
    std::int64_t elements = volume(tensor.shape).value_or(0);
    out_.raw("((");
    out_.text("storage");
    if (legacy) {
      out_.global("torch", type.storage_class);
    } else {
      out_.global("torch.storage", "UntypedStorage");
    }
    out_.text(storage_keys_[index]);
    out_.text("cpu");
    out_.integer(legacy ? elements : elements * static_cast<std::int64_t>(type.size));
    out_.raw("tQ");
    out_.integer(0);
    out_.tuple(tensor.shape);
    out_.tuple(row_major_strides(tensor.shape));
    out_.raw(requires_grad && can_have_grad(tensor.dtype) ? "\x88" : "\x89");
    out_.global("collections", "OrderedDict");
    out_.raw(")R");
    if (!legacy) out_.global("torch", type.name);
    out_.raw("t");
  }

  // True for dtypes for which Python allows requires_grad.
  static bool can_have_grad(Dtype dtype) {
    return name(dtype).starts_with("float") || dtype == Dtype::kBfloat16 ||
           name(dtype).starts_with("complex");
  }

  const Outputs& outputs_;
  const std::vector<std::string>& plain_;
  const StateTree& tree_;
  std::vector<std::string> storage_keys_;
  std::vector<std::uint32_t> first_storage_;  // index of each object's first storage
  HoleSkippingSink sink_;
  PickleWriter out_;
};

}  // namespace

Result<Bytes> pickle_state_dict(const Outputs& outputs, const std::vector<std::string>& plain,
                                const StateForms& forms) {
  StateTree tree(forms);
  std::vector<std::vector<PathPart>> own_paths(outputs.tensors.size() + outputs.objects.size());
  std::size_t entry = 0;
  auto put = [&](const auto& output, StateNode leaf) {
    auto& own = own_paths[entry++];
    if (output.path.empty()) own.emplace_back(output.fqn);
    return tree.put(output.path.empty() ? own : output.path, output.fqn, std::move(leaf));
  };
  for (std::uint32_t i = 0; i < outputs.tensors.size(); ++i)
    SHW_CHECK(put(outputs.tensors[i], {.kind = StateNode::Kind::kTensor, .index = i}));
  for (std::uint32_t i = 0; i < outputs.objects.size(); ++i)
    SHW_CHECK(put(outputs.objects[i], {.kind = StateNode::Kind::kObject, .index = i}));
  SHW_CHECK(tree.sort_lists());
  return StatePickle(outputs, plain, tree).run();
}

}  // namespace shw

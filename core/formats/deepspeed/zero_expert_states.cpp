#include "core/formats/deepspeed/zero_expert_states.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/natural_order.h"
#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/how_read_finding.h"
#include "core/formats/single_file_directory.h"

namespace shw {
namespace {

constexpr std::size_t kMaxParameters = 1 << 20;
constexpr std::size_t kMaxExpertRanks = 1 << 14;
constexpr std::string_view kOptimizer = "optimizer.";

struct NamedShape {
  std::string name;
  Extents shape;
};

// One expert-parallel rank's file.
struct ExpertStates {
  std::uint32_t rank = 0;
  std::string path;
  std::vector<NamedZeroTensor> tensors = {};  // "state.0.exp_avg", "fp32_groups.0.1"
  std::vector<NamedZeroValue> values = {};
  // Numbers of parameters, in the order of the groups.
  std::vector<std::int64_t> dense = {}, of_experts = {};
  std::vector<std::vector<std::int64_t>> groups = {};
  std::size_t expert_ranks = 0;  // N of the largest group "ep_size_N"
  bool is_known = true;          // false: several groups, whose order no file records
};

// 2 of "ep_size_2"; 0 for other names.
std::size_t expert_ranks_of(std::string_view group) {
  constexpr std::string_view kBegin = "ep_size_";
  if (!group.starts_with(kBegin)) return 0;
  group.remove_prefix(kBegin.size());
  return std::min<std::size_t>(consume_number(group).value_or(0), kMaxExpertRanks);
}

ExpertStates read_expert_states(const ZeroFile& file, std::uint32_t rank,
                                ZeroPickleFindings& notes) {
  ExpertStates out{.rank = rank, .path = file.path()};
  const NodeId optimizer = file.find(file.root(), "optimizer");
  const NodeId inner = file.find(optimizer, "optimizer_state_dict");
  const NodeId base = inner == NodeId::kAbsent ? optimizer : inner;
  std::size_t count = 0, dense_groups = 0, expert_groups = 0;
  for (NodeId group : file.list(file.find(base, "param_groups"))) {
    const bool is_of_experts = file.integer(file.find(group, "moe")).value_or(0) != 0;
    if (++(is_of_experts ? expert_groups : dense_groups) > 1) out.is_known = false;
    if (is_of_experts)
      out.expert_ranks =
          std::max(out.expert_ranks, expert_ranks_of(file.text(file.find(group, "name"))));
    std::vector<std::int64_t> numbers;
    for (NodeId item : file.list(file.find(group, "params"))) {
      numbers.push_back(file.integer(item).value_or(-1));
      if (++count > kMaxParameters) {
        out.is_known = false;
        return out;
      }
    }
    auto& list = is_of_experts ? out.of_experts : out.dense;
    list.insert(list.end(), numbers.begin(), numbers.end());
    out.groups.push_back(std::move(numbers));
  }
  // At other stages the file has no states: the optimizer is None.
  if (!file.pairs(optimizer).empty())
    file.read_all_tensors("", optimizer, out.tensors, out.values, notes);
  return out;
}

// Parameters of the module without its buffers.
std::vector<NamedShape> dense_parameters(const ZeroModel& model) {
  const std::set<std::string_view> buffers(model.buffers.begin(), model.buffers.end());
  std::vector<NamedShape> out;
  for (const NamedZeroTensor& one : model.module) {
    if (!buffers.contains(one.fqn)) out.push_back({one.fqn, one.tensor.sizes});
  }
  return out;
}

// The experts of the expert-parallel rank, layer by layer; empty if `ranks` do not share a layer's
// experts evenly. "layer_0_expert_2_mp_rank_00_model_states.pt" is of layer 0.
std::vector<NamedShape> expert_parameters(const std::vector<ZeroExpertFile>& experts,
                                          std::uint32_t rank, std::size_t ranks) {
  auto layer_of = [](const ZeroExpertFile& file) {
    const std::string_view path = file.path;
    return path.substr(0, path.find("_expert_"));
  };
  std::vector<NamedShape> out;
  for (std::size_t begin = 0; begin < experts.size();) {
    std::size_t end = begin;
    while (end < experts.size() && layer_of(experts[end]) == layer_of(experts[begin])) ++end;
    if ((end - begin) % ranks != 0) return {};
    const std::size_t each = (end - begin) / ranks, first = begin + rank * each;
    for (std::size_t i = first; i < first + each; ++i) {
      for (const NamedZeroTensor& one : experts[i].tensors)
        out.push_back({one.fqn, one.tensor.sizes});
    }
    begin = end;
  }
  return out;
}

// Parameters by their number in the optimizer's state. Empty if the model has another number of
// dense or expert parameters than the state.
std::map<std::int64_t, const NamedShape*> parameters_by_number(
    const ExpertStates& states, const std::vector<NamedShape>& dense,
    const std::vector<NamedShape>& experts) {
  std::map<std::int64_t, const NamedShape*> out;
  if (!states.is_known || states.dense.size() != dense.size() ||
      states.of_experts.size() != experts.size())
    return out;
  for (std::size_t i = 0; i < dense.size(); ++i) out.emplace(states.dense[i], &dense[i]);
  for (std::size_t i = 0; i < experts.size(); ++i) out.emplace(states.of_experts[i], &experts[i]);
  if (out.size() != dense.size() + experts.size()) out.clear();
  return out;
}

// "0" and "exp_avg" of "state.0.exp_avg".
struct StateName {
  std::int64_t number = 0;
  std::string kind;
};
std::optional<StateName> state_name(const std::string& fqn, const ExpertStates& states) {
  std::string_view rest = fqn;
  auto consume = [&](std::string_view word) {
    const bool is = rest.starts_with(word);
    if (is) rest.remove_prefix(word.size());
    return is;
  };
  auto number = [&]() -> std::optional<std::size_t> {
    const auto read = consume_number(rest);
    return read ? std::optional<std::size_t>(*read) : std::nullopt;
  };
  if (consume("fp32_groups.")) {
    const auto group = number();
    const auto item = group && consume(".") ? number() : std::nullopt;
    if (!item || !rest.empty() || *group >= states.groups.size() ||
        *item >= states.groups[*group].size())
      return std::nullopt;
    return StateName{states.groups[*group][*item], "fp32"};
  }
  (void)consume("optimizer_state_dict.");
  if (!consume("state.")) return std::nullopt;
  const auto which = number();
  if (!which || !consume(".")) return std::nullopt;
  return StateName{static_cast<std::int64_t>(*which), std::string(rest)};
}

// The states' names; empty if a state does not have the shape of its parameter.
std::vector<std::string> state_names(const ExpertStates& states,
                                     const std::map<std::int64_t, const NamedShape*>& parameters) {
  std::vector<std::string> names;
  for (const NamedZeroTensor& one : states.tensors) {
    const auto name = state_name(one.fqn, states);
    const auto found = name ? parameters.find(name->number) : parameters.end();
    const bool is_number = one.tensor.sizes.empty();  // "step"
    if (found == parameters.end() || (!is_number && !same(one.tensor.sizes, found->second->shape)))
      return {};
    names.push_back("optimizer.state." + found->second->name + "." + name->kind);
  }
  return names;
}

class ExpertStatesWriter {
 public:
  ExpertStatesWriter(CheckpointBuilder& builder, ZeroStorages& storages, const std::string& prefix)
      : builder_(builder), storages_(storages), prefix_(prefix) {}

  void add(ExpertStates states, const std::vector<std::string>& names) {
    const std::string own = fmt::format("{}expp_rank_{}.", prefix_, states.rank);
    for (std::size_t i = 0; i < states.tensors.size(); ++i) {
      const NamedZeroTensor& one = states.tensors[i];
      if (names.empty())
        storages_.add_whole(own + std::string(kOptimizer) + one.fqn, one.tensor);
      else
        add_named(names[i], one.tensor, own);
    }
    for (NamedZeroValue& value : states.values) {
      value.fqn = own + std::string(kOptimizer) + value.fqn;
      storages_.add_value(std::move(value));
    }
  }

 private:
  // The states of parameters that are no experts' are copies.
  void add_named(const std::string& name, const ZeroTensor& tensor, const std::string& own) {
    const std::string fqn = prefix_ + name;
    const auto known = added_.find(fqn);
    if (known == added_.end()) {
      const ChunkId chunk{builder_.chunk_count()};
      if (storages_.add_whole(fqn, tensor)) added_.emplace(fqn, std::pair{chunk, tensor});
      return;
    }
    const auto& [chunk, first] = known->second;
    const bool is_alike = first.dtype == tensor.dtype && first.sizes == tensor.sizes &&
                          first.strides == tensor.strides && first.element == tensor.element;
    if (is_alike)
      builder_.add_replica(
          {chunk, storages_.storage(tensor.place, tensor.big_endian), std::nullopt});
    else
      storages_.add_whole(own + name, tensor);
  }

  CheckpointBuilder& builder_;
  ZeroStorages& storages_;
  const std::string& prefix_;
  std::map<std::string, std::pair<ChunkId, ZeroTensor>> added_;
};

Finding states_named_by_number_finding(const std::vector<std::string>& paths) {
  Finding finding = how_read_finding(
      paths.front(),
      fmt::format("The optimizer states in {} are stored by parameter number: their shapes do not "
                  "match the module's parameter order, so their names are not known.",
                  short_list_text(paths)));
  finding.subjects = paths;
  return finding;
}

Finding states_named_by_order_finding(const std::vector<std::string>& paths) {
  Finding finding = how_read_finding(
      paths.front(),
      fmt::format("The optimizer states in {} were named by the module's parameter order. No file "
                  "records these names: only the shapes were compared.",
                  short_list_text(paths)));
  finding.subjects = paths;
  return finding;
}

// Adds missing files of expert-parallel ranks below `count`.
void add_missing_expert_ranks(CheckpointBuilder& builder,
                              const std::map<std::uint32_t, std::string>& files,
                              std::size_t count) {
  count = std::max(count,
                   std::min<std::size_t>(std::size_t{files.rbegin()->first} + 1, kMaxExpertRanks));
  const std::string& path = files.begin()->second;
  const std::string end = path.substr(path.find("_mp_rank_"));
  for (std::uint32_t rank = 0; rank < count; ++rank)
    if (!files.contains(rank)) builder.file(fmt::format("expp_rank_{}{}", rank, end));
}

}  // namespace

void add_expert_states(CheckpointBuilder& builder, ZeroStorages& storages,
                       const Directory& directory, const ZeroFiles& files,
                       const std::optional<ZeroModel>& model, std::vector<ZeroExpertFile> experts,
                       const std::string& prefix, ZeroPickleFindings& notes) {
  if (files.expert_optimizers.empty()) return;
  std::ranges::sort(experts, [](const ZeroExpertFile& a, const ZeroExpertFile& b) {
    return natural_less(a.path, b.path);
  });
  const std::vector<NamedShape> dense =
      model ? dense_parameters(*model) : std::vector<NamedShape>{};
  const std::size_t ranks = files.expert_optimizers.size();
  const bool has_all = files.expert_optimizers.rbegin()->first == ranks - 1;
  ExpertStatesWriter writer(builder, storages, prefix);
  std::vector<std::string> by_number, by_order;
  std::size_t needed = 0;
  for (const auto& [rank, path] : files.expert_optimizers) {
    auto file = ZeroFile::open(builder, directory, path, notes);
    if (!file) {
      builder.file(path);
      notes.findings.push_back(bad_record_finding(
          path, "The file " + path + " cannot be read: " + file.error().message + ".",
          file.error().place.offset));
      continue;
    }
    ExpertStates states = read_expert_states(*file, rank, notes);
    const std::vector<NamedShape> own =
        has_all ? expert_parameters(experts, rank, ranks) : std::vector<NamedShape>{};
    const auto names = state_names(states, parameters_by_number(states, dense, own));
    if (!states.tensors.empty()) (names.empty() ? by_number : by_order).push_back(path);
    needed = std::max(needed, states.expert_ranks);
    writer.add(std::move(states), names);
  }
  // Of several model-parallel ranks each may have the experts of some expert-parallel ranks.
  if (prefix.empty() && !is_single_file_directory(directory))
    add_missing_expert_ranks(builder, files.expert_optimizers, needed);
  if (!by_order.empty()) notes.findings.push_back(states_named_by_order_finding(by_order));
  if (!by_number.empty()) notes.findings.push_back(states_named_by_number_finding(by_number));
}

}  // namespace shw

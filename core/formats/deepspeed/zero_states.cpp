#include "core/formats/deepspeed/zero_states.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/formats/common/bad_record.h"

namespace shw {
namespace {

constexpr std::size_t kMaxZeroGroups = 1 << 16;

tl::unexpected<Error> damaged_zero_error(const ZeroFile& file, NodeId at, const std::string& what) {
  return fail(ErrorKind::kDamaged, what, {file.path(), file.tree().at(at)});
}

template <std::size_t N>
bool is_zero_key(std::string_view key, const std::array<std::string_view, N>& keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

Result<std::vector<ZeroShape>> zero_shapes(const ZeroFile& file, NodeId mapping) {
  std::vector<ZeroShape> out;
  const auto pairs = file.pairs(mapping);
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    auto shape = file.shape(pairs[i + 1]);
    if (!shape)
      return damaged_zero_error(
          file, pairs[i + 1],
          "holds no shape of the parameter " + file.text(pairs[i]).substr(0, 200));
    out.push_back({file.text(pairs[i]), std::move(*shape)});
  }
  return out;
}

std::vector<std::int64_t> zero_numbers(const ZeroFile& file, NodeId node) {
  std::vector<std::int64_t> out;
  for (NodeId item : file.list(node)) out.push_back(file.integer(item).value_or(0));
  return out;
}

// Keys that this reader parses, or that contain only DeepSpeed's own bookkeeping.
constexpr auto kModelKeys = std::to_array<std::string_view>(
    {"module", "buffer_names", "param_shapes", "frozen_param_shapes", "shared_params",
     "frozen_param_fragments"});

void read_remaining_entries(const ZeroFile& file, ZeroModel& model, ZeroPickleFindings& notes) {
  const auto pairs = file.pairs(file.root());
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const std::string key = file.text(pairs[i]);
    if (is_zero_key(key, kModelKeys) || file.tree().kind(pairs[i + 1]) == NodeKind::kNone) continue;
    file.read_all_tensors(key, pairs[i + 1], model.more_tensors, model.values, notes);
  }
}

Status read_zero_shapes(const ZeroFile& file, ZeroModel& model) {
  const auto groups = file.list(file.find(file.root(), "param_shapes"));
  if (groups.size() > kMaxZeroGroups)
    return damaged_zero_error(file, file.root(), "has too many parameter groups");
  for (NodeId group : groups) {
    SHW_TRY(auto shapes, zero_shapes(file, group));
    model.groups.push_back(std::move(shapes));
  }
  SHW_TRY(model.frozen, zero_shapes(file, file.find(file.root(), "frozen_param_shapes")));
  return {};
}

// A group's states: flat tensors by kind, and values. A tensor is named "KIND" here.
void read_states(const ZeroFile& file, NodeId states, ZeroGroup& group, ZeroPickleFindings& notes) {
  std::vector<NamedZeroTensor> tensors;
  file.read_all_tensors("", states, tensors, group.values, notes);
  if (group.values.size() == 1 && group.values[0].fqn.empty()) group.values.clear();
  for (NamedZeroTensor& one : tensors)
    group.states.emplace_back(std::move(one.fqn), std::move(one.tensor));
  // If the dict holds no tensor, all its values were read as one entry.
  if (!tensors.empty()) return;
  const auto pairs = file.pairs(states);
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
    group.values.push_back({file.text(pairs[i]), file.value(pairs[i + 1])});
}

void read_slices(const ZeroFile& file, NodeId mapping, ZeroGroup& group) {
  const auto pairs = file.pairs(mapping);
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const auto count = file.tree().integer(file.tree().attribute(pairs[i + 1], "numel"));
    const auto first = file.tree().integer(file.tree().attribute(pairs[i + 1], "start"));
    if (count && first) group.slices.push_back({file.text(pairs[i]), *first, *count});
  }
}

constexpr auto kOptimizerKeys = std::to_array<std::string_view>(
    {"zero_stage", "partition_count", "single_partition_of_fp32_groups", "fp32_flat_groups",
     "base_optimizer_state", "optimizer_state_dict", "group_paddings", "param_alignment_paddings",
     "param_slice_mappings", "ds_version", "loss_scaler"});

void read_values(const ZeroFile& file, NodeId books, NodeId base, ZeroOptimizer& out,
                 ZeroPickleFindings& notes) {
  std::vector<NamedZeroTensor> none;
  const auto pairs = file.pairs(books);
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const std::string key = file.text(pairs[i]);
    if (is_zero_key(key, kOptimizerKeys) || file.tree().kind(pairs[i + 1]) == NodeKind::kNone)
      continue;
    file.read_all_tensors("optimizer." + key, pairs[i + 1], none, out.values, notes);
  }
  if (NodeId groups = file.find(base, "param_groups"); groups != NodeId::kAbsent)
    out.values.push_back({"optimizer.param_groups", file.value(groups)});
}

Status read_groups(const ZeroFile& file, NodeId books, std::span<const NodeId> flat,
                   ZeroOptimizer& out) {
  if (flat.size() > kMaxZeroGroups)
    return damaged_zero_error(file, books, "has too many groups of parameters");
  const auto paddings = zero_numbers(file, file.find(books, "group_paddings"));
  const auto alignment = file.list(file.find(books, "param_alignment_paddings"));
  const auto slices = file.list(file.find(books, "param_slice_mappings"));
  const NodeId count = file.find(books, "partition_count");
  const auto counts = zero_numbers(file, count);
  for (std::size_t g = 0; g < flat.size(); ++g) {
    ZeroGroup group;
    if (file.is_tensor(flat[g])) {
      SHW_TRY(group.master, file.tensor(flat[g]));
      if (!group.master->is_flat)
        return damaged_zero_error(file, flat[g], fmt::format("group {} is not flat", g));
    }
    if (g < paddings.size()) group.padding = std::max<std::int64_t>(paddings[g], 0);
    if (g < alignment.size()) group.alignment = zero_numbers(file, alignment[g]);
    if (g < slices.size()) read_slices(file, slices[g], group);
    group.ranks = g < counts.size() ? counts[g] : file.integer(count).value_or(0);
    out.groups.push_back(std::move(group));
  }
  return {};
}

}  // namespace

std::int64_t ZeroOptimizer::ranks() const {
  std::int64_t most = 0;
  for (const ZeroGroup& group : groups) most = std::max(most, group.ranks);
  return most;
}

Result<ZeroModel> read_zero_model(const ZeroFile& file, bool whole, ZeroPickleFindings& notes) {
  ZeroModel model;
  model.path = file.path();
  const NodeId root = file.root();
  if (file.find(root, "module") == NodeId::kAbsent &&
      file.find(root, "param_shapes") == NodeId::kAbsent)
    return fail(ErrorKind::kUnsupported,
                "has the name of a model states file of DeepSpeed, but holds no 'module'",
                {file.path(), file.tree().at(root)},
                "If another program wrote it, copy it under another name and open that.");
  SHW_CHECK(read_zero_shapes(file, model));
  const auto fragments = file.pairs(file.find(root, "frozen_param_fragments"));
  for (std::size_t i = 0; i + 1 < fragments.size(); i += 2) {
    SHW_TRY(ZeroTensor tensor, file.tensor(fragments[i + 1]));
    model.fragments.emplace(file.text(fragments[i]), std::move(tensor));
  }
  model.ranks = file.integer(file.find(root, "dp_world_size"));
  model.mp_ranks = file.integer(file.find(root, "mp_world_size")).value_or(1);
  const NodeId config = file.find(root, "ds_config");
  model.stage = file.integer(file.find(file.find(config, "zero_optimization"), "stage"));
  model.is_data_before_expert =
      file.integer(file.find(config, "use_data_before_expert_parallelism")).value_or(0) != 0;
  model.step = file.integer(file.find(root, "global_steps"));
  model.blocks = file.integer(file.find(file.find(root, "args"), "num_layers"));
  for (NodeId count : file.list(file.find(root, "num_experts")))
    model.experts.push_back(file.integer(count).value_or(0));
  if (!whole) return model;
  const NodeId module = file.find(root, "module");
  for (NodeId name : file.list(file.find(root, "buffer_names")))
    model.buffers.push_back(file.text(name));
  std::vector<NamedZeroValue> extra;  // extra states of modules
  if (!file.pairs(module).empty()) file.read_all_tensors("", module, model.module, extra, notes);
  for (NamedZeroValue& value : extra) {
    if (!value.fqn.empty()) model.values.push_back(std::move(value));
  }
  const auto shared = file.pairs(file.find(root, "shared_params"));
  for (std::size_t i = 0; i + 1 < shared.size(); i += 2)
    model.shared.emplace_back(file.text(shared[i]), file.text(shared[i + 1]));
  read_remaining_entries(file, model, notes);
  return model;
}

Result<ZeroOptimizer> read_zero_optimizer(const ZeroFile& file, std::uint32_t rank,
                                          ZeroPickleFindings& notes) {
  ZeroOptimizer out;
  out.path = file.path();
  out.rank = rank;
  const NodeId books = file.find(file.root(), "optimizer_state_dict");
  if (file.pairs(books).empty())
    return damaged_zero_error(
        file, file.root(),
        "is not an optimizer states file of DeepSpeed: it has no optimizer_state_dict");
  out.stage = file.integer(file.find(books, "zero_stage"));
  NodeId flat = file.find(books, "single_partition_of_fp32_groups");
  NodeId base = file.find(books, "base_optimizer_state");
  if (flat == NodeId::kAbsent) {
    flat = file.find(books, "fp32_flat_groups");
    base = file.find(books, "optimizer_state_dict");
  }
  SHW_CHECK(read_groups(file, books, file.list(flat), out));
  // In elastic checkpoints a list with one item per group.
  const auto listed = file.list(base);
  const NodeId state = file.find(base, "state");
  const NodeId first = listed.empty() ? file.find(state, std::int64_t{0}) : listed.front();
  out.step = file.integer(file.find(first, "step"));
  for (std::size_t g = 0; g < out.groups.size(); ++g) {
    const NodeId states =
        g < listed.size() ? listed[g] : file.find(state, static_cast<std::int64_t>(g));
    if (states != NodeId::kAbsent) read_states(file, states, out.groups[g], notes);
  }
  read_values(file, books, base, out, notes);
  return out;
}

}  // namespace shw

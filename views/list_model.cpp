// Builds the rows of the list: modules with tensors, and repeated layers as one row.
#include <algorithm>
#include <unordered_map>

#include "views/digest.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr std::uint32_t kFewRows = 24;  // shorter lists do not fold layers

// Adjacent groups of one layer, and a hash of their contents.
struct LayerRun {
  const TensorModule* module = nullptr;  // of the first group
  std::uint32_t first = 0, groups = 0, tensors = 0;
  std::size_t likeness = 0;    // equal for equal tensors, whatever their order
  bool has_equal_rest = true;  // all groups have the same rest: ".moe.experts"

  const ModuleLayer& layer() const { return module->layer; }
};

std::vector<LayerRun> layer_runs_of(const ListModel& list) {
  std::vector<LayerRun> units;
  for (std::uint32_t g = 0; g < list.groups.size(); ++g) {
    const ListGroup& group = list.groups[g];
    const TensorModule& module = list.names->modules[group.module_index];
    bool goes_on = !units.empty() && module.layer.is_layer && units.back().layer().is_layer &&
                   units.back().module->family == module.family &&
                   units.back().layer().number == module.layer.number;
    if (!goes_on) units.push_back({&module, g});
    LayerRun& unit = units.back();
    ++unit.groups;
    unit.tensors += group.count;
    unit.has_equal_rest = unit.has_equal_rest && unit.layer().rest == module.layer.rest;
    for (std::uint32_t row = group.first; row < group.first + group.count; ++row) {
      std::size_t tensor = module.rest_likeness;
      hash_combine(tensor, list.names->likeness[index_of(list.tensor(row))]);
      unit.likeness += tensor;
    }
  }
  return units;
}

bool is_same_kind_of_layer(const LayerRun& a, const LayerRun& b) {
  return a.layer().is_layer && b.layer().is_layer && a.module->family == b.module->family &&
         a.likeness == b.likeness;
}

// Formats "layers.0-60 · 26 tensors each".
ListRun run_of(std::span<const LayerRun> units) {
  const LayerRun& first = units.front();
  std::uint32_t least = first.layer().number, most = least;
  ListRun run;
  run.first_group = first.first;
  run.layers = static_cast<std::uint32_t>(units.size());
  for (const LayerRun& unit : units) {
    run.groups += unit.groups;
    least = std::min(least, unit.layer().number);
    most = std::max(most, unit.layer().number);
  }
  run.tensors_each = first.tensors;
  run.title = std::string(first.layer().before) + std::to_string(least);
  if (most > least) run.title += "-" + std::to_string(most);
  if (first.has_equal_rest) run.title += first.layer().rest;
  run.gaps = most - least + 1 != run.layers;
  return run;
}

// Key: a family, and the contents or the number of a layer.
struct FamilyKey {
  std::uint32_t family = 0;
  std::size_t value = 0;
  friend bool operator==(const FamilyKey&, const FamilyKey&) = default;
};
struct FamilyHash {
  std::size_t operator()(const FamilyKey& key) const { return key.value ^ key.family; }
};
template <class T>
using ByFamily = std::unordered_map<FamilyKey, T, FamilyHash>;

// The contents of whole layers by family and number: other tensors may be between two parts of a
// layer in the order of the files.
ByFamily<std::size_t> layer_likenesses(std::span<const LayerRun> units) {
  ByFamily<std::size_t> layers;
  for (const LayerRun& unit : units) {
    if (unit.layer().is_layer) layers[{unit.module->family, unit.layer().number}] += unit.likeness;
  }
  return layers;
}

void fold_layers(ListModel& list) {
  if (list.size() <= kFewRows) return;
  std::vector<LayerRun> units = layer_runs_of(list);
  const ByFamily<std::size_t> layers = layer_likenesses(units);
  // By family: number of layers with equal tensors, and the maximum.
  ByFamily<std::uint32_t> made_of;
  std::vector<std::uint32_t> most_alike(list.names->families, 0);
  for (const auto& [layer, likeness] : layers) {
    std::uint32_t& most = most_alike[layer.family];
    most = std::max(most, ++made_of[{layer.family, likeness}]);
  }
  bool any = false;
  for (std::size_t u = 0; u < units.size();) {
    std::size_t end = u + 1;
    while (end < units.size() && is_same_kind_of_layer(units[u], units[end])) ++end;
    bool is_layer = units[u].layer().is_layer;
    std::uint32_t family = units[u].module->family, most = is_layer ? most_alike[family] : 0;
    ListRun run = run_of({units.data() + u, end - u});
    run.odd =
        is_layer && made_of[{family, layers.at({family, units[u].layer().number})}] * 2 < most;
    // Runs of a single layer, and other modules, are not folded.
    if (most < 2) run.layers = 0;
    any = any || run.layers > 1;
    list.runs.push_back(std::move(run));
    u = end;
  }
  if (!any) list.runs.clear();
}

// Regroups tensors by module after a sort: modules in order of first occurrence, tensors in sort
// order.
void regroup_by_module(ListModel& list) {
  constexpr std::uint32_t kNone = 0xffffffffu;
  std::vector<std::uint32_t> place(list.names->modules.size(), kNone);
  std::vector<ListGroup> gathered;
  for (const ListGroup& group : list.groups) {
    std::uint32_t& at = place[group.module_index];
    if (at == kNone) {
      at = static_cast<std::uint32_t>(gathered.size());
      gathered.push_back({group.module, 0, 0, group.module_index});
    }
    gathered[at].count += group.count;
  }
  std::uint32_t first = 0;
  for (ListGroup& group : gathered) {
    group.first = first;
    first += group.count;
    group.count = 0;
  }
  auto order = std::make_shared<std::vector<std::uint32_t>>(list.size());
  for (std::uint32_t row = 0; row < list.size(); ++row) {
    auto tensor = static_cast<std::uint32_t>(list.tensor(row));
    ListGroup& group = gathered[place[list.names->module_of[tensor]]];
    (*order)[group.first + group.count++] = tensor;
  }
  list.groups = std::move(gathered);
  list.order = std::move(order);
}

}  // namespace

std::uint32_t ListModel::size() const {
  if (checkpoint == nullptr) return 0;
  return order == nullptr ? checkpoint->tensor_count() : static_cast<std::uint32_t>(order->size());
}

TensorId ListModel::tensor(std::uint32_t row) const {
  return TensorId{order == nullptr ? row : (*order)[row]};
}

std::shared_ptr<const ListModel> make_list(const Snapshot& snapshot, const ListModel* before) {
  auto list = std::make_shared<ListModel>();
  list->checkpoint = snapshot.checkpoint;
  list->order = snapshot.order;
  if (snapshot.checkpoint == nullptr) return list;
  list->names = before != nullptr && before->checkpoint == snapshot.checkpoint
                    ? before->names
                    : std::make_shared<const TensorModules>(read_modules(*snapshot.checkpoint));
  const TensorModules& names = *list->names;
  list->prefix = names.prefix;
  std::vector<bool> seen(names.modules.size(), false);
  bool scattered = false;
  for (std::uint32_t row = 0; row < list->size(); ++row) {
    std::uint32_t module = names.module_of[index_of(list->tensor(row))];
    if (list->groups.empty() || list->groups.back().module_index != module) {
      list->groups.push_back({names.modules[module].name, row, 0, module});
      scattered = scattered || seen[module];
      seen[module] = true;
    }
    ++list->groups.back().count;
  }
  if (scattered) regroup_by_module(*list);
  fold_layers(*list);
  return list;
}

std::shared_ptr<const std::vector<std::uint8_t>> make_run_marks(
    const ListModel& list, const std::vector<std::uint8_t>& marks) {
  auto worst = std::make_shared<std::vector<std::uint8_t>>(list.groups.size() + list.runs.size());
  auto raise = [](std::uint8_t& to, std::uint8_t mark) {
    if (mark == kChangedByRepair ? to == 0 : to == kChangedByRepair || mark > to) to = mark;
  };
  for (std::size_t g = 0; g < list.groups.size(); ++g) {
    for (std::uint32_t row = list.groups[g].first;
         row < list.groups[g].first + list.groups[g].count; ++row) {
      std::size_t tensor = index_of(list.tensor(row));
      if (tensor < marks.size() && marks[tensor] > 0) raise((*worst)[g], marks[tensor]);
    }
  }
  for (std::size_t r = 0; r < list.runs.size(); ++r) {
    const ListRun& run = list.runs[r];
    for (std::uint32_t g = run.first_group; g < run.first_group + run.groups; ++g) {
      if ((*worst)[g] > 0) raise((*worst)[list.groups.size() + r], (*worst)[g]);
    }
  }
  return worst;
}

}  // namespace shw

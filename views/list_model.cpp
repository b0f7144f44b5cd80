// The rows of the list: tensors under their modules, and layers that repeat as one row.
#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <unordered_map>

#include "views/digest.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr std::uint32_t kFewRows = 24;  // a list that can be seen as it is folds no layers

std::size_t shared_prefix(const Checkpoint& checkpoint) {
  if (checkpoint.tensor_count() < 2) return 0;
  std::string_view first = checkpoint.fqn(TensorId{0});
  std::size_t length = first.find('.') == first.npos ? 0 : first.find('.') + 1;
  for (std::uint32_t t = 1; t < checkpoint.tensor_count() && length > 0; ++t) {
    if (!checkpoint.fqn(TensorId{t}).starts_with(first.substr(0, length))) length = 0;
  }
  // "blocks.0.…" keeps its first word: a bare number would be no name of a module.
  if (length < first.size() && first[length] >= '0' && first[length] <= '9') return 0;
  return length;
}

// "layers.3.moe" is layer 3 of "layers.", and the rest is ".moe".
struct LayerName {
  std::string_view before, rest;
  std::uint32_t number = 0;
  bool is_layer = false;
};
LayerName layer_of(std::string_view module) {
  for (std::size_t at = 0; at < module.size();) {
    std::size_t end = std::min(module.find('.', at), module.size());
    LayerName name{module.substr(0, at), module.substr(end), 0, false};
    auto [stop, code] = std::from_chars(module.data() + at, module.data() + end, name.number);
    if (code == std::errc{} && stop == module.data() + end && end > at) {
      name.is_layer = true;
      return name;
    }
    at = end + 1;
  }
  return {};
}

// Groups of one layer that stand side by side, and what they are made of.
struct Unit {
  LayerName layer;
  std::uint32_t first = 0, groups = 0, tensors = 0;
  std::size_t likeness = 0;  // equal for layers with the same tensors
  bool one_rest = true;      // all groups have the same rest: ".moe.experts"
};

void mix_in(std::size_t& hash, std::size_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
}

std::vector<Unit> units_of(const ListModel& list) {
  const Checkpoint& checkpoint = *list.checkpoint;
  std::vector<Unit> units;
  for (std::uint32_t g = 0; g < list.groups.size(); ++g) {
    const ListGroup& group = list.groups[g];
    LayerName layer = layer_of(group.module);
    bool goes_on = !units.empty() && layer.is_layer && units.back().layer.is_layer &&
                   units.back().layer.before == layer.before &&
                   units.back().layer.number == layer.number;
    if (!goes_on) units.push_back({layer, g, 0, 0, 0, true});
    Unit& unit = units.back();
    ++unit.groups;
    unit.tensors += group.count;
    unit.one_rest = unit.one_rest && unit.layer.rest == layer.rest;
    mix_in(unit.likeness, std::hash<std::string_view>{}(layer.rest));
    for (std::uint32_t row = group.first; row < group.first + group.count; ++row) {
      TensorId tensor = list.tensor(row);
      std::string_view fqn = checkpoint.fqn(tensor);
      std::size_t inside = group.module.empty() ? 0 : list.prefix + group.module.size();
      mix_in(unit.likeness, std::hash<std::string_view>{}(fqn.substr(inside)));
      mix_in(unit.likeness, static_cast<std::size_t>(checkpoint.dtype(tensor)));
      for (std::int64_t extent : checkpoint.shape(tensor))
        mix_in(unit.likeness, static_cast<std::size_t>(extent));
    }
  }
  return units;
}

bool alike(const Unit& a, const Unit& b) {
  return a.layer.is_layer && b.layer.is_layer && a.layer.before == b.layer.before &&
         a.likeness == b.likeness;
}

// "layers.0-60 · 26 tensors each"
ListRun run_of(std::span<const Unit> units) {
  const Unit& first = units.front();
  std::uint32_t least = first.layer.number, most = least;
  ListRun run;
  run.first_group = first.first;
  run.layers = static_cast<std::uint32_t>(units.size());
  for (const Unit& unit : units) {
    run.groups += unit.groups;
    least = std::min(least, unit.layer.number);
    most = std::max(most, unit.layer.number);
  }
  run.tensors_each = first.tensors;
  run.title = std::string(first.layer.before) + std::to_string(least);
  if (most > least) run.title += "-" + std::to_string(most);
  if (first.one_rest) run.title += first.layer.rest;
  run.gaps = most - least + 1 != run.layers;
  return run;
}

void fold_layers(ListModel& list) {
  if (list.size() <= kFewRows) return;
  std::vector<Unit> units = units_of(list);
  // Of every family of layers: how many are made of the same tensors, and the most that are.
  std::map<std::string_view, std::map<std::size_t, std::uint32_t>> made_of;
  std::map<std::string_view, std::uint32_t> most_alike;
  for (const Unit& unit : units) {
    if (!unit.layer.is_layer) continue;
    std::uint32_t count = ++made_of[unit.layer.before][unit.likeness];
    std::uint32_t& most = most_alike[unit.layer.before];
    most = std::max(most, count);
  }
  bool any = false;
  for (std::size_t u = 0; u < units.size();) {
    std::size_t end = u + 1;
    while (end < units.size() && alike(units[u], units[end])) ++end;
    const LayerName& layer = units[u].layer;
    std::uint32_t most = layer.is_layer ? most_alike[layer.before] : 0;
    ListRun run = run_of({units.data() + u, end - u});
    run.odd = layer.is_layer && made_of[layer.before][units[u].likeness] * 2 < most;
    // What is no layer, or one that nothing repeats, is no fold: its modules stand as they are.
    if (most < 2) run.layers = 0;
    any = any || run.layers > 1;
    list.runs.push_back(std::move(run));
    u = end;
  }
  if (!any) list.runs.clear();
}

// Brings the tensors of a module together again after a sort by size: modules in the order in which
// they first occur, tensors in the order of the sort.
void gather_modules(ListModel& list, const std::vector<std::string_view>& modules) {
  std::unordered_map<std::string_view, std::uint32_t> place;
  std::vector<std::vector<std::uint32_t>> members;
  for (std::uint32_t row = 0; row < modules.size(); ++row) {
    auto [found, is_new] = place.emplace(modules[row], static_cast<std::uint32_t>(members.size()));
    if (is_new) members.emplace_back();
    members[found->second].push_back(row);
  }
  auto order = std::make_shared<std::vector<std::uint32_t>>();
  order->reserve(modules.size());
  list.groups.clear();
  for (const auto& rows : members) {
    list.groups.push_back({modules[rows.front()], static_cast<std::uint32_t>(order->size()),
                           static_cast<std::uint32_t>(rows.size())});
    for (std::uint32_t row : rows) order->push_back(static_cast<std::uint32_t>(list.tensor(row)));
  }
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

std::size_t module_length(std::string_view fqn) {
  std::size_t last = fqn.rfind('.');
  if (last == fqn.npos || last == 0) return 0;
  std::size_t before = fqn.rfind('.', last - 1);
  return before == fqn.npos ? 0 : before;
}

std::shared_ptr<const ListModel> make_list(const Snapshot& snapshot) {
  auto list = std::make_shared<ListModel>();
  list->checkpoint = snapshot.checkpoint;
  list->order = snapshot.order;
  if (snapshot.checkpoint == nullptr) return list;
  list->prefix = shared_prefix(*snapshot.checkpoint);
  std::vector<std::string_view> modules(list->size());
  std::unordered_map<std::string_view, std::uint32_t> seen;
  bool scattered = false;
  for (std::uint32_t row = 0; row < list->size(); ++row) {
    std::string_view fqn = snapshot.checkpoint->fqn(list->tensor(row));
    std::size_t length = module_length(fqn);
    modules[row] = length > list->prefix ? fqn.substr(list->prefix, length - list->prefix) : "";
    if (list->groups.empty() || list->groups.back().module != modules[row]) {
      list->groups.push_back({modules[row], row, 0});
      scattered = scattered || !seen.emplace(modules[row], row).second;
    }
    ++list->groups.back().count;
  }
  if (scattered) gather_modules(*list, modules);
  fold_layers(*list);
  return list;
}

std::shared_ptr<const std::vector<std::uint8_t>> make_run_marks(
    const ListModel& list, const std::vector<std::uint8_t>& marks) {
  auto worst = std::make_shared<std::vector<std::uint8_t>>(list.groups.size() + list.runs.size());
  auto raise = [](std::uint8_t& to, std::uint8_t mark) {
    if (mark == kMended ? to == 0 : to == kMended || mark > to) to = mark;
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

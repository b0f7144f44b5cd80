#include "views/map/layer_matrix.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>

#include "core/base/natural_order.h"

namespace shw {
namespace {

constexpr std::size_t kMaxKinds = 512;            // columns; more would be narrower than a pixel
constexpr std::size_t kMaxMatrixCells = 400'000;  // 19 MB

// "experts.17.down_proj" becomes "experts.*.down_proj".
std::string without_numbers(std::string_view name) {
  std::string kind;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    const std::string_view word = name.substr(at, end - at);
    const bool is_number = !word.empty() && word.find_first_not_of("0123456789") == word.npos;
    if (!kind.empty()) kind += '.';
    kind += is_number ? std::string_view("*") : word;
    at = end + 1;
  }
  return kind;
}

// The tensor's name inside its layer; empty if it is in none.
std::string_view name_inside_layer(const Checkpoint& checkpoint, const TensorModules& names,
                                   std::uint32_t tensor) {
  const ModuleLayer& layer = names.modules[names.module_of[tensor]].layer;
  if (!layer.is_layer) return {};
  const std::string_view fqn = checkpoint.fqn(TensorId{tensor});
  const std::string_view module = names.modules[names.module_of[tensor]].name;
  const std::size_t at = names.prefix + module.size() - layer.rest.size();
  if (at >= fqn.size()) return {};
  return fqn.substr(fqn[at] == '.' ? at + 1 : at);
}

struct FamilyBuilder {
  std::set<std::uint32_t> layers;
  std::map<std::string, std::uint32_t, bool (*)(const std::string&, const std::string&)> kinds{
      [](const std::string& a, const std::string& b) { return natural_less(a, b); }};
  std::vector<std::uint32_t> tensors;
};

// Every dtype has this share; a cosine would be 1 for a scaled tensor and for one that differs by
// an ulp, and integers have none.
double differing_share_of(const TensorDifference& difference) {
  if (!difference.values || difference.values->compared == 0) return 0;
  const ValueDifference& values = *difference.values;
  return static_cast<double>(values.elements.differing) / static_cast<double>(values.compared);
}

// By tensor: its difference to the compared checkpoint; empty without a comparison.
std::unordered_map<std::string_view, const TensorDifference*> differences_of(
    const Snapshot& snapshot) {
  std::unordered_map<std::string_view, const TensorDifference*> found;
  if (snapshot.compared == nullptr || snapshot.compared->a != snapshot.checkpoint) return found;
  for (const TensorDifference& each : snapshot.compared->difference.tensors) {
    if (each.kind == DifferenceKind::kRetiled) continue;
    found.emplace(each.fqn, &each);
  }
  return found;
}

void add_nan(std::uint32_t tensor, std::uint64_t nan, MatrixCell& cell) {
  cell.nan += nan;
  if (nan > cell.nan_of_one) cell.nan_of_one = nan, cell.most_nan = tensor;
}

void add_values(const Snapshot& snapshot, TensorId tensor, MatrixCell& cell) {
  if (snapshot.numbers != nullptr) {
    const verbs::TensorNumbers& numbers = snapshot.numbers->tensors[index_of(tensor)];
    cell.is_read = cell.is_read || numbers.is_read;
    cell.elements += numbers.elements;
    add_nan(static_cast<std::uint32_t>(index_of(tensor)), numbers.nan, cell);
    cell.zero += numbers.zero;
    cell.squares += numbers.squares;
    cell.absent += numbers.absent;
    return;
  }
  if (snapshot.tile_values == nullptr) return;
  const Checkpoint& checkpoint = *snapshot.checkpoint;
  std::uint64_t looked = 0, nan = 0;
  bool is_whole = true;  // several ranks may have saved an element, and only one of them was read
  const verbs::TileValues* values = tile_values_of(snapshot, tensor);
  for (const verbs::TileNumbers& tile :
       values == nullptr ? std::span<const verbs::TileNumbers>() : std::span(values->tiles)) {
    is_whole = is_whole && tile.state == verbs::TileNumbers::State::kLooked;
    if (tile.state != verbs::TileNumbers::State::kLooked) continue;
    cell.is_read = true;
    looked += tile.elements;
    nan += tile.nan;
    cell.zero += tile.zero;
  }
  cell.elements += looked;
  add_nan(static_cast<std::uint32_t>(index_of(tensor)), nan, cell);
  if (number_kind(checkpoint.dtype(tensor)) == NumberKind::kOpaque) return;
  const auto all = static_cast<std::uint64_t>(
      std::max<std::int64_t>(volume(checkpoint.shape(tensor)).value_or(0), 0));
  cell.absent += std::max<std::uint64_t>(all > looked ? all - looked : 0, is_whole ? 0 : 1);
}

void add_difference(std::uint32_t tensor, const TensorDifference& difference, MatrixCell& cell) {
  const auto kind = static_cast<std::uint8_t>(static_cast<int>(difference.kind) + 1);
  const double share = differing_share_of(difference);
  const bool is_worst = cell.difference == 0 || kind < cell.difference ||
                        (kind == cell.difference && share > cell.differing_share);
  if (is_worst) cell.difference = kind, cell.most_different = tensor;
  cell.differing_share = std::max(cell.differing_share, share);
}

void fill_cells(const Snapshot& snapshot, const TensorModules& names,
                const std::vector<std::uint8_t>& marks, const FamilyBuilder& family,
                LayerMatrix& matrix) {
  const Checkpoint& checkpoint = *snapshot.checkpoint;
  const auto differences = differences_of(snapshot);
  std::map<std::uint32_t, std::size_t> row_of;
  for (std::size_t row = 0; row < matrix.layers.size(); ++row) row_of[matrix.layers[row]] = row;
  matrix.cells.resize(matrix.layers.size() * matrix.kinds.size());
  for (std::uint32_t t : family.tensors) {
    const std::uint32_t layer = names.modules[names.module_of[t]].layer.number;
    auto kind = family.kinds.find(without_numbers(name_inside_layer(checkpoint, names, t)));
    if (kind == family.kinds.end()) continue;
    MatrixCell& cell = matrix.cells[row_of[layer] * matrix.kinds.size() + kind->second];
    const std::uint8_t mark = t < marks.size() ? marks[t] : std::uint8_t{0};
    if (cell.tensors == 0 || mark > cell.mark) cell.first = t;
    ++cell.tensors;
    cell.mark = std::max(cell.mark, mark);
    cell.bytes += static_cast<double>(volume(checkpoint.shape(TensorId{t})).value_or(0)) *
                  size_of(checkpoint.dtype(TensorId{t}));
    auto difference = differences.find(checkpoint.fqn(TensorId{t}));
    if (difference != differences.end()) {
      add_difference(t, *difference->second, cell);
      matrix.most_differing = std::max(matrix.most_differing, cell.differing_share);
    }
    add_values(snapshot, TensorId{t}, cell);
    matrix.most_bytes = std::max(matrix.most_bytes, cell.bytes);
  }
}

// Compares each cell's norm with those of the same kind in other layers: the odd one stands out,
// although kinds differ in size.
void compute_cell_changes(LayerMatrix& matrix) {
  for (std::size_t kind = 0; kind < matrix.kinds.size(); ++kind) {
    std::vector<double> norms;
    const auto norm_of = [](const MatrixCell& cell) {
      return cell.is_read && cell.elements != 0 && cell.squares > 0
                 ? std::sqrt(cell.squares / static_cast<double>(cell.elements))
                 : 0.0;
    };
    for (std::size_t row = 0; row < matrix.layers.size(); ++row) {
      if (const double norm = norm_of(matrix.cell(row, kind)); norm > 0) norms.push_back(norm);
    }
    if (norms.empty()) continue;
    const auto middle = norms.begin() + static_cast<std::ptrdiff_t>(norms.size() / 2);
    std::nth_element(norms.begin(), middle, norms.end());
    for (std::size_t row = 0; row < matrix.layers.size(); ++row) {
      MatrixCell& cell = matrix.cells[row * matrix.kinds.size() + kind];
      if (const double norm = norm_of(cell); norm > 0) cell.change = std::log2(norm / *middle);
    }
  }
}

}  // namespace

double difference_tint(const MatrixCell& cell, double most_differing) {
  if (cell.differing_share <= 0 || most_differing <= 0) return kPalestTint;
  return std::clamp(1 + std::log10(cell.differing_share / most_differing) / 3, kPalestTint, 1.0);
}

std::vector<LayerMatrix> make_matrices(const Snapshot& snapshot, const TensorModules& names,
                                       const std::vector<std::uint8_t>& marks) {
  std::vector<LayerMatrix> matrices;
  if (snapshot.checkpoint == nullptr) return matrices;
  const Checkpoint& checkpoint = *snapshot.checkpoint;
  std::vector<FamilyBuilder> families(names.families);
  std::vector<std::string_view> before(names.families);
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    const TensorModule& module = names.modules[names.module_of[t]];
    if (!module.layer.is_layer) continue;
    FamilyBuilder& family = families[module.family];
    before[module.family] = module.layer.before;
    family.layers.insert(module.layer.number);
    if (family.kinds.size() < kMaxKinds)
      family.kinds.emplace(without_numbers(name_inside_layer(checkpoint, names, t)), 0);
    family.tensors.push_back(t);
  }
  std::vector<std::size_t> order;
  for (std::size_t f = 0; f < families.size(); ++f) {
    if (families[f].layers.size() > 1 &&
        families[f].layers.size() * families[f].kinds.size() <= kMaxMatrixCells)
      order.push_back(f);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    // Sorts weights before optimizer states, whose names have more parts.
    const auto words = [&](std::size_t f) {
      return std::count(before[f].begin(), before[f].end(), '.');
    };
    if (words(a) != words(b)) return words(a) < words(b);
    return families[a].tensors.size() > families[b].tensors.size();
  });
  if (order.size() > kMaxMatrices) order.resize(kMaxMatrices);
  for (std::size_t f : order) {
    LayerMatrix matrix;
    const std::string_view any = checkpoint.fqn(TensorId{families[f].tensors.front()});
    matrix.before = std::string(any.substr(0, names.prefix)) + std::string(before[f]);
    matrix.layers.assign(families[f].layers.begin(), families[f].layers.end());
    for (auto& [kind, column] : families[f].kinds) {
      column = static_cast<std::uint32_t>(matrix.kinds.size());
      matrix.kinds.push_back(kind);
    }
    matrix.tensors = static_cast<std::uint32_t>(families[f].tensors.size());
    fill_cells(snapshot, names, marks, families[f], matrix);
    matrix.has_norms = snapshot.numbers != nullptr;
    if (matrix.has_norms) compute_cell_changes(matrix);
    matrices.push_back(std::move(matrix));
  }
  return matrices;
}

}  // namespace shw

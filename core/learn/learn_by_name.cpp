#include "core/learn/learn_by_name.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "core/formats/items/items.h"
#include "core/learn/fit_order.h"
#include "core/learn/line_cell.h"

namespace shw {
namespace {

// Limit per tensor: biases and the like are read whole and compared by element.
constexpr std::uint64_t kMaxBiasBytes = std::uint64_t{64} << 20;
// Limit for all such tensors together.
constexpr std::size_t kMaxHeldElements = std::size_t{1} << 27;

Extents multi_index_of_cell(const Extents& lead, std::size_t cell) {
  Extents at(lead.size(), 0);
  auto rest = static_cast<std::int64_t>(cell);
  for (std::size_t d = lead.size(); d-- > 0;) {
    at[d] = rest % lead[d];
    rest /= lead[d];
  }
  return at;
}

// "decoder.layers.3." and the index of a cell: tensors with this place belong to one layer or
// expert.
std::string layer_key_of_cell(const std::string& name, const Extents& lead, std::size_t cell) {
  return numbered_prefix(name) + "|" + to_text(multi_index_of_cell(lead, cell));
}

class NameLearner {
 public:
  NameLearner(LearnSide& from, LearnSide& to, std::vector<LearnedRow>& rows)
      : from_(from), to_(to), rows_(rows) {
    for (const LearnedRow& learned : rows) record_tensors_by_layer(learned.row);
    for (std::size_t f = 0; f < from.size(); ++f) {
      if (is_unexplained(from, f)) by_place_[numbered_prefix(from.names[f])].push_back(f);
    }
    for (std::size_t t = 0; t < to.size(); ++t) {
      if (is_unexplained(to, t)) groups_[to.patterns[t].key].push_back(t);
    }
  }

  void run() {
    const std::size_t known = rows_.size();
    std::set<std::string> seen;
    for (std::size_t r = 0; r < known; ++r) {
      const FoundRow& row = rows_[r].row;
      if (!row.ops.empty() && row.to.size() == 1 && row.ops.front().kind != MapOp::Kind::kPad &&
          seen.insert(to_.patterns[row.to.front()].key + to_text(row.lead)).second)
        templates_.push_back(r);
    }
    for (const auto& [key, tensors] : groups_) {
      for (std::size_t t : tensors) add_from_template(t);
    }
    add_rows_of_equal_tensors();
  }

 private:
  static bool is_unexplained(const LearnSide& side, std::size_t i) {
    return !side.explained[i] && side.rows[i].is_read && side.same_as[i] == i;
  }

  void record_tensors_by_layer(const FoundRow& row) {
    for (std::size_t t : row.to) {
      for (std::size_t cell = 0; cell < row.from.size(); ++cell) {
        auto& places = links_[layer_key_of_cell(to_.names[t], row.lead, cell)];
        for (std::size_t f : row.from[cell]) places.insert(numbered_prefix(from_.names[f]));
      }
      if (row.to.size() == 1 && row.ops.empty())
        key_pairs_.insert({to_.patterns[t].key, from_.patterns[row.from.front().front()].key});
    }
  }
  // Unexplained tensors with the same place as those that made the cell's neighbours.
  std::vector<std::size_t> unexplained_neighbours(std::size_t t, const Extents& lead,
                                                  std::size_t cell) const {
    std::vector<std::size_t> out;
    auto linked = links_.find(layer_key_of_cell(to_.names[t], lead, cell));
    std::set<std::string> places;
    if (linked != links_.end())
      places = linked->second;
    else if (lead.empty())
      places = {numbered_prefix(to_.names[t])};
    for (const std::string& place : places) {
      auto found = by_place_.find(place);
      if (found == by_place_.end()) continue;
      for (std::size_t f : found->second) {
        if (!from_.explained[f]) out.push_back(f);
      }
    }
    return out;
  }

  // --- operations of a neighbouring weight

  const LineSequence& elements_of(LearnSide& side, std::map<std::size_t, LineSequence>& kept,
                                  std::size_t i) {
    auto [at, is_new] = kept.try_emplace(i);
    const std::size_t width = size_of(side.dtypes[i]);
    if (!is_new || width == 0 || width > sizeof(std::uint64_t) || held_ > kMaxHeldElements)
      return at->second;
    auto values =
        read_tensor(*side.checkpoint, TensorId{static_cast<std::uint32_t>(i)}, kMaxBiasBytes);
    if (!values || values->uncovered != 0) return at->second;
    at->second.resize(values->bytes.size() / width, 0);
    held_ += at->second.size();
    for (std::size_t e = 0; e < at->second.size(); ++e)
      std::memcpy(&at->second[e], values->bytes.data() + e * width, width);
    return at->second;
  }

  // True if its last dim equals the number of rows of the weight.
  bool has_extent_of(std::size_t t, const FoundRow& weight) const {
    const Extents& made = to_.shapes[weight.to.front()];
    const Extents& shape = to_.shapes[t];
    return shape.size() > weight.lead.size() && shape.size() < made.size() &&
           std::find(made.begin(), made.end(), shape.back()) != made.end();
  }
  void add_from_template(std::size_t t) {
    std::vector<std::size_t> order = templates_;
    std::erase_if(order, [&](std::size_t r) { return !has_extent_of(t, rows_[r].row); });
    const std::string& key = to_.patterns[t].key;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return name_similarity(key, to_.patterns[rows_[a].row.to.front()].key) >
             name_similarity(key, to_.patterns[rows_[b].row.to.front()].key);
    });
    for (std::size_t r : order) {
      auto row = row_from_template(t, rows_[r].row);
      if (!row) continue;
      take(std::move(*row));
      return;
    }
  }

  std::optional<FoundRow> row_from_template(std::size_t t, const FoundRow& weight) {
    const Extents& shape = to_.shapes[t];
    const std::size_t lead = weight.lead.size();
    if (shape.size() <= lead || !std::equal(weight.lead.begin(), weight.lead.end(), shape.begin()))
      return std::nullopt;
    const std::size_t ndim = shape.size() - lead;
    FoundRow row{.to = {t}, .lead = weight.lead, .from = {}};
    Extents sizes;  // sizes of the used tensors along their last dim
    for (BoundOp op : weight.ops) {
      if (op.kind == MapOp::Kind::kTranspose) continue;
      op.dim = ndim - 1;
      if (op.kind == MapOp::Kind::kJoin) sizes = op.parts;
      if (op.kind == MapOp::Kind::kPermute && sizes.empty()) sizes = {volume(op.view).value_or(0)};
      const bool has_parts = op.kind == MapOp::Kind::kRegroup || op.kind == MapOp::Kind::kUngroup ||
                             op.kind == MapOp::Kind::kReorder;
      if (has_parts && sizes.empty())
        sizes = {std::accumulate(op.parts.begin(), op.parts.end(), std::int64_t{0})};
      row.ops.push_back(std::move(op));
    }
    if (sizes.size() != weight.from.front().size()) return std::nullopt;
    const auto cells = static_cast<std::size_t>(volume(weight.lead).value_or(0));
    for (std::size_t cell = 0; cell < cells; ++cell) {
      auto from = most_similar_parts_in_layer(t, weight, sizes, cell, row.ops);
      if (!from) return std::nullopt;
      row.from.push_back(std::move(*from));
    }
    return row;
  }
  // For each tensor of the weight, the tensor with the same place and the most similar name.
  std::optional<std::vector<std::size_t>> most_similar_parts_in_layer(
      std::size_t t, const FoundRow& weight, const Extents& sizes, std::size_t cell,
      const std::vector<BoundOp>& ops) {
    const std::vector<std::size_t> left = unexplained_neighbours(t, weight.lead, cell);
    Extents wanted(to_.shapes[t].begin() + static_cast<std::ptrdiff_t>(weight.lead.size()),
                   to_.shapes[t].end());
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      wanted.back() = sizes[i];
      std::optional<std::size_t> best;
      std::size_t most = 0;
      for (std::size_t f : left) {
        const std::size_t likeness =
            name_similarity(from_.patterns[f].key, from_.patterns[weight.from.front()[i]].key);
        if (from_.shapes[f] != wanted || from_.dtypes[f] != to_.dtypes[t] || likeness < most ||
            std::find(out.begin(), out.end(), f) != out.end())
          continue;
        best = f;
        most = likeness + 1;
      }
      if (!best) return std::nullopt;
      out.push_back(*best);
    }
    return reproduces_cell(t, weight.lead, cell, out, ops) ? std::optional(out) : std::nullopt;
  }
  bool reproduces_cell(std::size_t t, const Extents& lead, std::size_t cell,
                       const std::vector<std::size_t>& from, const std::vector<BoundOp>& ops) {
    const LineSequence& there = elements_of(to_, to_elements_, t);
    if (there.empty()) return false;
    const LineCell here = cell_of_lines(there, to_.shapes[t], lead.size(), cell);
    std::vector<LineSequence> parts;
    const std::size_t last = here.dims.size() - 1;
    for (std::size_t f : from) {
      const LineSequence& elements = elements_of(from_, from_elements_, f);
      if (elements.empty()) return false;
      parts.push_back(lines_along({elements, from_.shapes[f]}, last));
    }
    return apply_ops(parts, ops) == lines_along(here, last);
  }

  // --- tensors that are equal as a whole

  struct EqualPair {
    std::string to_key, from_key;
    std::size_t likeness = 0;
    std::vector<FoundRow> rows = {};
  };

  void add_rows_of_equal_tensors() {
    std::vector<EqualPair> pairs;
    for (const auto& [key, tensors] : groups_) add_pairs(key, tensors, pairs);
    std::stable_sort(pairs.begin(), pairs.end(), [](const EqualPair& a, const EqualPair& b) {
      return a.likeness > b.likeness;
    });
    for (EqualPair& pair : pairs) {
      for (FoundRow& row : pair.rows) {
        if (is_free(row)) take(std::move(row));
      }
    }
  }
  bool is_free(const FoundRow& row) const {
    return !to_.explained[row.to.front()] &&
           std::none_of(row.from.begin(), row.from.end(),
                        [&](const auto& cell) { return from_.explained[cell.front()]; });
  }
  void add_pairs(const std::string& key, const std::vector<std::size_t>& tensors,
                 std::vector<EqualPair>& pairs) {
    std::map<std::string, EqualPair> by_key;
    for (std::size_t t : tensors) {
      if (to_.explained[t]) continue;
      for (std::size_t lead = 0; lead <= std::min<std::size_t>(to_.shapes[t].size(), 2); ++lead)
        add_equal_rows(t, lead, by_key);
    }
    for (auto& [from_key, pair] : by_key) {
      pair.to_key = key;
      pair.from_key = from_key;
      pair.likeness = name_similarity(key, from_key);
      if (key_pairs_.contains({key, from_key})) pair.likeness += 1000;
      pairs.push_back(std::move(pair));
    }
  }
  // Adds rows whose cells all equal tensors of `from`, one row per name pattern.
  void add_equal_rows(std::size_t t, std::size_t lead, std::map<std::string, EqualPair>& by_key) {
    const Extents& shape = to_.shapes[t];
    const Extents stacked(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(lead));
    const Extents inner(shape.begin() + static_cast<std::ptrdiff_t>(lead), shape.end());
    const auto cells = static_cast<std::size_t>(volume(stacked).value_or(0));
    std::map<std::string, FoundRow> rows;
    for (std::size_t cell = 0; cell < cells; ++cell) {
      bool any = false;
      for (std::size_t f : unexplained_neighbours(t, stacked, cell)) {
        if (from_.shapes[f] != inner || from_.dtypes[f] != to_.dtypes[t] ||
            !is_equal(f, t, lead, cell))
          continue;
        FoundRow& row = rows[from_.patterns[f].key];
        if (row.from.size() != cell) continue;
        row.to = {t};
        row.lead = stacked;
        row.from.push_back({f});
        any = true;
      }
      if (!any) return;
    }
    for (auto& [key, row] : rows) {
      if (row.from.size() == cells && cells > 0) by_key[key].rows.push_back(std::move(row));
    }
  }
  bool is_equal(std::size_t f, std::size_t t, std::size_t lead, std::size_t cell) {
    const LineHashes &a = from_.rows[f], &b = to_.rows[t];
    if (b.dims.size() >= lead && a.dims.size() + lead == b.dims.size()) {
      const LineCell here = cell_of_lines(b.hashes, b.dims, lead, cell);
      return std::equal(a.hashes.begin(), a.hashes.end(), here.hashes.begin(), here.hashes.end());
    }
    // Short lines may span stacked dims, so elements are compared instead.
    const LineSequence &one = elements_of(from_, from_elements_, f),
                       &other = elements_of(to_, to_elements_, t);
    if (one.empty() || other.empty()) return false;
    const LineCell here = cell_of_lines(other, to_.shapes[t], lead, cell);
    return std::equal(one.begin(), one.end(), here.hashes.begin(), here.hashes.end());
  }

  void take(FoundRow row) {
    const bool is_constant = !has_distinctive_lines(to_, row.to.front());
    to_.explained[row.to.front()] = true;
    for (const auto& cell : row.from) {
      for (std::size_t f : cell) from_.explained[f] = true;
    }
    rows_.push_back({std::move(row), false, is_constant});
  }

  LearnSide& from_;
  LearnSide& to_;
  std::vector<LearnedRow>& rows_;
  std::vector<std::size_t> templates_;  // indices in rows_
  std::map<std::string, std::set<std::string>> links_;
  std::set<std::pair<std::string, std::string>> key_pairs_;  // key in `to`, key in `from`
  std::map<std::string, std::vector<std::size_t>> by_place_, groups_;
  std::map<std::size_t, LineSequence> from_elements_, to_elements_;
  std::size_t held_ = 0;
};

}  // namespace

void learn_by_name(LearnSide& from, LearnSide& to, std::vector<LearnedRow>& rows) {
  NameLearner(from, to, rows).run();
}

}  // namespace shw

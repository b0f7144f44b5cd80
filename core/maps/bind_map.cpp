#include "core/maps/bind_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/spelling.h"
#include "core/maps/bind_ops.h"

namespace shw {
namespace {

using Rendered = std::vector<std::string>;

// The tensors found for one row, by the values of the stacked counters.
struct FoundRow {
  std::map<std::vector<std::int64_t>, Rendered> cells;
};

class MapBinder {
 public:
  MapBinder(const ModelMap& map, MapDirection way, const ReadTensors& read, const ModelFacts& facts)
      : map_(map),
        way_(way),
        facts_(facts),
        tensors_(read.tensors),
        names_(read.names),
        values_(map, facts, tensors_, names_),
        used_(tensors_.size(), false) {
    bound_.stripped = read.stripped;
  }

  std::size_t count() {
    std::vector<bool> found(tensors_.size(), false);
    for (const MapRow& row : map_.rows) {
      for (const CounterPattern& pattern : is_forward() ? row.from : row.to) {
        for (std::size_t index : names_.indices(pattern, value_of())) found[index] = true;
      }
    }
    return static_cast<std::size_t>(std::count(found.begin(), found.end(), true));
  }

  Result<BoundMap> bind() {
    bound_.way = way_;
    mark_copies_as_used();
    for (std::size_t r = 0; r < map_.rows.size(); ++r) {
      if (is_forward() && !is_row_of_chosen_forms(map_.rows[r])) continue;
      if (!is_forward() && !is_of_model(map_.rows[r].models)) continue;
      if (!is_of_model(map_.rows[r].only_models)) continue;
      SHW_CHECK(is_forward() ? bind_forward(r) : bind_backward(r));
    }
    add_result_copies();
    if (is_forward()) add_written_prefix();
    classify_unused_tensors();
    return std::move(bound_);
  }

  void choose_numbered() { layers_ = "numbered"; }
  bool has_gaps() const { return has_gaps_; }

 private:
  bool is_forward() const { return way_ == MapDirection::kForward; }
  LookUpValue value_of() {
    return [this](std::string_view name) { return values_.value(name); };
  }

  // The form to write, among alternatives.
  std::string chosen(const MapForms& forms) const {
    for (const std::string& choice : forms.choices) {
      if (std::find(facts_.forms_named_by_user.begin(), facts_.forms_named_by_user.end(), choice) !=
          facts_.forms_named_by_user.end())
        return choice;
      if (choice == layers_) return choice;
    }
    for (const std::string& key : forms.second_where) {
      if (facts_.config.contains(key) && forms.choices.size() > 1) return forms.choices[1];
    }
    return forms.choices.front();
  }
  bool is_row_of_chosen_forms(const MapRow& row) const {
    for (const MapForms& forms : map_.forms) {
      auto is_here = [&](const std::string& form) {
        return std::find(forms.choices.begin(), forms.choices.end(), form) != forms.choices.end();
      };
      if (std::none_of(row.forms.begin(), row.forms.end(), is_here)) continue;
      if (std::find(row.forms.begin(), row.forms.end(), chosen(forms)) == row.forms.end())
        return false;
    }
    return true;
  }
  bool is_of_model(const std::vector<std::string>& models) const {
    return models.empty() ||
           std::find(models.begin(), models.end(), facts_.model_type) != models.end();
  }

  bool is_there(const CounterPattern& pattern, const Counters& counters) {
    const auto name = name_of(pattern, counters, value_of());
    return name && names_.find(*name);
  }
  bool has_any_tensor(const std::vector<CounterPattern>& patterns, const Counters& counters) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const CounterPattern& one) { return is_there(one, counters); });
  }
  bool is_below(const Counters& counters, const CounterPattern& pattern) {
    for (const auto& [counter, name] : map_.below) {
      auto found = counters.find(counter);
      const bool is_plain = std::any_of(pattern.slots.begin(), pattern.slots.end(),
                                        [&, &named = counter](const auto& slot) {
                                          return slot.counter == named && slot.plus.empty();
                                        });
      if (found == counters.end() || !is_plain) continue;
      const auto limit = values_.value(name);
      if (limit && found->second >= *limit) return false;
    }
    return true;
  }

  // The names for all patterns if each exists and is unused; otherwise empty.
  Rendered unused_names_for_patterns(const std::vector<CounterPattern>& patterns,
                                     const Counters& counters) {
    Rendered out;
    for (const CounterPattern& pattern : patterns) {
      auto name = name_of(pattern, counters, value_of());
      const auto at = name ? names_.find(*name) : std::nullopt;
      if (!at || used_[*at]) return {};
      out.push_back(std::move(*name));
    }
    return out;
  }
  Rendered names(const std::vector<CounterPattern>& patterns, const Counters& counters) {
    Rendered out;
    for (const CounterPattern& pattern : patterns)
      out.push_back(name_of(pattern, counters, value_of()).value_or(std::string()));
    return out;
  }
  const Extents& shape_of(const std::string& name) const {
    return tensors_[*names_.find(name)].shape;
  }

  static std::vector<std::string> stacked_counters_of(const MapRow& row) {
    std::vector<std::string> out;
    for (const std::string& counter : counters_in(row.from.front())) {
      if (!row.to.front().has(counter)) out.push_back(counter);
    }
    return out;
  }

  tl::unexpected<Error> with_row_in_error(std::size_t r, const std::string& tensor,
                                          Error error) const {
    error.message = fmt::format("the map {} does not fit: {}", map_.name, error.message);
    if (error.place.tensor.empty()) error.place.tensor = tensor;
    if (error.advice.empty())
      error.advice = fmt::format("its row makes {} of {}", map_.rows[r].to.front().text,
                                 map_.rows[r].from.front().text);
    return tl::unexpected<Error>(std::move(error));
  }

  Status bind_forward(std::size_t r) {
    const MapRow& row = map_.rows[r];
    const std::vector<std::string> stacked = stacked_counters_of(row);
    std::map<Rendered, FoundRow> found;
    std::vector<Rendered> order;
    for (const auto& match : names_.matches(row.from.front(), value_of())) {
      const Counters& counters = match.counters;
      if (!is_below(counters, row.from.front())) continue;
      if (!row.from_with.empty() && !has_any_tensor(row.from_with, counters)) continue;
      if (has_any_tensor(row.from_without, counters)) continue;
      Rendered from = unused_names_for_patterns(row.from, counters);
      if (from.empty()) continue;
      std::vector<std::int64_t> at;
      for (const std::string& counter : stacked) at.push_back(counters.at(counter));
      const Rendered to = names(row.to, counters);
      auto [place, is_new] = found.try_emplace(to);
      if (is_new) order.push_back(to);
      place->second.cells.emplace(std::move(at), std::move(from));
    }
    for (const Rendered& to : order) SHW_CHECK(add_forward(r, to, found[to], stacked));
    return {};
  }

  // Sizes of the stacked counters if their values are 0, 1, 2, ... without gaps; otherwise nullopt.
  static std::optional<Extents> lead_of(const FoundRow& found, std::size_t counters) {
    Extents lead(counters, 0);
    for (const auto& [at, names] : found.cells) {
      for (std::size_t d = 0; d < counters; ++d) lead[d] = std::max(lead[d], at[d] + 1);
    }
    const auto count = volume(lead);
    return count && *count == static_cast<std::int64_t>(found.cells.size()) ? std::optional(lead)
                                                                            : std::nullopt;
  }

  void add_incomplete(const FoundRow& found) {
    for (const auto& [at, from] : found.cells) {
      for (const std::string& name : from) {
        used_[*names_.find(name)] = true;
        bound_.incomplete.push_back(name);
      }
    }
  }

  Status add_forward(std::size_t r, const Rendered& to, const FoundRow& found,
                     const std::vector<std::string>& stacked) {
    BoundRow bound{.row = r, .to = to, .from = {}};
    auto lead = lead_of(found, stacked.size());
    const auto limit = stacked.empty() ? map_.below.end() : map_.below.find(stacked.front());
    const auto count = limit == map_.below.end() ? std::nullopt : values_.value(limit->second);
    if (!lead || (count && lead->front() != *count)) {
      if (facts_.allows_gaps) {
        add_incomplete(found);
        return {};
      }
      has_gaps_ = true;
      return with_row_in_error(
          r, to.front(),
          Error{ErrorKind::kUnsupported,
                "what is to be stacked in one tensor is not there for every layer or "
                "expert"});
    }
    bound.lead = std::move(*lead);
    for (const auto& [at, from] : found.cells) {
      bound.from.push_back(from);
      std::vector<Extents> shapes;
      for (const std::string& name : from) {
        used_[*names_.find(name)] = true;
        shapes.push_back(shape_of(name));
      }
      if (bound.from_shapes.empty()) bound.from_shapes = shapes;
      if (shapes != bound.from_shapes)
        return with_row_in_error(
            r, from.front(),
            Error{ErrorKind::kUnsupported,
                  "its shape is not that of the others that it is stacked with"});
    }
    if (auto fits = bind_ops_forward(map_.rows[r], values_, bound); !fits)
      return with_row_in_error(r, bound.from.front().front(), std::move(fits).error());
    bound_.rows.push_back(std::move(bound));
    return {};
  }

  Status bind_backward(std::size_t r) {
    const MapRow& row = map_.rows[r];
    for (const auto& match : names_.matches(row.to.front(), value_of())) {
      if (!row.to_with.empty() && !has_any_tensor(row.to_with, match.counters)) continue;
      Rendered to = unused_names_for_patterns(row.to, match.counters);
      if (to.empty()) continue;
      for (const std::string& name : to) used_[*names_.find(name)] = true;
      if (auto fits = add_backward(r, to, match.counters); !fits)
        return with_row_in_error(r, to.front(), std::move(fits).error());
    }
    return {};
  }

  Status add_backward(std::size_t r, const Rendered& to, Counters counters) {
    const MapRow& row = map_.rows[r];
    const std::vector<std::string> stacked = stacked_counters_of(row);
    for (const CounterPattern& pattern : row.from) {
      for (const CounterPattern::Slot& slot : pattern.slots) {
        if (!slot.plus.empty()) SHW_CHECK(values_.needed(slot.plus));
      }
    }
    BoundRow bound{.row = r, .to = to, .from = {}};
    for (const std::string& name : to) {
      const Extents& shape = shape_of(name);
      if (shape.size() < stacked.size())
        return fail(ErrorKind::kUnsupported, "it has no dim for every counter that is stacked");
      const auto inner = shape.begin() + static_cast<std::ptrdiff_t>(stacked.size());
      bound.lead.assign(shape.begin(), inner);
      bound.to_shapes.emplace_back(inner, shape.end());
    }
    SHW_CHECK(bind_ops_backward(row, values_, bound));
    const auto cells = volume(bound.lead);
    if (!cells || *cells > kMaxCells - cells_made_)
      return fail(ErrorKind::kUnsupported,
                  "stacks of more than 4,194,304 tensors are not taken apart");
    cells_made_ += *cells;
    for (std::int64_t cell = 0; cell < *cells; ++cell) {
      std::int64_t rest = cell;
      for (std::size_t d = stacked.size(); d-- > 0;) {
        counters[stacked[d]] = rest % bound.lead[d];
        rest /= bound.lead[d];
      }
      bound.from.push_back(names(row.from, counters));
    }
    bound_.rows.push_back(std::move(bound));
    return {};
  }

  // Visits each copy on this side for every counter value, with the tensor that must be written
  // next to it.
  template <class Each>
  void for_each_map_copy(const MapCopy& copy, const Each& each) {
    if (values_.size(copy.where).value_or(0) == 0) return;
    const std::int64_t count = copy.count.empty() ? 1 : values_.size(copy.count).value_or(0);
    const auto counters = counters_in(copy.tensor);
    for (std::int64_t i = 0; i < std::min<std::int64_t>(count, kMaxCopies); ++i) {
      Counters at;
      if (!counters.empty()) at[counters.front()] = i;
      auto tensor = name_of(copy.tensor, at, value_of());
      auto of = name_of(copy.of, at, value_of());
      if (tensor && of) each(*tensor, *of, name_of(copy.with, at, value_of()).value_or(""));
    }
  }
  void mark_copies_as_used() {
    for (const MapCopy& copy : is_forward() ? map_.from_copies : map_.to_copies) {
      for_each_map_copy(copy,
                        [&](const std::string& tensor, const std::string& of, std::string_view) {
                          const auto at = names_.find(tensor);
                          if (!at || !names_.find(of)) return;
                          used_[*at] = true;
                          bound_.omitted_copies.emplace_back(tensor, of);
                        });
    }
  }
  void add_written_prefix() {
    for (BoundRow& row : bound_.rows) {
      for (std::string& name : row.to) name.insert(0, map_.written_prefix);
    }
    for (auto& [copy, of] : bound_.copies) {
      copy.insert(0, map_.written_prefix);
      of.insert(0, map_.written_prefix);
    }
  }
  void add_result_copies() {
    std::set<std::string, std::less<>> made;
    for (const BoundRow& row : bound_.rows) {
      if (is_forward()) made.insert(row.to.begin(), row.to.end());
      if (!is_forward()) {
        for (const Rendered& from : row.from) made.insert(from.begin(), from.end());
      }
    }
    for (const MapCopy& copy : is_forward() ? map_.to_copies : map_.from_copies) {
      for_each_map_copy(
          copy, [&](const std::string& tensor, const std::string& of, std::string_view with) {
            if (!with.empty() && !made.contains(with)) return;
            if (made.contains(of) && !made.contains(tensor)) bound_.copies.emplace_back(tensor, of);
          });
    }
  }

  // Sorts tensors without a row: left out by the map, or unknown to it.
  void classify_unused_tensors() {
    const auto& patterns = is_forward() ? map_.from_left_out : map_.to_left_out;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (used_[i]) continue;
      const std::string& name = tensors_[i].fqn;
      const bool is_left =
          std::any_of(patterns.begin(), patterns.end(),
                      [&](const std::string& one) { return matches_pattern(one, name); });
      (is_left ? bound_.left_out : bound_.without_row).push_back(name);
    }
  }

  static constexpr std::int64_t kMaxCells = 1 << 22;
  static constexpr std::int64_t kMaxCopies = 1024;

  const ModelMap& map_;
  MapDirection way_;
  const ModelFacts& facts_;
  const std::vector<MapTensor>& tensors_;
  const NumberedNames& names_;
  MapValues values_;
  std::vector<bool> used_;
  std::string layers_;
  bool has_gaps_ = false;
  std::int64_t cells_made_ = 0;
  BoundMap bound_;
};

// The prefix before all names with which most names have a row.
struct PrefixChoice {
  std::string prefix = {};
  std::size_t rows = 0;                  // number of tensors that have one
  std::optional<ReadTensors> read = {};  // set if the prefix is not empty
};
PrefixChoice choose_prefix(const ModelMap& map, MapDirection way,
                           std::span<const MapTensor> tensors, const ReadTensors& plain,
                           const ModelFacts& facts) {
  PrefixChoice best{.rows = MapBinder(map, way, plain, facts).count()};
  for (const std::string& prefix :
       way == MapDirection::kForward ? map.from_prefixes : map.to_prefixes) {
    const bool stands =
        std::any_of(plain.tensors.begin(), plain.tensors.end(),
                    [&](const MapTensor& tensor) { return tensor.fqn.starts_with(prefix); });
    if (!stands) continue;
    ReadTensors read = read_tensors(tensors, prefix);
    const std::size_t rows = MapBinder(map, way, read, facts).count();
    if (rows > best.rows) best = {prefix, rows, std::move(read)};
  }
  return best;
}

}  // namespace

MapFit measure_map_fit(const ModelMap& map, MapDirection way, std::span<const MapTensor> tensors,
                       const ReadTensors& plain, const ModelFacts& facts) {
  const PrefixChoice choice = choose_prefix(map, way, tensors, plain, facts);
  const std::string written = way == MapDirection::kForward ? std::string() : map.written_prefix;
  return {choice.rows, choice.prefix == written};
}

MapFit measure_map_fit(const ModelMap& map, MapDirection way, std::span<const MapTensor> tensors,
                       const ModelFacts& facts) {
  return measure_map_fit(map, way, tensors, read_tensors(tensors, {}), facts);
}

Result<BoundMap> bind_map(const ModelMap& map, MapDirection way, std::span<const MapTensor> tensors,
                          const ModelFacts& facts) {
  const ReadTensors plain = read_tensors(tensors, {});
  const PrefixChoice choice = choose_prefix(map, way, tensors, plain, facts);
  const ReadTensors& read = choice.read ? *choice.read : plain;
  MapBinder binder(map, way, read, facts);
  auto bound = binder.bind();
  if (bound || !binder.has_gaps()) return bound;
  // The numbers of layers have gaps, so the layers cannot be stacked.
  MapBinder numbered(map, way, read, facts);
  numbered.choose_numbered();
  return numbered.bind();
}

}  // namespace shw

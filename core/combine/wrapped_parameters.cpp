#include "core/combine/wrapped_parameters.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/base/words.h"
#include "core/combine/module_names.h"

namespace shw {
namespace {

constexpr std::string_view kInner = ".base_layer";
constexpr std::size_t kMaxOfModule = 4;  // parameters per module: all their orders are tried

tl::unexpected<Error> wrapped_parameter_error(std::string why, std::string_view fqn) {
  return fail(ErrorKind::kUnsupported, std::move(why),
              Place{.file = {}, .tensor = std::string(fqn)});
}

// A parameter of the model, and the tensors of the base that contain it.
struct Parameter {
  struct Piece {
    TensorId weight{};
    std::optional<std::int64_t> expert = std::nullopt;
    std::int64_t first_row = 0;
  };
  std::string name;
  Extents shape;  // [out, in], or [experts, rows, columns]
  std::vector<Piece> pieces;

  std::int64_t experts() const { return shape.size() == 3 ? shape[0] : 1; }
};

// Matrices of each expert that form one parameter, stacked along the rows.
struct JoinedExperts {
  std::string_view parameter;
  std::array<std::string_view, 2> parts;  // an empty text is unused
};
constexpr auto kJoinedExperts = std::to_array<JoinedExperts>({
    {"gate_up_proj", {"gate_proj", "up_proj"}},
    {"gate_up_proj", {"w1", "w3"}},
    {"down_proj", {"down_proj", ""}},
    {"down_proj", {"w2", ""}},
});

// Mixtral's files use another name for the block than its model.
std::optional<TensorId> find_with_mixtral_block_name(BaseNames& names, const std::string& name) {
  constexpr std::string_view kInModel = ".mlp.", kInFile = ".block_sparse_moe.";
  if (auto found = names.find(name)) return found;
  const std::size_t at = name.find(kInModel);
  if (at == std::string::npos) return std::nullopt;
  return names.find(std::string(name).replace(at, kInModel.size(), kInFile));
}

class WrappedModules {
 public:
  WrappedModules(const std::shared_ptr<const Checkpoint>& base,
                 const std::shared_ptr<const Checkpoint>& adapter, BaseNames& names)
      : base_(base), adapter_(adapter), names_(names) {}

  // `levels`: matrices by nesting level, outermost first.
  Status add(const std::string& module, const std::vector<std::string>& parameters,
             std::vector<LoraParts> levels) {
    const TensorId any = levels.front().begin()->second;
    if (parameters.size() != levels.size() || levels.size() > kMaxOfModule)
      return wrapped_parameter_error(
          fmt::format("is of {} of matrices, and target_parameters names {} of it",
                      plural(levels.size(), "pair"), parameters.size()),
          adapter_->fqn(any));
    Module found{module, {}, std::move(levels)};
    for (const LoraParts& level : found.levels) {
      if (!level.contains(LoraPart::kA) || !level.contains(LoraPart::kB) || level.size() != 2)
        return wrapped_parameter_error("has no second matrix next to it",
                                       adapter_->fqn(level.begin()->second));
    }
    for (const std::string& name : parameters) {
      auto parameter = parameter_of(module + "." + name);
      if (!parameter)
        return wrapped_parameter_error(
            fmt::format("belongs to {}.{}, which the base does not have in a form "
                        "that is merged",
                        module, name),
            adapter_->fqn(any));
      found.parameters.push_back(std::move(*parameter));
    }
    modules_.push_back(std::move(found));
    return {};
  }

  Result<std::vector<ParameterProduct>> products() const {
    std::optional<bool> input_first;
    for (const bool is_input_first : {false, true}) {
      const bool fits = std::ranges::all_of(modules_, [&](const Module& module) {
        return !parameter_orders_that_fit(module, is_input_first).empty();
      });
      if (!fits) continue;
      if (input_first && has_stacks())
        return ambiguous(modules_.front(), "experts are as long as they are wide");
      if (!input_first) input_first = is_input_first;
    }
    if (!input_first)
      return wrapped_parameter_error(
          "has matrices next to it that do not make the parameters of the base",
          adapter_->fqn(first_of(modules_.front())));
    std::vector<ParameterProduct> made;
    for (const Module& module : modules_) {
      const auto orders = parameter_orders_that_fit(module, *input_first);
      if (orders.size() != 1) return ambiguous(module, "its matrices fit several parameters");
      for (std::size_t level = 0; level < module.levels.size(); ++level)
        add_products(module.parameters[orders.front()[level]], module.levels[level], *input_first,
                     made);
    }
    return made;
  }

 private:
  using Order = std::vector<std::size_t>;  // order of the parameters, by nesting level
  struct Module {
    std::string name;
    std::vector<Parameter> parameters;
    std::vector<LoraParts> levels;
  };

  TensorId first_of(const Module& module) const { return module.levels.front().begin()->second; }

  tl::unexpected<Error> ambiguous(const Module& module, const char* why) const {
    return wrapped_parameter_error(
        fmt::format("is not merged: {}, so that shapes do not say what is meant", why),
        adapter_->fqn(first_of(module)));
  }

  bool has_stacks() const {
    return std::ranges::any_of(modules_, [](const Module& module) {
      return std::ranges::any_of(module.parameters, [](const Parameter& parameter) {
        return parameter.shape.size() == 3;
      });
    });
  }

  std::optional<Parameter> parameter_of(const std::string& name) {
    if (auto weight = find_with_mixtral_block_name(names_, name)) {
      const ExtentsView shape = base_->shape(*weight);
      if (shape.size() != 2 && shape.size() != 3) return std::nullopt;
      Parameter whole{name, {shape.begin(), shape.end()}, {{*weight}}};
      if (shape.size() == 2) whole.pieces.front().expert = 0;
      return whole;
    }
    for (const JoinedExperts& joined : kJoinedExperts) {
      if (last_part(name) != joined.parameter) continue;
      if (auto found = joined_parameter(name, joined)) return found;
    }
    return std::nullopt;
  }

  // A parameter formed from matrices [out, in] of each expert, all of one shape.
  std::optional<Parameter> joined_parameter(const std::string& name, const JoinedExperts& joined) {
    const std::string experts(module_of(name));
    Parameter made{name, {0, 0, 0}, {}};
    for (std::int64_t expert = 0;; ++expert) {
      std::int64_t row = 0;
      for (std::string_view part : joined.parts) {
        if (part.empty()) continue;
        const auto weight = find_with_mixtral_block_name(
            names_, fmt::format("{}.{}.{}.weight", experts, expert, part));
        if (!weight && row == 0) return expert == 0 ? std::nullopt : std::optional(made);
        if (!weight || base_->shape(*weight).size() != 2) return std::nullopt;
        const ExtentsView shape = base_->shape(*weight);
        if (made.shape[2] == 0) made.shape[2] = shape[1];
        if (shape[0] < 1 || shape[1] != made.shape[2]) return std::nullopt;
        made.pieces.push_back({*weight, expert, row});
        row += shape[0];
      }
      if (expert == 0) made.shape[1] = row;
      if (row != made.shape[1]) return std::nullopt;
      ++made.shape[0];
    }
  }

  bool fits(const Parameter& parameter, const LoraParts& level, bool is_input_first) const {
    const ExtentsView a = adapter_->shape(level.at(LoraPart::kA));
    const ExtentsView b = adapter_->shape(level.at(LoraPart::kB));
    const std::int64_t experts = parameter.experts();
    if (a.size() != 2 || b.size() != 2 || a[0] != b[1] || a[0] < 1 || experts < 1 ||
        a[0] % experts != 0)
      return false;
    const std::size_t rows = parameter.shape.size() - 2;
    const bool turned = is_input_first && parameter.shape.size() == 3;
    return a[1] == parameter.shape[turned ? rows : rows + 1] &&
           b[0] == parameter.shape[turned ? rows + 1 : rows];
  }

  std::vector<Order> parameter_orders_that_fit(const Module& module, bool is_input_first) const {
    Order order(module.levels.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::vector<Order> found;
    do {
      bool is_right = true;
      for (std::size_t level = 0; level < order.size(); ++level)
        is_right =
            is_right && fits(module.parameters[order[level]], module.levels[level], is_input_first);
      if (is_right) found.push_back(order);
    } while (std::next_permutation(order.begin(), order.end()));
    return found;
  }

  void add_products(const Parameter& parameter, const LoraParts& level, bool is_input_first,
                    std::vector<ParameterProduct>& made) const {
    const TensorId a = level.at(LoraPart::kA), b = level.at(LoraPart::kB);
    for (const Parameter::Piece& piece : parameter.pieces)
      made.push_back({parameter.name, piece.weight,
                      ExpertProduct{.weight = readable(base_, piece.weight),
                                    .a = readable(adapter_, a),
                                    .b = readable(adapter_, b),
                                    .experts = parameter.experts(),
                                    .rank = adapter_->shape(a)[0] / parameter.experts(),
                                    .expert = piece.expert,
                                    .first_row = piece.first_row,
                                    .is_input_first = is_input_first && parameter.shape.size() == 3,
                                    .scale = 1}});
  }

  const std::shared_ptr<const Checkpoint>&base_, &adapter_;
  BaseNames& names_;
  std::vector<Module> modules_;
};

// The parameters in target_parameters that belong to a module: "gate_up_proj".
std::vector<std::string> parameters_of(const AdapterConfig& config, const std::string& module) {
  std::vector<std::string> found;
  for (const std::string& target : config.parameters) {
    const std::string last(last_part(target));
    if (ends_in_module(module + "." + last, target) &&
        std::ranges::find(found, last) == found.end())
      found.push_back(last);
  }
  return found;
}

}  // namespace

Result<std::vector<ParameterProduct>> consume_wrapped_parameters(
    const std::shared_ptr<const Checkpoint>& base, const std::shared_ptr<const Checkpoint>& adapter,
    const AdapterConfig& config, BaseNames& names, std::map<std::string, LoraParts>& modules) {
  if (config.parameters.empty()) return std::vector<ParameterProduct>();
  std::map<std::string, std::map<std::size_t, LoraParts>> wrapped;  // by module and nesting depth
  for (auto it = modules.begin(); it != modules.end();) {
    std::string module = it->first;
    std::size_t depth = 0;
    for (; module.ends_with(kInner); ++depth) module.resize(module.size() - kInner.size());
    if (parameters_of(config, module).empty()) {
      ++it;
      continue;
    }
    wrapped[module].emplace(depth, std::move(it->second));
    it = modules.erase(it);
  }
  WrappedModules all(base, adapter, names);
  for (auto& [module, by_depth] : wrapped) {
    std::vector<LoraParts> levels;
    for (auto& [depth, parts] : by_depth) levels.push_back(std::move(parts));
    SHW_CHECK(all.add(module, parameters_of(config, module), std::move(levels)));
  }
  if (wrapped.empty()) return std::vector<ParameterProduct>();
  return all.products();
}

}  // namespace shw

#include "core/verbs/trainer_folder.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/parse_text.h"
#include "core/base/words.h"
#include "core/formats/joined_folders.h"
#include "core/formats/plain_value.h"
#include "core/model/state_names.h"
#include "core/transform/entry_value.h"
#include "core/verbs/trainer_groups.h"

namespace shw::verbs {
namespace {

constexpr std::uint64_t kMaxValue = std::uint64_t{64} << 20;  // bytes of a list of numbers
constexpr double kMaxNumber = 1e9;                            // of a parameter
constexpr std::string_view kNumberedStates = "state.", kNumberedGroups = "param_groups.";

// The parts of "state.3.exp_avg" or "param_groups.0.lr" behind the first one.
struct NumberedName {
  std::size_t number = 0;
  std::string rest;
};
std::optional<NumberedName> numbered_name(std::string_view top, std::string_view fqn) {
  if (!fqn.starts_with(top)) return std::nullopt;
  fqn.remove_prefix(top.size());
  const std::size_t dot = fqn.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto number = parse_number<std::size_t>(fqn.substr(0, dot));
  if (!number) return std::nullopt;
  return NumberedName{*number, std::string(fqn.substr(dot + 1))};
}

tl::unexpected<Error> does_not_fit(const std::string& file, std::string why) {
  return fail(ErrorKind::kUnsupported, std::move(why), {file},
              "Give the names of the parameters that the optimizer has, in the order of "
              "named_parameters(): CHECKPOINT/@optimizer=names.txt");
}

class TrainerJoin {
 public:
  TrainerJoin(std::shared_ptr<const Checkpoint> weights,
              std::shared_ptr<const Checkpoint> optimizer, std::string file)
      : weights_(std::move(weights)), optimizer_(std::move(optimizer)), file_(std::move(file)) {}

  Result<std::shared_ptr<const Checkpoint>> run(const std::string& order, Progress* progress) {
    SHW_CHECK(read_groups());
    SHW_TRY(const std::vector<ParameterNames> names, names_of_groups(order, progress));
    SHW_CHECK(number(names));
    JoinedPart of_weights{.checkpoint = weights_, .folder = {}, .prefix = {}};
    JoinedPart of_optimizer{.checkpoint = optimizer_, .folder = {}, .prefix = "optimizer."};
    SHW_CHECK(rename_states(of_optimizer));
    SHW_CHECK(rename_settings(names, of_optimizer));
    return join_folders(weights_->directory(), {std::move(of_weights), std::move(of_optimizer)},
                        JoinedFrom::kComputation);
  }

 private:
  // The numbers of each group's parameters, and their names where torch saved them.
  Status read_groups() {
    std::map<std::size_t, std::vector<std::size_t>> numbers;
    std::map<std::size_t, ParameterNames> names;
    const auto objects = optimizer_->objects();
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const auto name = numbered_name(kNumberedGroups, objects[i].fqn);
      if (!name || (name->rest != "params" && name->rest != "param_names")) continue;
      SHW_TRY(const PlainValue value, read_plain_value(*optimizer_, i, kMaxValue));
      for (const PlainValue& item : value.items) {
        if (name->rest == "param_names")
          names[name->number].push_back(item.text);
        else if (item.kind == PlainValue::Kind::kNumber && item.number >= 0 &&
                 item.number < kMaxNumber)
          numbers[name->number].push_back(static_cast<std::size_t>(item.number));
      }
      if (name->rest == "params") numbers.try_emplace(name->number);
    }
    std::size_t next = 0;
    for (auto& [group, of_group] : numbers) {
      for (const std::size_t number : of_group) {
        if (number != next++)
          return does_not_fit(file_, "its parameters are not numbered consecutively");
      }
      sizes_.push_back(of_group.size());
      if (names[group].size() == of_group.size()) saved_names_.push_back(names[group]);
    }
    if (next != 0) return {};
    return fail(ErrorKind::kUnsupported,
                "has no groups of numbered parameters as torch optimizers save them", {file_});
  }

  Result<std::vector<ParameterNames>> names_of_groups(const std::string& path,
                                                      Progress* progress) const {
    if (path.empty() && saved_names_.size() == sizes_.size()) return saved_names_;
    SHW_TRY(ParameterOrder order,
            path.empty() ? parameter_order_of(*weights_) : read_parameter_order(path, progress));
    if (order.are_groups) return std::move(order.groups);
    const std::vector<MapTensor> parameters = parameters_in(order);
    if (sizes_.size() == 1) {
      std::vector<ParameterNames> one(1);
      for (const MapTensor& parameter : parameters) one.front().push_back(parameter.fqn);
      return one;
    }
    return group_as_trainer(parameters);
  }
  // Names with their shapes; of a state dict those that the weights' files have.
  std::vector<MapTensor> parameters_in(const ParameterOrder& order) const {
    std::vector<MapTensor> parameters;
    for (const std::string& name : order.groups.front()) {
      const auto weight = weights_->find(name);
      if (!weight && order.is_state_dict) continue;
      parameters.push_back({name, weight ? copy_of(weights_->shape(*weight)) : Extents()});
    }
    return parameters;
  }

  Status number(const std::vector<ParameterNames>& groups) {
    std::vector<std::size_t> sizes;
    for (const ParameterNames& group : groups) sizes.push_back(group.size());
    if (sizes != sizes_)
      return does_not_fit(file_,
                          fmt::format("its groups have {} parameters, but the known order has {}",
                                      sizes_text(sizes_), sizes_text(sizes)));
    std::set<std::string> seen;
    for (const ParameterNames& group : groups) {
      for (const std::string& name : group) {
        if (!seen.insert(name).second)
          return does_not_fit(file_,
                              fmt::format("two of its parameters would get the name {}", name));
        if (!weights_->find(name))
          return does_not_fit(file_, fmt::format("no weight has the name {}", name));
        names_.push_back(name);
      }
    }
    return {};
  }
  static std::string sizes_text(const std::vector<std::size_t>& sizes) {
    std::string text;
    for (const std::size_t size : sizes)
      text += (text.empty() ? "" : " and ") + std::to_string(size);
    return text;
  }

  Status rename_states(JoinedPart& part) const {
    for (const TensorId tensor : optimizer_->tensors()) {
      const std::string fqn(optimizer_->fqn(tensor));
      const auto name = numbered_name(kNumberedStates, fqn);
      if (!name || name->number >= names_.size())
        return does_not_fit(file_, fmt::format("{} belongs to no parameter of its groups", fqn));
      const std::string& of = names_[name->number];
      const TensorId weight = *weights_->find(of);
      const bool is_of_weight = name->rest != "step" && !optimizer_->shape(tensor).empty();
      if (is_of_weight && !std::ranges::equal(optimizer_->shape(tensor), weights_->shape(weight)))
        return does_not_fit(file_,
                            fmt::format("{} is {}, but its parameter by this order, {}, is {}", fqn,
                                        shw::to_text(optimizer_->shape(tensor)), of,
                                        shw::to_text(weights_->shape(weight))));
      part.new_names[fqn] = {"optimizer.state." + of + "." + name->rest,
                             {"optimizer", "state", of, name->rest}};
    }
    return {};
  }

  // Replaces the numbers of each group by names.
  Status rename_settings(const std::vector<ParameterNames>& groups, JoinedPart& part) const {
    const auto objects = optimizer_->objects();
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const auto name = numbered_name(kNumberedGroups, objects[i].fqn);
      if (!name) continue;
      if (name->rest == "params" || name->rest == "param_names") {
        part.left_out_objects.insert(i);
        continue;
      }
      part.new_names[objects[i].fqn] = setting_name(name->number, name->rest);
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      SHW_TRY(std::string opcodes, opcodes_of(EntryValue(groups[g])));
      part.added_entries.emplace_back(setting_name(g, "params"), std::move(opcodes));
    }
    return {};
  }
  static NewEntryName setting_name(std::size_t group, const std::string& setting) {
    return {fmt::format("optimizer.param_groups.{}.{}", group, setting),
            {"optimizer", "param_groups", static_cast<std::int64_t>(group), setting}};
  }

  std::shared_ptr<const Checkpoint> weights_, optimizer_;
  std::string file_;
  std::vector<std::size_t> sizes_;           // of the groups
  std::vector<ParameterNames> saved_names_;  // of those groups that have names
  ParameterNames names_;                     // by number
};

}  // namespace

Result<std::string> trainer_optimizer_file(const Checkpoint& weights) {
  if (weights.directory() != nullptr) {
    for (const std::string file : {"optimizer.pt", "optimizer.bin"}) {
      if (weights.directory()->stat(file).kind == EntryKind::kFile) return file;
    }
  }
  return fail(ErrorKind::kUsage, "no optimizer.pt or optimizer.bin is next to the weights", {},
              "Add /@optimizer to a folder that Trainer or accelerate saved.");
}

Result<std::shared_ptr<const Checkpoint>> join_trainer_optimizer(
    std::shared_ptr<const Checkpoint> weights, std::shared_ptr<const Checkpoint> optimizer,
    const std::string& order, Progress* progress) {
  SHW_TRY(const std::string file, trainer_optimizer_file(*weights));
  return TrainerJoin(std::move(weights), std::move(optimizer), file).run(order, progress);
}

}  // namespace shw::verbs

#include "core/formats/adam_settings.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "core/formats/items/items.h"
#include "core/formats/plain_value.h"
#include "core/model/state_names.h"

namespace shw {
namespace {

constexpr std::string_view kGroups = "param_groups";
constexpr std::uint64_t kMostEntry = std::uint64_t{64} << 20;  // bytes
constexpr int kMostNesting = 4;                                // of optimizers in one another
constexpr std::size_t kMaxTriedParameters = 64;                // until one decays

using Kind = PlainValue::Kind;

std::vector<double> numbers_in(const PlainValue* value) {
  if (value == nullptr) return {};
  if (value->kind == Kind::kNumber) return {value->number};
  std::vector<double> out;
  for (const PlainValue& item : value->items) {
    if (value->kind != Kind::kList || item.kind != Kind::kNumber) return {};
    out.push_back(item.number);
  }
  return out;
}

std::optional<double> number_in(const PlainValue& dict, std::string_view key) {
  const std::vector<double> numbers = numbers_in(find(dict, key));
  return numbers.size() == 1 ? std::optional(numbers.front()) : std::nullopt;
}

// The one number of a tensor; nullopt for other tensors and dtypes.
std::optional<double> number_of(const Checkpoint& source, TensorId tensor) {
  if (volume(source.shape(tensor)) != 1 || source.dtype(tensor) != Dtype::kFloat32)
    return std::nullopt;
  const auto values = read_tensor(source, tensor, sizeof(float));
  float number = 0;
  if (!values || values->uncovered != 0 || values->bytes.size() != sizeof number)
    return std::nullopt;
  std::memcpy(&number, values->bytes.data(), sizeof number);
  return number;
}

// Megatron multiplies the weight decay of a group by wd_mult.
bool decays(const PlainValue& group) {
  return number_in(group, "wd_mult").value_or(1) != 0 &&
         number_in(group, "weight_decay").value_or(0) != 0;
}

// True for updates that AdamW does not make.
bool differs_from_adamw(const PlainValue& group) {
  return number_in(group, "amsgrad").value_or(0) != 0 ||
         number_in(group, "maximize").value_or(0) != 0 ||
         (number_in(group, "decoupled_weight_decay").value_or(1) == 0 && decays(group));
}

class SettingsReader {
 public:
  explicit SettingsReader(const Checkpoint& source) : source_(source) {}

  std::optional<AdamSettings> read() {
    add_entries();
    add_common_file();
    if (groups_.empty()) return std::nullopt;
    for (const PlainValue& group : groups_) add_step(number_in(group, "step"));
    add_steps_of_parameters();
    const PlainValue* group = first_group_with_decay();
    if (is_uneven_ || !step_ || *step_ < 0 || differs_from_adamw(*group)) return std::nullopt;
    const std::vector<double> betas = numbers_in(find(*group, "betas"));
    const auto lr = number_in(*group, "lr"), eps = number_in(*group, "eps"),
               decay = number_in(*group, "weight_decay");
    if (betas.size() != 2 || !lr || !eps || !decay) return std::nullopt;
    for (const double number : {*step_, *lr, betas[0], betas[1], *eps, *decay}) {
      if (!std::isfinite(number)) return std::nullopt;
    }
    return AdamSettings{*step_, *lr, betas[0], betas[1], *eps, *decay};
  }

 private:
  const PlainValue* first_group_with_decay() const {
    const auto found = std::find_if(groups_.begin(), groups_.end(), decays);
    return found == groups_.end() ? &groups_.front() : &*found;
  }

  void add_step(std::optional<double> step) {
    if (!step) return;
    is_uneven_ = is_uneven_ || (step_ && *step_ != *step);
    step_ = step;
  }

  void add_steps_of_parameters() {
    for (const TensorId tensor : source_.tensors()) {
      if (is_uneven_) return;
      const auto path = parse_state_fqn(source_.fqn(tensor));
      if (!path || path->kind != "step") continue;
      const auto number = number_of(source_, tensor);
      is_uneven_ = is_uneven_ || !number;
      add_step(number);
    }
  }

  // Finds "param_groups" in a dict, or in the optimizers that it contains.
  void add_groups_in(const PlainValue& value, int depth) {
    if (const PlainValue* groups = find(value, kGroups)) {
      const PlainValue* state = find(value, "state");
      if (state != nullptr) add_step(number_in(*state, "common_step"));
      return add_groups(*groups);
    }
    if (depth == kMostNesting) return;
    if (value.kind != Kind::kDict && value.kind != Kind::kList) return;
    for (const PlainValue& item : value.items) add_groups_in(item, depth + 1);
  }
  void add_groups(const PlainValue& list) {
    for (const PlainValue& group : list.items) {
      if (group.kind == Kind::kDict) groups_.push_back(group);
    }
  }

  void add_entries() {
    // By "optimizer.param_groups.<fqn>": the entries of a parameter.
    std::map<std::string_view, std::vector<std::size_t>> flattened;
    const auto objects = source_.objects();
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const std::string_view fqn = objects[i].fqn;
      const bool is_common = fqn.starts_with("common_state/");
      if (is_common || fqn.ends_with(kGroups)) {
        auto value = read_plain_value(source_, i, kMostEntry);
        if (value) is_common ? add_groups_in(*value, 0) : add_groups(*value);
      } else if (fqn.find("param_groups.") != std::string_view::npos ||
                 fqn.find("param_to_group_meta.") != std::string_view::npos) {
        flattened[fqn.substr(0, fqn.rfind('.'))].push_back(i);
      }
    }
    add_flattened(flattened);
  }

  void add_flattened(const std::map<std::string_view, std::vector<std::size_t>>& flattened) {
    std::size_t tried = 0;
    for (const auto& [before, entries] : flattened) {
      PlainValue group;
      group.kind = Kind::kDict;
      for (const std::size_t i : entries) {
        auto value = read_plain_value(source_, i, kMostEntry);
        if (!value) continue;
        PlainValue key;
        key.kind = Kind::kText;
        key.text = source_.objects()[i].fqn.substr(before.size() + 1);
        group.items.push_back(std::move(key));
        group.items.push_back(std::move(*value));
      }
      groups_.push_back(std::move(group));
      if (decays(groups_.back()) || ++tried == kMaxTriedParameters) return;
    }
  }

  void add_common_file() {
    if (source_.directory() == nullptr) return;
    auto file = source_.directory()->open("common.pt");
    if (!file) return;
    const std::uint64_t size = (*file)->size();
    auto value = read_plain_value(std::move(*file), 0, size, kMostEntry);
    const PlainValue* optimizer = value ? find(*value, "optimizer") : nullptr;
    if (optimizer != nullptr) add_groups_in(*optimizer, 0);
  }

  const Checkpoint& source_;
  std::vector<PlainValue> groups_;
  std::optional<double> step_;
  bool is_uneven_ = false;
};

}  // namespace

std::optional<AdamSettings> adam_settings(const Checkpoint& source) {
  return SettingsReader(source).read();
}

}  // namespace shw

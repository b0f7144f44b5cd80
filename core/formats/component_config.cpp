#include "core/formats/component_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>

#include "core/base/checked.h"
#include "core/base/letter_case.h"
#include "core/base/parse_text.h"
#include "core/base/words.h"
#include "core/formats/component_constraints.h"
#include "core/formats/small_json.h"
#include "core/model/builder.h"

namespace shw {
namespace {

using Json = nlohmann::json;

// A config that constraints apply to.
struct LibraryConfig {
  std::string file, library, type;  // "config.json", "diffusers", "UNet2DConditionModel"
  Json json;
  std::span<const ConfigConstraint> constraints;
  std::string head = {};  // the weight of timm's classifier, of num_classes rows
};

// The member at "vision_cfg.width"; null if it is missing.
const Json* member_at(const Json& json, std::string_view path) {
  const Json* at = &json;
  while (!path.empty()) {
    const std::string key(path.substr(0, path.find('.')));
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
    path.remove_prefix(std::min(path.size(), key.size() + 1));
  }
  return at;
}

std::string text_of(const Json& json, std::string_view path) {
  const Json* at = member_at(json, path);
  return at != nullptr && at->is_string() ? at->get<std::string>() : std::string();
}

std::optional<std::int64_t> size_of_json(const Json* at) {
  if (at == nullptr || !at->is_number_unsigned()) return std::nullopt;
  const auto size = at->get<std::uint64_t>();
  return size > std::uint64_t{1} << 40 ? std::nullopt
                                       : std::optional(static_cast<std::int64_t>(size));
}

// A factor of a constraint's value; `number` is that in the tensor's name.
std::optional<std::int64_t> factor_of(const Json& json, std::string_view factor,
                                      std::int64_t number) {
  if (auto plain = parse_number<std::int64_t>(factor)) return plain;
  if (factor.starts_with("len(")) {
    const Json* list = member_at(json, factor.substr(4, factor.size() - 5));
    if (list == nullptr || !list->is_array()) return std::nullopt;
    return static_cast<std::int64_t>(list->size());
  }
  const std::size_t bracket = factor.find('[');
  if (bracket == std::string_view::npos) return size_of_json(member_at(json, factor));
  const Json* list = member_at(json, factor.substr(0, bracket));
  if (list == nullptr || !list->is_array()) return std::nullopt;
  const std::string_view index = factor.substr(bracket + 1, factor.size() - bracket - 2);
  const auto count = static_cast<std::int64_t>(list->size());
  std::int64_t at = index == "#" ? number : parse_number<std::int64_t>(index).value_or(0);
  if (at < 0) at += count;
  if (at < 0 || at >= count) return std::nullopt;
  return size_of_json(&(*list)[static_cast<std::size_t>(at)]);
}

std::optional<std::int64_t> value_of(const Json& json, std::string_view value,
                                     std::int64_t number) {
  std::int64_t product = 1;
  while (!value.empty()) {
    const std::string_view factor = value.substr(0, value.find('*'));
    const auto one = factor_of(json, factor, number);
    const auto more = one ? checked_mul(product, *one) : std::nullopt;
    if (!more) return std::nullopt;
    product = *more;
    value.remove_prefix(std::min(value.size(), factor.size() + 1));
  }
  return product;
}

// The number at '#', or 0; nullopt if the name is not of the pattern.
std::optional<std::int64_t> match_name(std::string_view name, std::string_view pattern) {
  if (pattern.starts_with('*')) {
    return name.ends_with(pattern.substr(1)) ? std::optional<std::int64_t>(0) : std::nullopt;
  }
  const std::size_t hash = pattern.find('#');
  if (hash == std::string_view::npos)
    return name == pattern ? std::optional<std::int64_t>(0) : std::nullopt;
  if (!name.starts_with(pattern.substr(0, hash))) return std::nullopt;
  name.remove_prefix(hash);
  std::size_t digits = 0;
  while (digits < name.size() && is_digit(name[digits])) ++digits;
  if (name.substr(digits) != pattern.substr(hash + 1)) return std::nullopt;
  return parse_number<std::int64_t>(name.substr(0, digits));
}

bool is_of_type(const ConfigConstraint& constraint, const std::string& type) {
  if (constraint.type.empty() || constraint.type == type) return true;
  return constraint.type.starts_with('*') &&
         type.find(constraint.type.substr(1)) != std::string::npos;
}

// "in_channels 9"; for a product "num_attention_heads*attention_head_dim, 64,".
std::string config_value_text(const ConfigConstraint& constraint, std::int64_t said) {
  return fmt::format("{} {}", constraint.value, said);
}

// Numbers by list: those of "down_blocks" for the names "down_blocks.0.x", "down_blocks.1.x".
using Lists = std::map<std::string, std::set<std::int64_t>>;

Lists module_lists_of(const Checkpoint& c, std::string_view pattern) {
  Lists lists;
  for (TensorId tensor : c.tensors()) {
    const std::string_view name = c.fqn(tensor);
    for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
      if (!match_name(name.substr(0, dot), pattern)) continue;
      const std::string_view rest = name.substr(dot + 1);
      if (const auto number = parse_number<std::int64_t>(rest.substr(0, rest.find('.'))))
        lists[std::string(name.substr(0, dot))].insert(*number);
    }
  }
  return lists;
}

class ConfigComparison {
 public:
  ConfigComparison(const Checkpoint& c, const LibraryConfig& config) : c_(c), config_(config) {}

  std::vector<Finding> run() {
    if (!config_.head.empty()) compare_size({"", config_.head, "num_classes", 0});
    for (const ConfigConstraint& constraint : config_.constraints) {
      if (!is_of_type(constraint, config_.type)) continue;
      if (constraint.axis == kCountsList)
        compare_count(constraint);
      else
        compare_size(constraint);
    }
    return std::move(findings_);
  }

 private:
  void compare_size(const ConfigConstraint& constraint) {
    std::vector<std::string> subjects;
    std::int64_t said = 0, saved = 0;
    const auto axis = static_cast<std::size_t>(constraint.axis);
    for (TensorId tensor : c_.tensors()) {
      const auto number = match_name(c_.fqn(tensor), constraint.tensor);
      if (!number || c_.shape(tensor).size() <= axis) continue;
      const auto value = value_of(config_.json, constraint.value, *number);
      if (!value || *value == 0 || *value == c_.shape(tensor)[axis]) continue;
      if (subjects.empty()) {
        said = *value;
        saved = c_.shape(tensor)[axis];
      }
      subjects.emplace_back(c_.fqn(tensor));
    }
    if (subjects.empty()) return;
    Finding finding{.rule = "config-shape", .severity = Severity::kError};
    finding.cause = fmt::format(
        "{} says {}, but {} {} has {} {}{}: the config or the weights belong to another model. {} "
        "fails with \"size mismatch\".",
        config_.file, config_value_text(constraint, said), subjects.front(),
        to_text(c_.shape(*c_.find(subjects.front()))), saved,
        axis == 0   ? "rows"
        : axis == 1 ? "columns"
                    : "elements there",
        subjects.size() == 1 ? std::string()
                             : fmt::format(" ({})", plural(subjects.size(), "tensor")),
        config_.library);
    finding.evidence = {{"key", std::string(constraint.value)},
                        {"said", said},
                        {"saved", saved},
                        {"count", static_cast<std::int64_t>(subjects.size())}};
    finding.subjects = std::move(subjects);
    findings_.push_back(std::move(finding));
  }

  void compare_count(const ConfigConstraint& constraint) {
    for (const auto& [list, numbers] : module_lists_of(c_, constraint.tensor)) {
      const auto said = value_of(config_.json, constraint.value, 0);
      const std::int64_t there = *numbers.rbegin() + 1;
      if (!said || *said == there) continue;
      Finding finding{.rule = "config-count", .severity = Severity::kWarning};
      finding.cause = fmt::format(
          "{} says {}, and of {}.* there {} {}: the config or the weights belong to another model. "
          "{} {}.",
          config_.file, config_value_text(constraint, *said), list, there == 1 ? "is" : "are",
          there, config_.library,
          *said > there ? "finds no weights for the rest, and fails or leaves them at random values"
                        : "ignores the additional ones, or fails");
      finding.subjects = {fmt::format("{}.{}", list, std::min(*said, there))};
      finding.evidence = {{"key", std::string(constraint.value)},
                          {"said", *said},
                          {"there", there},
                          {"count", there}};
      findings_.push_back(std::move(finding));
    }
  }

  const Checkpoint& c_;
  const LibraryConfig& config_;
  std::vector<Finding> findings_;
};

// params.json leaves out what follows from the rest: head_dim, and n_kv_heads of full attention.
void complete_params(Json& json) {
  const auto dim = size_of_json(member_at(json, "dim")),
             heads = size_of_json(member_at(json, "n_heads"));
  if (dim && heads && *heads > 0 && !json.contains("head_dim"))
    json["head_dim"] = static_cast<std::uint64_t>(*dim / *heads);
  if (heads && !size_of_json(member_at(json, "n_kv_heads")))
    json["n_kv_heads"] = static_cast<std::uint64_t>(*heads);
}

// The config of a text encoder of transformers.
std::optional<LibraryConfig> text_encoder_config(const DirectoryContents& look) {
  LibraryConfig config{"config.json", "transformers", "", read_small_json(look, "config.json"), {}};
  const Json* classes = member_at(config.json, "architectures");
  if (classes == nullptr || !classes->is_array() || classes->size() != 1 ||
      !(*classes)[0].is_string() || config.json.contains("quantization_config"))
    return std::nullopt;
  config.type = (*classes)[0].get<std::string>();
  config.constraints = constraints_of_text_encoders();
  return config;
}

// The config next to the weights, if its library is known and is not transformers.
std::optional<LibraryConfig> library_config(const DirectoryContents& look) {
  LibraryConfig config;
  config.file = "config.json";
  config.json = read_small_json(look, config.file);
  if (config.json.is_object() && config.json.contains("quantization_config")) return std::nullopt;
  if (!text_of(config.json, "_diffusers_version").empty()) {
    config.library = "diffusers";
    config.type = text_of(config.json, "_class_name");
    config.constraints = constraints_of_diffusers();
    return config;
  }
  if (const std::string head = text_of(config.json, "pretrained_cfg.classifier"); !head.empty()) {
    config.library = "timm";
    config.head = head + ".weight";
    return config;
  }
  config.file = "open_clip_config.json";
  config.json = read_small_json(look, config.file);
  if (config.json.is_object()) {
    config.library = "OpenCLIP";
    config.constraints = constraints_of_open_clip();
    return config;
  }
  config.file = "params.json";
  config.json = read_small_json(look, config.file);
  if (!size_of_json(member_at(config.json, "n_layers"))) return std::nullopt;
  config.library = "Meta's code";
  complete_params(config.json);
  config.constraints = constraints_of_meta();
  return config;
}

}  // namespace

std::shared_ptr<const Checkpoint> with_config_findings(std::shared_ptr<const Checkpoint> opened,
                                                       const DirectoryContents& look,
                                                       FolderRole folder) {
  const std::optional<LibraryConfig> config =
      folder == FolderRole::kWhole ? library_config(look) : text_encoder_config(look);
  if (!config) return opened;
  for (Finding& finding : ConfigComparison(*opened, *config).run())
    opened = CheckpointBuilder::with_finding(*opened, std::move(finding));
  return opened;
}

}  // namespace shw

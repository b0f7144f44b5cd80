#include "core/facts/reference/config_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/base/cancellable_range.h"
#include "core/base/parse_text.h"
#include "core/base/words.h"
#include "core/facts/names/architectures.h"
#include "core/facts/reference/config_constraints.h"

namespace shw {
namespace {

// Name parts that the class has no weight for: buffers that older versions saved, and layers that
// only other programs read.
constexpr auto kOfNoWeight = std::to_array<std::string_view>(
    {"inv_freq", ".masked_bias", "position_ids", ".attn.bias", ".attention.bias",
     "num_batches_tracked", "_extra_state", "mtp."});

// For the numbers in a name ("3" or "3.7"): which names of the group exist.
using PresenceByNumbers = std::unordered_map<std::string, std::vector<bool>>;

struct PlaceInGroup {
  std::size_t group = 0, name = 0;
};

// How a folder writes names: with base_model_prefix added or left out.
enum class Written { kAsSaved, kWithPrefix, kWithoutPrefix };

// Which names are expected: those that save_pretrained writes, or those of the running model.
enum class ExpectedNames { kSaved, kMemory };

std::string with_replaced_prefix(const std::string& name, const std::string& old_one,
                                 const std::string& new_one) {
  return new_one + name.substr(old_one.size());
}

std::string with_numbers(std::string_view name, std::string_view numbers) {
  std::string out;
  for (char letter : name) {
    if (letter != '*') {
      out += letter;
      continue;
    }
    const std::size_t end = std::min(numbers.find('.'), numbers.size());
    out += numbers.substr(0, end);
    numbers.remove_prefix(std::min(end + 1, numbers.size()));
  }
  return out;
}

// Renames suffixes that transformers renames for every class.
std::string with_replaced_suffix(std::string name) {
  constexpr std::pair<std::string_view, std::string_view> kEndings[] = {
      {".gamma", ".weight"},
      {".beta", ".bias"},
      {".weight_g", ".parametrizations.weight.original0"},
      {".weight_v", ".parametrizations.weight.original1"}};
  for (const auto& [old_one, new_one] : kEndings) {
    if (name.ends_with(old_one))
      return name.substr(0, name.size() - old_one.size()) + std::string(new_one);
  }
  return name;
}

std::string numbers_in(std::string_view fqn) {
  std::string out;
  for (std::string_view part : split_at(fqn, '.')) {
    if (!is_all_digits(part)) continue;
    if (!out.empty()) out += '.';
    out += part;
  }
  return out;
}

class NamesOfClass {
 public:
  NamesOfClass(const Architecture& architecture, bool is_quantised, ExpectedNames of)
      : architecture_(&architecture),
        is_quantised_(is_quantised),
        of_(of),
        seen_(architecture.groups.size()) {
    for (std::size_t group = 0; group < architecture.groups.size(); ++group) {
      const auto& names = architecture.groups[group].names;
      for (std::size_t name = 0; name < names.size(); ++name)
        places_.emplace(names[name], PlaceInGroup{group, name});
    }
  }

  // Records a name; false if the class has no such name.
  bool match_name(std::string_view fqn) {
    const std::string name = name_in_saved_form(replace_numbers_by_stars(fqn));
    if (match_expected_name(name, fqn) || match_expected_name(with_replaced_suffix(name), fqn))
      return true;
    if (is_quantised_ && match_quantised_name(name, fqn)) return true;
    auto is_in_name = [&](std::string_view part) { return name.find(part) != std::string::npos; };
    return std::any_of(kOfNoWeight.begin(), kOfNoWeight.end(), is_in_name) ||
           std::any_of(architecture_->ignored.begin(), architecture_->ignored.end(), is_in_name);
  }

  void find_absent(ConfigNames& out) const {
    for (std::size_t group = 0; group < seen_.size(); ++group) {
      const NameGroup& of = architecture_->groups[group];
      if (seen_[group].empty() && of.always) {
        for (const std::string& name : of.names) out.absent.push_back(name_in_folder_form(name));
      }
      for (const auto& [numbers, there] : seen_[group]) {
        for (std::size_t name = 0; name < there.size(); ++name) {
          if (!there[name])
            out.incomplete.push_back(name_in_folder_form(with_numbers(of.names[name], numbers)));
        }
      }
    }
    find_lost_companions(out);
    std::sort(out.incomplete.begin(), out.incomplete.end());
    std::sort(out.absent.begin(), out.absent.end());
  }

  bool all_match_saved_form() const {
    return of_ == ExpectedNames::kSaved && all_with_own_prefix();
  }

  // True if every name has base_model_prefix exactly where the class has it, in memory or when
  // saved.
  bool all_with_own_prefix() const {
    return count_[static_cast<std::size_t>(Written::kWithPrefix)] == 0 &&
           count_[static_cast<std::size_t>(Written::kWithoutPrefix)] == 0;
  }

  // True if every name has an additional base_model_prefix compared with what the class saves.
  bool all_with_prefix() const {
    return of_ == ExpectedNames::kSaved &&
           count_[static_cast<std::size_t>(Written::kAsSaved)] == 0 &&
           count_[static_cast<std::size_t>(Written::kWithoutPrefix)] == 0 &&
           count_[static_cast<std::size_t>(Written::kWithPrefix)] > 0;
  }

  // True if an untied head is missing: every class with one saves it.
  bool is_untied_head_missing(std::string* head) const {
    for (std::size_t group = 0; group < seen_.size(); ++group) {
      const NameGroup& of = architecture_->groups[group];
      if (of.always || of.names.size() != 1 || !seen_[group].empty()) continue;
      const std::string& name = of.names.front();
      if (name != "embed_out.weight" && name != "lm_head.weight" &&
          !name.ends_with(".lm_head.weight"))
        continue;
      *head = name_in_folder_form(of.names.front());
      return true;
    }
    return false;
  }

 private:
  bool has_class_names_under(const std::string& beginning) const {
    for (std::size_t group = 0; group < seen_.size(); ++group) {
      if (seen_[group].empty()) continue;
      const auto& names = architecture_->groups[group].names;
      if (std::any_of(names.begin(), names.end(),
                      [&](const std::string& name) { return name.starts_with(beginning); }))
        return true;
    }
    return false;
  }

  // Finds routers that are missing although their experts exist, and T5's table of relative
  // positions, which only the first block has. Other optional groups of layers are not required.
  void find_lost_companions(ConfigNames& out) const {
    struct Companion {
      std::string_view name, beside;
    };
    constexpr auto kCompanions = std::to_array<Companion>({{"gate.weight", "experts."},
                                                           {"router.weight", "experts."},
                                                           {"relative_attention_bias.weight", ""}});
    for (std::size_t group = 0; group < seen_.size(); ++group) {
      const NameGroup& of = architecture_->groups[group];
      if (of.always || !seen_[group].empty()) continue;
      for (const std::string& name : of.names) {
        for (const Companion& one : kCompanions) {
          if (!name.ends_with("." + std::string(one.name))) continue;
          const std::string module = name.substr(0, name.size() - one.name.size());
          if (has_class_names_under(module + std::string(one.beside)))
            out.absent.push_back(name_in_folder_form(name));
        }
      }
    }
  }

  std::string name_in_saved_form(std::string name) const {
    if (of_ == ExpectedNames::kSaved) return name;
    for (const auto& [memory, saved] : architecture_->in_memory) {
      if (name.starts_with(memory)) return with_replaced_prefix(name, memory, saved);
    }
    return name;
  }

  bool match_expected_name(const std::string& name, std::string_view fqn) {
    const std::string& prefix = architecture_->prefix;
    auto place = places_.find(name);
    Written written = Written::kAsSaved;
    if (place == places_.end() && !prefix.empty() && of_ == ExpectedNames::kSaved) {
      place = places_.find(prefix + "." + name);
      written = Written::kWithoutPrefix;
      if (place == places_.end() && name.starts_with(prefix + ".")) {
        place = places_.find(name.substr(prefix.size() + 1));
        written = Written::kWithPrefix;
      }
    }
    if (place == places_.end()) return false;
    const auto [group, at] = place->second;
    auto& there = seen_[group][numbers_in(fqn)];
    there.resize(architecture_->groups[group].names.size());
    there[at] = true;
    ++count_[static_cast<std::size_t>(written)];
    return true;
  }

  // Accepts "q_proj.qweight", "q_proj.weight.absmax" and "down_proj_scales" in place of a weight.
  // Missing parts of a quantised weight are reported by another rule.
  bool match_quantised_name(const std::string& name, std::string_view fqn) {
    for (std::string_view ending : {"_blocks", "_scales"}) {
      if (name.ends_with(ending) &&
          match_expected_name(name.substr(0, name.size() - ending.size()), fqn))
        return true;
    }
    const std::size_t weight = name.find(".weight."), dot = name.rfind('.');
    return dot != std::string::npos &&
           match_expected_name(
               name.substr(0, weight != std::string::npos ? weight : dot) + ".weight", fqn);
  }

  // Converts a name to the form in which most names of the folder are written.
  std::string name_in_folder_form(std::string name) const {
    if (of_ == ExpectedNames::kMemory) {
      const std::pair<std::string, std::string>* longest = nullptr;
      for (const auto& one : architecture_->in_memory) {
        const bool is_longer = longest == nullptr || one.second.size() > longest->second.size();
        if (name.starts_with(one.second) && is_longer) longest = &one;
      }
      return longest == nullptr ? name
                                : with_replaced_prefix(name, longest->second, longest->first);
    }
    const std::string prefix = architecture_->prefix + ".";
    const std::size_t most =
        static_cast<std::size_t>(std::max_element(count_.begin(), count_.end()) - count_.begin());
    if (most == static_cast<std::size_t>(Written::kWithPrefix)) return prefix + name;
    if (most == static_cast<std::size_t>(Written::kWithoutPrefix) && name.starts_with(prefix))
      return name.substr(prefix.size());
    return name;
  }

  const Architecture* architecture_;
  bool is_quantised_ = false;
  ExpectedNames of_ = ExpectedNames::kSaved;
  std::unordered_map<std::string, PlaceInGroup> places_;
  std::vector<PresenceByNumbers> seen_;  // by group
  std::array<std::size_t, 3> count_{};   // names by Written
};

// The one class that config.json names, if it is known and has no code of its own.
std::optional<Architecture> class_of(const ModelConfig& config) {
  if (config.architectures.size() != 1 || config.has_own_code) return std::nullopt;
  return architecture_named(config.architectures.front());
}

// nullopt if the class lacks one of the names.
std::optional<NamesOfClass> match_class_names(const Checkpoint& checkpoint,
                                              const ModelConfig& config,
                                              const Architecture& architecture, ExpectedNames of,
                                              const Progress* progress) {
  NamesOfClass names(architecture, config.packs_weights || config.quantisation.has_value(), of);
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    if (!names.match_name(checkpoint.fqn(tensor))) return std::nullopt;
  }
  return checkpoint.tensor_count() == 0 ? std::nullopt : std::optional(std::move(names));
}

bool is_tied(const ModelConfig& config) {
  return std::any_of(config.parts.begin(), config.parts.end(), [](const ConfigPart& part) {
    auto tied = part.flags.find("tie_word_embeddings");
    return tied != part.flags.end() && tied->second;
  });
}

// True if the config and all its parts that contain the flag say "not tied". False for T5 and other
// encoder-decoder models, which fill a missing head from the shared table anyway.
bool is_declared_untied(const ModelConfig& config) {
  const auto& flags = config.parts.front().flags;
  const auto encodes = flags.find("is_encoder_decoder");
  const bool decodes_only = encodes == flags.end() || !encodes->second;
  return decodes_only && !is_tied(config) && flags.contains("tie_word_embeddings");
}

// A tied matrix is saved once, under the embedding's name.
bool is_tied_head(std::string_view fqn) {
  constexpr auto kHeads = std::to_array<std::string_view>(
      {"lm_head.weight", "embed_out.weight", "proj_out.weight", "output_projection.weight",
       "lm_head.decoder.weight", "predictions.decoder.weight", "predictions.decoder.bias",
       "lm_head.decoder.bias", "head.decoder.weight", "cls.weight", "output.weight",
       "log_softmax.mlp.layer0.weight"});
  if (!numbers_in(fqn).empty() || fqn.find('*') != std::string_view::npos) return false;
  return std::any_of(kHeads.begin(), kHeads.end(),
                     [&](std::string_view head) {
                       return fqn == head || fqn.ends_with("." + std::string(head));
                     }) ||
         fqn == "head.weight";  // DeepSeek-V4's
}

// "3" for a tensor of layer 3; "model" for "model.norm.weight", which has no number.
std::string layer_or_module_of(std::string_view fqn) {
  if (std::string numbers = numbers_in(fqn); !numbers.empty()) return numbers;
  const std::size_t last = fqn.rfind('.');
  const std::size_t before = last == 0 || last == fqn.npos ? fqn.npos : fqn.rfind('.', last - 1);
  return std::string(fqn.substr(0, before == fqn.npos ? 0 : before));
}

// False for a class under another model type, for which transformers may rename what it reads:
// "exaone" for Llama's classes, "shieldgemma2" for Gemma 3's.
bool is_of_own_type(const ModelConfig& config) {
  return is_transformers_class(config.architectures.front(), config.parts.front().model_type);
}

// Names that occur once in each layer, with * for its number: "model.layers.*.self_attn.q_norm".
std::vector<std::string> names_of_each_layer(const std::vector<std::string>& names,
                                             const std::set<std::string>& layers) {
  std::map<std::string, std::set<std::string>> seen;
  for (const std::string& name : names)
    seen[replace_numbers_by_stars(name)].insert(numbers_in(name));
  std::vector<std::string> out;
  for (const std::string& name : names) {
    if (name.ends_with(".weight") && seen[replace_numbers_by_stars(name)] == layers)
      out.push_back(name);
  }
  return out;
}

// Missing tensors of layers that also have names unknown to the class: parts that were joined or
// renamed for another program.
std::optional<ConfigNames> layers_with_unknown_names(const Checkpoint& checkpoint,
                                                     const ModelConfig& config,
                                                     const Architecture& architecture,
                                                     const Progress* progress) {
  if (!architecture.is_exact || !is_of_own_type(config) || config.packs_weights ||
      config.quantisation)
    return std::nullopt;
  NamesOfClass names(architecture, false, ExpectedNames::kSaved);
  ConfigNames out;
  std::set<std::string> layers, layers_of_class;
  std::size_t numbered_of_class = 0, numbered_others = 0;
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    const std::string_view fqn = checkpoint.fqn(tensor);
    const bool is_numbered = !numbers_in(fqn).empty();
    const bool is_known = names.match_name(fqn);
    if (is_numbered) ++(is_known ? numbered_of_class : numbered_others);
    if (is_numbered && is_known) layers_of_class.insert(numbers_in(fqn));
    if (is_known) continue;
    out.others.emplace_back(fqn);
    layers.insert(layer_or_module_of(fqn));
  }
  out.architecture = config.architectures.front();
  constexpr std::size_t kEnoughNames = 8;
  out.has_no_layer = numbered_of_class == 0 && numbered_others >= kEnoughNames;
  if (out.has_no_layer) return out;
  if (2 * out.others.size() > checkpoint.tensor_count()) return std::nullopt;
  names.find_absent(out);
  out.absent.clear();
  std::erase_if(out.incomplete, [&](const std::string& name) {
    return !layers.contains(layer_or_module_of(name));
  });
  if (out.incomplete.empty() && layers_of_class.size() > 1)
    out.unknown_in_each_layer = names_of_each_layer(out.others, layers_of_class);
  if (out.incomplete.empty() && out.unknown_in_each_layer.empty()) return std::nullopt;
  return out;
}

bool checkpoint_has_part(const Checkpoint& checkpoint, std::string_view part,
                         const Progress* progress) {
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    if (checkpoint.fqn(tensor).starts_with(part)) return true;
  }
  return false;
}

// "vision_tower." and, behind base_model_prefix, "model.vision_tower.": the parts of a class.
std::set<std::string> parts_of(const Architecture& architecture) {
  std::set<std::string> parts;
  for (const NameGroup& group : architecture.groups) {
    for (const std::string& name : group.names) {
      const std::size_t first = name.find('.') + 1, second = name.find('.', first) + 1;
      if (first == 0) continue;
      const bool is_prefix = name.substr(0, first) == architecture.prefix + ".";
      if (!is_prefix) parts.insert(name.substr(0, first));
      if (is_prefix && second != 0) parts.insert(name.substr(0, second));
    }
  }
  return parts;
}

}  // namespace

std::optional<MissingModelPart> lost_part(const Checkpoint& checkpoint, const ModelConfig& config,
                                          const Progress* progress) {
  constexpr std::size_t kMinNames = 4, kMaxParts = 64;
  const auto architecture = class_of(config);
  if (!architecture || config.packs_weights || config.quantisation) return std::nullopt;
  MissingModelPart lost{"", config.architectures.front(), {}};
  NamesOfClass names(*architecture, false, ExpectedNames::kSaved);
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    if (!names.match_name(checkpoint.fqn(tensor))) lost.tensors.push_back(tensor);
  }
  const std::set<std::string> parts = parts_of(*architecture);
  if (lost.tensors.size() < kMinNames || parts.size() > kMaxParts) return std::nullopt;
  for (const std::string& part : parts) {
    NamesOfClass whole(*architecture, false, ExpectedNames::kSaved);
    const bool are_all =
        std::all_of(lost.tensors.begin(), lost.tensors.end(), [&](TensorId tensor) {
          return whole.match_name(part + std::string(checkpoint.fqn(tensor)));
        });
    if (!are_all || checkpoint_has_part(checkpoint, part, progress)) continue;
    if (!lost.prefix.empty()) return std::nullopt;
    lost.prefix = part;
  }
  return lost.prefix.empty() ? std::nullopt : std::optional(std::move(lost));
}

std::optional<ConfigNames> compare_names(const Checkpoint& checkpoint, const ModelConfig& config,
                                         Progress* progress) {
  const auto architecture = class_of(config);
  if (!architecture) return std::nullopt;
  auto names =
      match_class_names(checkpoint, config, *architecture, ExpectedNames::kSaved, progress);
  if (!names && !architecture->in_memory.empty())
    names = match_class_names(checkpoint, config, *architecture, ExpectedNames::kMemory, progress);
  if (!names) return layers_with_unknown_names(checkpoint, config, *architecture, progress);
  ConfigNames out;
  out.architecture = config.architectures.front();
  out.are_spelled_as_saved = names->all_match_saved_form();
  names->find_absent(out);
  if (is_tied(config)) {
    std::erase_if(out.absent, is_tied_head);
    std::erase_if(out.incomplete, is_tied_head);
  } else if (std::string head; is_declared_untied(config) && names->all_with_own_prefix() &&
                               names->is_untied_head_missing(&head)) {
    out.absent.push_back(std::move(head));
  }
  return out;
}

std::optional<std::string> added_prefix(const Checkpoint& checkpoint, const ModelConfig& config,
                                        const Progress* progress) {
  const auto architecture = class_of(config);
  if (!architecture || architecture->in_memory.empty() || !is_of_own_type(config) ||
      config.architectures.front().ends_with("Model"))
    return std::nullopt;
  const auto saved =
      match_class_names(checkpoint, config, *architecture, ExpectedNames::kSaved, progress);
  if (!saved || !saved->all_with_prefix() ||
      match_class_names(checkpoint, config, *architecture, ExpectedNames::kMemory, progress))
    return std::nullopt;
  return architecture->prefix + ".";
}

}  // namespace shw

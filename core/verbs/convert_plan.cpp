#include "core/verbs/convert_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/spelling.h"
#include "core/base/words.h"
#include "core/combine/extracted_adapter.h"
#include "core/facts/names/float32_names.h"
#include "core/facts/names/quant_families.h"
#include "core/facts/names/wrapper_marks.h"
#include "core/formats/table.h"
#include "core/io/path_suffix.h"
#include "core/repair/plan/plan_fingerprint.h"
#include "core/repair/plan/target_of_plan.h"
#include "core/tensor/cast.h"
#include "core/transform/name_pattern.h"
#include "core/verbs/computed_path.h"
#include "core/verbs/names/filter.h"
#include "core/verbs/refused_by_torch.h"
#include "core/verbs/weight_entries.h"

namespace shw::verbs {
namespace {

constexpr const char* kWrappers = "wrappers";  // for --strip: all known wrappers

using NameSet = std::set<std::string, std::less<>>;

// All entries that VerbOptions::only does not match.
Result<std::vector<std::string>> entries_not_matching_only(const Checkpoint& checkpoint,
                                                           const std::string& only,
                                                           Progress* progress) {
  std::vector<std::string> names;
  SHW_CHECK(check_filter(checkpoint, only));
  SHW_TRY(const auto tensors, filter_tensors(checkpoint, nullptr, only, progress));
  const auto objects = filter_objects(checkpoint, only);
  for (std::uint32_t i = 0, next = 0; i < checkpoint.tensor_count(); ++i) {
    const bool stays = next < tensors.size() && tensors[next] == i;
    next += stays ? 1 : 0;
    if (!stays) names.emplace_back(checkpoint.fqn(TensorId{i}));
  }
  for (std::uint32_t i = 0; i < checkpoint.objects().size(); ++i) {
    if (!std::binary_search(objects.begin(), objects.end(), i))
      names.push_back(checkpoint.objects()[i].fqn);
  }
  return names;
}

bool is_excluded_by(const std::vector<std::string>& patterns, const std::string& fqn) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return pattern == fqn || matches_pattern(pattern, fqn);
  });
}

// State while a conversion is planned: the options, and which entries remain.
struct Converting {
  const Checkpoint& checkpoint;
  const VerbOptions& said;
  ConvertPlan& out;
  NameSet gone = {};                  // FQNs of dropped tensors and entries
  NonWeightEntries not_weights = {};  // with --weights-only
  std::vector<NeededAddition> needed = {};

  bool stays(std::string_view fqn) const {
    return !gone.contains(fqn) && !is_excluded_by(said.leave_out, std::string(fqn));
  }
  std::vector<std::string> kept_tensor_names() const {
    std::vector<std::string> names;
    for (TensorId tensor : checkpoint.tensors()) {
      if (stays(checkpoint.fqn(tensor))) names.emplace_back(checkpoint.fqn(tensor));
    }
    return names;
  }
};

bool matches_needed_addition(const Converting& converting, const std::string& pattern) {
  return std::any_of(
      converting.needed.begin(), converting.needed.end(),
      [&](const NeededAddition& one) { return is_excluded_by({pattern}, one.name); });
}

bool matches_any_entry(const Checkpoint& checkpoint, const std::string& pattern) {
  for (TensorId tensor : checkpoint.tensors()) {
    if (is_excluded_by({pattern}, std::string(checkpoint.fqn(tensor)))) return true;
  }
  const auto objects = checkpoint.objects();
  return std::any_of(objects.begin(), objects.end(), [&](const NonTensorEntry& object) {
    return is_excluded_by({pattern}, object.fqn);
  });
}

void drop_missing_entries(Converting& converting) {
  const VerbOptions& said = converting.said;
  std::vector<Step>& steps = converting.out.plan.steps;
  Patterns patterns = said.leave_out;
  // A pattern may only allow the loss of an addition; the drop step must not contain it.
  std::erase_if(patterns, [&](const std::string& pattern) {
    return matches_needed_addition(converting, pattern) &&
           !matches_any_entry(converting.checkpoint, pattern);
  });
  if (!patterns.empty()) steps.emplace_back(DropStep{std::move(patterns)});
  Patterns names;
  for (const std::string& fqn : converting.gone) {
    if (!is_excluded_by(said.leave_out, fqn)) names.push_back(fqn);
  }
  if (!names.empty()) steps.emplace_back(DropStep{std::move(names)});
}

Result<Dtype> weights_dtype(const std::string& option, const std::string& said) {
  const auto dtype = dtype_from_user_text(said);
  if (dtype && is_plain_float(*dtype)) return *dtype;
  return fail(ErrorKind::kUsage, option + said + " is not a supported target dtype", {},
              "use bf16, fp16, fp32 or fp64; 8 bits and fewer need scales next to the weights");
}

// Scales and other companions of quantised weights.
NameSet companions_of_quantised(const Checkpoint& checkpoint) {
  const CheckInput input{
      .checkpoint = checkpoint, .headers = {}, .data = {}, .object_data = {}, .tilings = {}};
  std::optional<QuantConfig> config;
  if (checkpoint.directory() != nullptr) config = read_quant_config(*checkpoint.directory());
  NameSet names;
  for (const QuantFamily& family : quant_families(input, config)) {
    for (const QuantPair& pair : family.pairs) {
      for (const auto& companion : pair.beside) {
        if (companion) names.emplace(checkpoint.fqn(*companion));
      }
    }
    for (const QuantFamily::Orphan& orphan : family.orphans)
      names.emplace(checkpoint.fqn(orphan.companion));
  }
  return names;
}

Status cast_weights(Converting& converting) {
  if (converting.said.dtype.empty()) return {};
  std::vector<CastCandidate> candidates;
  for (std::string& fqn : converting.kept_tensor_names()) {
    const Dtype dtype = converting.checkpoint.dtype(*converting.checkpoint.find(fqn));
    candidates.push_back({std::move(fqn), dtype});
  }
  SHW_TRY(CastChoice choice,
          choose_casts(converting.checkpoint, candidates, "--dtype ", converting.said.dtype));
  converting.out.notes.push_back(std::move(choice.note));
  if (!choice.tensors.empty())
    converting.out.plan.steps.emplace_back(CastStep{std::move(choice.tensors), choice.to});
  return {};
}

// Escapes text for an ECMAScript pattern.
std::string escaped_for_pattern(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}/").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// Adds the step and renames `names` as the step will.
Status add_rename(std::vector<std::string>& names, RenameStep step, std::vector<Step>& steps) {
  SHW_TRY(const NamePattern pattern, NamePattern::from(step.from, step.to));
  for (std::string& one : names) {
    SHW_TRY(auto renamed, pattern.renamed(one));
    if (renamed) one = std::move(*renamed);
  }
  steps.emplace_back(std::move(step));
  return {};
}

bool has_name_part(std::string_view fqn, std::string_view part) {
  const std::string inside = "." + std::string(part) + ".";
  return fqn.starts_with(inside.substr(1)) || fqn.find(inside) != std::string_view::npos;
}

// Removes a wrapper's segment, which may occur several times in a name.
Status strip_wrapper_segment(std::vector<std::string>& names, std::string_view part,
                             std::vector<Step>& steps) {
  constexpr int kMaxNested = 64;
  auto is_in_any = [&] {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& fqn) { return has_name_part(fqn, part); });
  };
  for (int i = 0; i < kMaxNested && is_in_any(); ++i)
    SHW_CHECK(add_rename(
        names, {"((?:.*\\.)?)" + escaped_for_pattern(part) + "\\.(.*)", "$1$2", true}, steps));
  return {};
}

Status strip_wrappers(std::vector<std::string>& names, std::vector<Step>& steps) {
  std::set<std::string, std::less<>> parts;
  const bool all_in_module = std::all_of(names.begin(), names.end(), [](const std::string& fqn) {
    return fqn.starts_with("module.");
  });
  for (const std::string& fqn : names) {
    for (const WrapperMark* mark : without_wrappers(fqn, false).marks) {
      if (mark->part != "base_layer" && mark->part != "original_module") parts.emplace(mark->part);
    }
  }
  if (parts.empty() && !all_in_module)
    return fail(ErrorKind::kUsage, "no tensor name contains a wrapper prefix", {},
                "`shardwright ls` lists the names; --strip PREFIX removes a prefix");
  if (all_in_module) SHW_CHECK(add_rename(names, {"module\\.(.*)", "$1", true}, steps));
  for (const std::string& part : parts) SHW_CHECK(strip_wrapper_segment(names, part, steps));
  return {};
}

Status strip_prefix(std::vector<std::string>& names, const std::string& prefix,
                    std::vector<Step>& steps) {
  std::string_view part = prefix;
  if (part.ends_with('.')) part.remove_suffix(1);
  const Unwrapped unwrapped = without_wrappers(std::string(part) + ".x", false);
  if (unwrapped.name == "x" && !unwrapped.marks.empty())
    return strip_wrapper_segment(names, part, steps);
  const bool fits = std::any_of(names.begin(), names.end(), [&](const std::string& fqn) {
    return fqn.size() > prefix.size() && fqn.starts_with(prefix);
  });
  if (!fits)
    return fail(ErrorKind::kUsage, "no name begins with \"" + prefix + "\" (--strip)", {},
                names.empty() ? "no tensor is left" : "the first one is " + names.front());
  return add_rename(names, {escaped_for_pattern(prefix) + "(.+)", "$1", true}, steps);
}

// Parses REGEX=TO, split at the last "=".
Result<RenameStep> parse_rename_option(const std::string& text) {
  const std::size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0)
    return fail(ErrorKind::kUsage, "--rename " + text + " is not REGEX=TO", {},
                "for example --rename 'backbone\\.(.*)=model.$1'");
  return RenameStep{text.substr(0, at), text.substr(at + 1), true};
}

// True if names need an item: torch_checkpointing groups tensors by items, the first keys of a
// nested state dict. Names of a model alone get the item "model".
bool needs_item_prefix(const Converting& converting) {
  const Format* written = format_named(converting.said.to);
  const Checkpoint& source = converting.checkpoint;
  if (written == nullptr || !written->traits.names_have_items ||
      source.format().traits.names_have_items)
    return false;
  for (TensorId tensor : source.tensors()) {
    if (converting.stays(source.fqn(tensor)) && source.path(tensor).size() < 2) return true;
  }
  return false;
}

Status rename_all(Converting& converting) {
  const VerbOptions& said = converting.said;
  std::vector<Step>& steps = converting.out.plan.steps;
  const bool lacks = needs_item_prefix(converting);
  if (said.strip.empty() && said.rename.empty() && !lacks) return {};
  std::vector<std::string> names = converting.kept_tensor_names();
  for (const std::string& prefix : said.strip)
    SHW_CHECK(prefix == kWrappers ? strip_wrappers(names, steps)
                                  : strip_prefix(names, prefix, steps));
  for (const std::string& text : said.rename) {
    SHW_TRY(RenameStep step, parse_rename_option(text));
    SHW_CHECK(add_rename(names, std::move(step), steps));
  }
  return lacks ? add_rename(names, {"(?!optimizer\\.)(.+)", "model.$1", true}, steps) : Status{};
}

// Warns before anything is written that torch.load will refuse entries of the result.
void warn_of_torch_refusals(Converting& converting, const Format* format, Progress* progress) {
  const Format* torch = format_named("torch");
  if (torch == nullptr || format->writer != torch->writer) return;
  std::vector<std::size_t> objects;
  for (std::size_t i = 0; i < converting.checkpoint.objects().size(); ++i) {
    if (converting.stays(converting.checkpoint.objects()[i].fqn)) objects.push_back(i);
  }
  const TorchRefusals refused = find_torch_refusals(converting.checkpoint, objects, progress);
  if (!refused.entries.empty()) converting.out.notes.push_back(in_words(refused));
}

// Notes a key before all names that a loader of the model does not expect.
void note_model_key(Converting& converting) {
  const std::string& key = converting.not_weights.model_key;
  if (key.empty() || !converting.said.weights_only || !converting.said.strip.empty() ||
      !converting.said.rename.empty())
    return;
  converting.out.notes.push_back(
      fmt::format("every name begins with the key `{0}` of the state dict, not of the model: "
                  "--strip {0} removes it",
                  key));
}

// Refuses to lose additions, which are next to the entries and without which loaders read wrong
// numbers or fail. They survive only in the same format, and those for certain tensors only if no
// step changes tensors.
Status refuse_to_lose_additions(const Converting& converting, const Format* written) {
  const Checkpoint& source = converting.checkpoint;
  const bool stays = written != nullptr && written->writer == source.format().writer;
  const auto& steps = converting.out.plan.steps;
  const bool change = std::any_of(steps.begin(), steps.end(), [](const Step& step) {
    return !std::holds_alternative<DropStep>(step);
  });
  std::vector<std::string> names;
  std::string why, remedy;
  for (const NeededAddition& one : converting.needed) {
    const bool are_packed = !one.tensors.empty();
    const bool is_kept = stays && !(are_packed && change);
    const bool describes =
        !are_packed || std::any_of(one.tensors.begin(), one.tensors.end(),
                                   [&](const std::string& fqn) { return converting.stays(fqn); });
    if (is_kept || !describes || is_excluded_by(converting.said.leave_out, one.name)) continue;
    names.push_back(one.name);
    why = one.why;
    if (are_packed)
      remedy = "--dequantise turns packed weights into plain ones; casts and renames lose it too; ";
  }
  if (names.empty()) return {};
  return fail(ErrorKind::kUnsupported,
              fmt::format("the result would lack {}, and {}", short_list_text(names), why), {},
              remedy + "--to safetensors keeps it; --leave-out '" +
                  (names.size() == 1 ? names.front() : "* of __metadata__") +
                  "' continues without it");
}

Status choose_entries(Converting& converting, Progress* progress) {
  const VerbOptions& said = converting.said;
  if (said.weights_only) {
    converting.not_weights = entries_that_are_not_weights(converting.checkpoint);
    const NonWeightEntries& left = converting.not_weights;
    converting.gone.insert(left.names.begin(), left.names.end());
    if (!left.names.empty()) converting.out.notes.push_back(in_words(left));
  }
  if (said.only.empty()) return {};
  SHW_TRY(const auto names, entries_not_matching_only(converting.checkpoint, said.only, progress));
  const std::size_t entries =
      converting.checkpoint.tensor_count() + converting.checkpoint.objects().size();
  converting.gone.insert(names.begin(), names.end());
  converting.out.is_empty = converting.gone.size() == entries;
  return {};
}

}  // namespace

Result<CastChoice> choose_casts(const Checkpoint& checkpoint,
                                const std::vector<CastCandidate>& candidates,
                                const std::string& option, const std::string& dtype) {
  CastChoice choice;
  SHW_TRY(choice.to, weights_dtype(option, dtype));
  const NonWeightEntries not_weights = entries_that_are_not_weights(checkpoint);
  const NameSet others(not_weights.names.begin(), not_weights.names.end());
  const NameSet companions = companions_of_quantised(checkpoint);
  std::vector<std::string> in_float32, scales, quantised, states;
  for (const CastCandidate& one : candidates) {
    if (one.dtype == choice.to) continue;
    if (!is_plain_float(one.dtype)) {
      if (name(one.dtype).find("float") != std::string_view::npos) quantised.push_back(one.fqn);
    } else if (others.contains(one.fqn)) {
      states.push_back(one.fqn);
    } else if (companions.contains(one.fqn)) {
      scales.push_back(one.fqn);
    } else if (one.dtype == Dtype::kFloat32 && is_kept_in_float32(one.fqn)) {
      in_float32.push_back(one.fqn);
    } else {
      choice.tensors.push_back(one.fqn);
    }
  }
  std::vector<std::string> stay;
  auto note = [&](const std::vector<std::string>& names, std::string_view why) {
    if (!names.empty())
      stay.push_back(fmt::format("{} ({}: {})", plural(names.size(), "tensor"), why,
                                 short_list_text(names, 2)));
  };
  note(in_float32, "loaders keep them in float32");
  note(scales, "scales of quantised weights");
  note(quantised, "quantised, so their scales are needed");
  note(states, "not weights");
  choice.note =
      fmt::format("cast: {} to {}{}{}", plural(choice.tensors.size(), "tensor"), name(choice.to),
                  stay.empty() ? "" : "; as they are: ", short_list_text(stay, 4));
  return choice;
}

Result<ConvertPlan> plan_of_convert(const Opened& opened, const VerbOptions& said,
                                    Progress* progress) {
  ConvertPlan out;
  const Checkpoint& checkpoint = *opened.checkpoint;
  Converting converting{checkpoint, said, out};
  converting.needed = needed_additions(checkpoint);
  Plan& plan = out.plan;
  const auto& directory = checkpoint.directory();
  plan.checkpoint = directory == nullptr ? std::string() : directory->name();
  plan.fingerprint = fingerprint(checkpoint);
  plan.weights_only = said.weights_only;
  SHW_CHECK(choose_entries(converting, progress));
  if (out.is_empty) return out;
  drop_missing_entries(converting);
  SHW_CHECK(cast_weights(converting));
  SHW_CHECK(rename_all(converting));
  note_model_key(converting);
  SHW_CHECK(refuse_to_lose_additions(converting, format_named(said.to)));
  SHW_CHECK(set_output_format(said.to, said.shard_bytes, plan));
  warn_of_torch_refusals(converting, format_named(said.to), progress);
  return out;
}

std::string extraction_note(const Checkpoint& adapter) {
  return adapter.directory() == nullptr ? "" : extraction_text(*adapter.directory());
}

Result<std::string> source_format_or_safetensors(const std::string& path, Progress* progress) {
  SHW_TRY(const auto checkpoint, open_requested(path_without_suffixes(path), progress));
  const std::string own(checkpoint->format().name);
  const Format* format = format_named(own);
  return format != nullptr && format->writer != nullptr ? own : std::string("safetensors");
}

Result<Plan> plan_convert(const Opened& opened, const VerbOptions& said) {
  SHW_TRY(ConvertPlan made, plan_of_convert(opened, said, nullptr));
  return std::move(made.plan);
}

}  // namespace shw::verbs

#include "core/explain/explain.h"

#include <algorithm>
#include <array>

#include "core/base/printable.h"
#include "core/explain/hypotheses.h"
#include "core/explain/message_kinds.h"
#include "core/facts/states/optimizer_states.h"

namespace shw {
namespace {

constexpr double kNear = 0.1;  // difference of confidence that is too small to decide

bool has_word(std::string_view text, std::string_view word) {
  return text.find(word) != text.npos;
}

template <std::size_t N>
bool has_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return has_word(text, word); });
}

// "…weight_w", "…weight3_v.exp_avg": one of the last two parts ends in _w or _v.
bool has_w_or_v_suffix(std::string_view fqn, const std::optional<StatePath>& state) {
  std::string_view name = state ? state->key : fqn;
  if (name.ends_with("_w") || name.ends_with("_v")) return true;
  std::size_t dot = name.rfind('.');
  if (dot == name.npos) return false;
  name = name.substr(0, dot);
  return name.ends_with("weight_w") || name.ends_with("weight_v");
}

// "head.weight", "classifier.bias": the whole name, or its last parts.
bool is_head_name(std::string_view fqn) {
  static constexpr std::array<std::string_view, 7> kHeads = {
      "classifier", "head", "score", "cls_head", "class_embed", "fc", "logits"};
  std::size_t dot = fqn.rfind('.');
  if (dot == fqn.npos) return false;
  std::string_view module = fqn.substr(0, dot);
  static constexpr std::array<std::string_view, 11>
      kClassWords = {"class_embed",   "mask_head.predictor", "fc_cls",    "conv_cls", "cls_score",
                     "cls_pred",      "conv_logits",         "bbox_pred", "ctc_head", "ctc_lo",
                     "decoder_layers"};  // of detectors and recognisers of
                                         // speech
  if (has_any(module, kClassWords)) return true;
  if (fqn.find_first_of("0123456789") != fqn.npos) return false;  // in a layer
  return std::any_of(kHeads.begin(), kHeads.end(), [&](std::string_view head) {
    if (!module.ends_with(head)) return false;
    std::size_t before = module.size() - head.size();
    return before == 0 || module[before - 1] == '.';
  });
}

std::vector<std::size_t> differing_dims(ExtentsView a, ExtentsView b) {
  std::vector<std::size_t> dims;
  if (a.size() != b.size()) return dims;
  for (std::size_t d = 0; d < a.size(); ++d) {
    if (a[d] != b[d]) dims.push_back(d);
  }
  return dims;
}

// These libraries save each array whole, so a shape is never one rank's part.
bool saves_whole_arrays(std::string_view loader) {
  static constexpr std::array<std::string_view, 6> kLoaders = {"Orbax", "Flax", "TensorFlow",
                                                               "Keras", "MLX",  "llama.cpp"};
  return std::find(kLoaders.begin(), kLoaders.end(), loader) != kLoaders.end();
}

bool is_about_ranks(const Hypothesis& one) {
  return one.id == "H-TP" || one.id == "H-L" || one.id == "H-U" || one.id == "H-F" ||
         one.id == "H-A";
}

// Single-device programs have no ranks: the meanings of their rows come before explanations by
// ranks.
void add_hypotheses_from_program(const ErrorMessage& message, std::vector<Hypothesis>& all) {
  for (Hypothesis& one : all) {
    if (one.id == "H-TP" || one.id == "H-L" || one.id == "H-U") one.confidence *= 0.5;
    if (one.id == "H-F") one.confidence *= 0.2;  // FSDP1 does not wrap a served model
  }
  add_hypotheses_from_kind(message, all);
}

// Adds hypotheses for one message with two shapes.
void add_hypotheses_from_shapes(const ErrorMessage& message, std::optional<WorldSizes> worlds,
                                std::vector<Hypothesis>& all) {
  ShapeCase shapes{message, traits_of(message.name), worlds,
                   differing_dims(message.saved, message.current)};
  if (shapes.traits.extra_state) {
    add_hypothesis_extra_state(shapes, all);
    return;
  }
  add_hypothesis_buffer(shapes, all);
  add_hypothesis_unit_axis(shapes, all);
  add_hypothesis_folded_axes(shapes, all);
  add_hypothesis_position_table(shapes, all);
  add_hypothesis_class_head(shapes, all);
  add_hypothesis_ggml_block(shapes, all);
  add_hypothesis_groups(shapes, all);
  add_hypothesis_key_heads(shapes, all);
  add_hypothesis_placeholder(shapes, all);
  add_hypothesis_flat(shapes, all);
  add_hypothesis_packed(shapes, all);
  add_hypothesis_transposed(shapes, all);
  add_hypothesis_axis_moved(shapes, all);
  add_hypothesis_local_as_global(shapes, all);
  add_hypothesis_expert_axis(shapes, all);
  add_hypothesis_tensor_parallel(shapes, all);
  add_hypothesis_repeated(shapes, all);
  add_hypothesis_vocabulary(shapes, all);
  add_hypothesis_padded_part(shapes, all);
  add_hypothesis_uneven(shapes, all);
  add_hypothesis_halves(shapes, all);
  add_hypothesis_adapter_rank(shapes, all);
  add_hypothesis_diffusion_width(shapes, all);
  add_hypothesis_input_channels(shapes, all);
  add_hypothesis_gated(shapes, all);
  add_hypothesis_window(shapes, all);
  add_hypothesis_different_model(shapes, all);
  if (shapes.traits.diffusion || saves_whole_arrays(message.kind->loader))
    all.erase(std::remove_if(all.begin(), all.end(), is_about_ranks), all.end());
  if (!message.kind->meanings[0].title.empty()) add_hypotheses_from_program(message, all);
}

// Messages interpreted together: a wrapper prefix is in all names.
struct Group {
  std::string_view id;
  std::vector<const ErrorMessage*> messages = {};
};

bool is_key_mismatch_hypothesis(std::string_view id) {
  return id == kMissingKeyForm || id == kUnexpectedKeyForm;
}

std::vector<Group> groups_of(const std::vector<ErrorMessage>& messages) {
  std::vector<Group> groups;
  for (const ErrorMessage& message : messages) {
    std::string_view id =
        is_key_mismatch_hypothesis(message.kind->id) ? kMissingKeyForm : message.kind->id;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& other) { return other.id == id && id != kShapes; });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{id});
    group->messages.push_back(&message);
  }
  return groups;
}

std::vector<Hypothesis> hypotheses_of_group(const Group& group, std::optional<WorldSizes> worlds) {
  std::vector<Hypothesis> all;
  if (group.id == kShapes) {
    add_hypotheses_from_shapes(*group.messages.front(), worlds, all);
  } else if (is_key_mismatch_hypothesis(group.id)) {
    KeyLists keys;
    for (const ErrorMessage* message : group.messages) {
      const bool missing = message->kind->id == kMissingKeyForm;
      (missing ? keys.missing : keys.unexpected).push_back(message->name);
      (missing ? keys.missing_kind : keys.unexpected_kind) = message->kind;
    }
    add_hypotheses_from_names(keys, all);
  } else {
    add_hypotheses_from_kind(*group.messages.front(), all);
    add_hypothesis_wrapped_name(*group.messages.front(), all);
  }
  return all;
}

// Normalises weights as odds against everything not listed: a proved one takes nearly all, equal
// ones stay equal, and the sum is at most 1.
void normalise_confidences(std::vector<Hypothesis>& found) {
  double sum = 1;
  for (const Hypothesis& one : found) sum += one.confidence / (1 - one.confidence);
  for (Hypothesis& one : found) one.confidence = one.confidence / (1 - one.confidence) / sum;
}

struct Counted {
  Hypothesis hypothesis;
  double sum = 0;
  std::size_t messages = 0;
};

// Merges equal interpretations of several messages; those that explain more messages are more
// likely.
void merge(const Group& group, std::vector<Hypothesis> found, std::vector<Counted>& all) {
  normalise_confidences(found);
  for (Hypothesis& one : found) {
    auto same = std::find_if(all.begin(), all.end(), [&](const Counted& other) {
      return other.hypothesis.id == one.id && other.hypothesis.wrong == one.wrong;
    });
    if (same == all.end()) same = all.insert(all.end(), Counted{one});
    same->sum += one.confidence * static_cast<double>(group.messages.size());
    same->messages += group.messages.size();
  }
}

void rank(std::vector<Hypothesis>& hypotheses) {
  std::stable_sort(
      hypotheses.begin(), hypotheses.end(),
      [](const Hypothesis& a, const Hypothesis& b) { return a.confidence > b.confidence; });
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    bool tie = i > 0 && hypotheses[i - 1].confidence == hypotheses[i].confidence;
    hypotheses[i].rank = tie ? hypotheses[i - 1].rank : i + 1;
  }
}

bool names_shapes(const Explanation& explanation) {
  return std::any_of(explanation.parsed.messages.begin(), explanation.parsed.messages.end(),
                     [](const ErrorMessage& message) { return message.kind->id == kShapes; });
}

std::string decisive_evidence_text(const Explanation& explanation) {
  const auto& all = explanation.hypotheses;
  if (all.size() < 2 || !names_shapes(explanation)) return "";
  if (all[0].confidence - all[1].confidence > kNear) return "";
  std::string_view ask = explanation.worlds
                             ? "Find out the device mesh of both runs (dp, tp, ep and their "
                               "sizes): the sizes fit more than one explanation."
                             : "Find out the number of ranks of both runs and give it as --world "
                               "SAVED:LOADED; also the device mesh (dp, tp, ep) of both.";
  return std::string(ask) + " To check the checkpoint itself: `" + check_command() + "`.";
}

}  // namespace

NameTraits traits_of(std::string_view fqn) {
  static constexpr std::array<std::string_view, 2> kExpert = {"expert", ".moe."};
  static constexpr std::array<std::string_view, 7> kVocabulary = {
      "embed", "_embd", "wte", "lm_head", "output_layer", "output.weight", "tok_emb"};
  static constexpr std::array<std::string_view, 6> kReplicated = {
      "norm", "router", "moe.gate.", "ln_", "shared_expert_gate", "layernorm"};
  static constexpr std::array<std::string_view, 6> kPosition = {
      "pos_embed",  "position_embed",    "positional_embed",
      "wpe.weight", "relative_position", "pos_emb."};
  static constexpr std::array<std::string_view, 18> kDiffusion = {"enc_p.",
                                                                  "enc_q.",
                                                                  "dec.ups.",
                                                                  "dec.noise_convs.",
                                                                  "emb_g.",
                                                                  "roi_heads.",
                                                                  "sem_seg_head.",
                                                                  "bottom_up.",
                                                                  "bbox_embed",
                                                                  "class_embed",
                                                                  "diffusion_model.",
                                                                  "input_blocks.",
                                                                  "output_blocks.",
                                                                  "down_blocks.",
                                                                  "up_blocks.",
                                                                  "lora_unet_",
                                                                  "first_stage_model.",
                                                                  "transformer_blocks."};
  static constexpr std::array<std::string_view, 20> kCutLayers = {
      "_proj", "qkv",   "mlp",     "attn",   "attention", "linear_",      "dense",
      ".fc",   "embed", "lm_head", "output", "ffn",       "feed_forward", "expert",
      ".w1",   ".w2",   ".w3",     ".wq",    "wte",       "moe"};
  NameTraits traits;
  traits.known = !fqn.empty();
  traits.split_by_tensor_parallelism = has_any(fqn, kCutLayers);
  auto state = parse_state_fqn(fqn);
  // Parts after the optimizer prefix: "master_param", "layers.0.weight.exp_avg".
  std::string_view last = fqn.substr(fqn.rfind('.') + 1);
  traits.state = state.has_value() || role_of_kind(last) != StateRole::kOther;
  traits.extra_state = has_word(fqn, "_extra_state");
  traits.replicated = has_any(fqn, kReplicated);
  traits.expert = has_any(fqn, kExpert) && !traits.replicated && !has_word(fqn, "shared_expert");
  traits.vocabulary = has_any(fqn, kVocabulary);
  traits.half = has_w_or_v_suffix(fqn, state);
  traits.adapter = has_word(fqn, "lora_");
  traits.flat = has_word(fqn, "flat_param");
  traits.bias = fqn.ends_with(".bias");
  traits.position = has_any(fqn, kPosition);
  traits.head = !traits.state && is_head_name(fqn);
  traits.diffusion = has_any(fqn, kDiffusion);
  return traits;
}

std::string check_command(std::string_view options) {
  return "shardwright check CHECKPOINT" + (options.empty() ? "" : " " + std::string(options));
}

void substitute_checkpoint_path(Explanation& explanation, const std::string& path) {
  constexpr std::string_view kPlaceholder = "CHECKPOINT";
  const std::string word = shell_word(path);
  auto replace_in = [&](std::string& text) {
    for (std::size_t at = text.find(kPlaceholder); at != text.npos;
         at = text.find(kPlaceholder, at + word.size()))
      text.replace(at, kPlaceholder.size(), word);
  };
  for (Hypothesis& one : explanation.hypotheses) replace_in(one.command);
  replace_in(explanation.decide);
}

Explanation explain(std::string_view text, std::optional<WorldSizes> worlds) {
  Explanation explanation{parse_error_text(text), worlds, {}, 0, {}};
  const std::vector<ErrorMessage>& messages = explanation.parsed.messages;
  if (messages.empty()) return explanation;
  std::vector<Counted> all;
  for (const Group& group : groups_of(messages))
    merge(group, hypotheses_of_group(group, worlds), all);
  explanation.none_of_these = 1;
  for (Counted& counted : all) {
    Hypothesis& one = counted.hypothesis;
    one.confidence = counted.sum / static_cast<double>(messages.size());
    explanation.none_of_these -= one.confidence;
    if (messages.size() > 1)
      one.evidence.emplace_back("messages", static_cast<std::int64_t>(counted.messages));
    explanation.hypotheses.push_back(std::move(one));
  }
  explanation.none_of_these = std::max(explanation.none_of_these, 0.0);
  rank(explanation.hypotheses);
  explanation.decide = decisive_evidence_text(explanation);
  return explanation;
}

}  // namespace shw

// Sizes that contradict config.json, which is from another model or was changed: a loader builds
// the model from it and finds weights of other sizes.
#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/reference/config_look.h"
#include "core/facts/reference/model_config.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/rules/reference/config_of_reference.h"
#include "core/rules/reference/transposing_step.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// "model.embed_tokens.weight [96, 32] has 32 columns"
std::string saved_size_text(const Checkpoint& c, const SizeContradiction::Contradicting& one) {
  const ExtentsView shape = c.shape(one.tensor);
  const char* what = one.axis > 1 ? "elements a side"
                     : one.axis == 1
                         ? (shape.size() == 3 && shape[0] == 1 ? "positions" : "columns")
                     : shape.size() == 1 ? "elements"
                                         : "rows";
  return fmt::format("{} {} has {} {}", c.fqn(one.tensor), to_text(shape), shape[one.axis], what);
}

std::string size_contradiction_text(const Checkpoint& c, const SizeContradiction& one) {
  std::string text = one.words + ", but " + saved_size_text(c, one.tensors.front());
  const std::size_t all = one.tensors.size() + one.agreeing;
  if (all == 1) return text;
  return text + fmt::format(" ({} of {})", human_count(one.tensors.size()), plural(all, "tensor"));
}

void add_tensors(const Checkpoint& c, const SizeContradiction& one,
                 std::unordered_set<std::string_view>& known, Finding& finding) {
  for (const auto& tensor : one.tensors) {
    const std::string_view fqn = c.fqn(tensor.tensor);
    if (known.insert(fqn).second) finding.subjects.emplace_back(fqn);
  }
}

// Explains one rank's part of a padded vocabulary that was saved as the whole: "8 parts of 16064
// rows are 128512".
std::string vocabulary_part_text(const Checkpoint& c, const SizeContradiction& one) {
  const bool is_vocabulary =
      one.keys.size() == 1 && one.keys.front().ends_with("vocab_size") && one.agreeing == 0;
  if (!is_vocabulary) return "";
  const auto& first = one.tensors.front();
  const std::int64_t rows = c.shape(first.tensor)[first.axis];
  if (rows <= 0 || rows >= one.said) return "";
  // Padding is a multiple of 128 per rank, and small relative to a vocabulary.
  const std::int64_t parts = (one.said + rows - 1) / rows, most = one.said / 50;
  if (parts < 2 || parts > 1024 || rows > (one.said + most) / parts) return "";
  const bool is_padded = rows * parts != one.said;
  return fmt::format(
      " {} parts of {} rows are {}{}: the rows of one tensor-parallel rank were probably saved as "
      "the whole tensor.",
      parts, rows, rows * parts, is_padded ? ", the vocabulary with its padding" : "");
}

Finding config_finding(const Checkpoint& c, const std::vector<const SizeContradiction*>& told) {
  Finding finding{.rule = "config-shape"};
  std::vector<std::string> lines, keys;
  std::unordered_set<std::string_view> known;
  for (const SizeContradiction* one : told) {
    lines.push_back(size_contradiction_text(c, *one));
    for (const std::string& key : one->keys) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
    add_tensors(c, *one, known, finding);
  }
  const auto& first = told.front()->tensors.front();
  finding.evidence = {{"said", told.front()->said},
                      {"saved", c.shape(first.tensor)[first.axis]},
                      {"keys", std::move(keys)},
                      {"contradictions", capped(lines)},
                      {"count", count_of(finding.subjects.size())}};
  finding.cause = "config.json says " + lines.front();
  for (std::size_t i = 1; i < std::min<std::size_t>(lines.size(), 3); ++i)
    finding.cause += "; " + lines[i];
  if (lines.size() > 3) finding.cause += fmt::format("; and {} more", lines.size() - 3);
  return finding;
}

// Custom code may build the model differently.
constexpr const char* kOwnCode =
    " The model uses custom code (auto_map), which may read this key differently.";

void add_sizes(const Facts& facts, std::vector<Finding>& findings) {
  std::vector<const SizeContradiction*> told;
  for (const SizeContradiction& one : facts.config_fit->sizes) {
    if (!one.only_more_rows) told.push_back(&one);
  }
  if (told.empty()) return;
  Finding finding = config_finding(facts.checkpoint, told);
  finding.cause +=
      ": the config or the weights belong to another model. transformers builds the model from the "
      "config and refuses weights of a different size.";
  finding.cause += vocabulary_part_text(facts.checkpoint, *told.front());
  if (!facts.config_fit->unknown_model.empty()) finding.severity = Severity::kWarning;
  if (facts.config_fit->has_own_code) {
    finding.severity = Severity::kWarning;
    finding.cause += kOwnCode;
  }
  findings.push_back(std::move(finding));
}

void add_more_rows(const Facts& facts, std::vector<Finding>& findings) {
  for (const SizeContradiction& one : facts.config_fit->sizes) {
    if (!one.only_more_rows) continue;
    Finding finding = config_finding(facts.checkpoint, {&one});
    finding.severity = Severity::kWarning;
    const auto& first = one.tensors.front();
    const std::int64_t rows = facts.checkpoint.shape(first.tensor)[first.axis];
    finding.cause += fmt::format(
        ": the rows beyond may be padding of the vocabulary, or tokens that were added after "
        "config.json was written. transformers refuses them with a size mismatch until vocab_size "
        "is {}.",
        rows);
    findings.push_back(std::move(finding));
  }
}

void report_config_dtype(const Facts& facts, std::vector<Finding>& findings) {
  if (!facts.config_fit->dtypes) return;
  const auto& [said, saved] = *facts.config_fit->dtypes;
  Finding finding{.rule = "config-shape", .severity = Severity::kInfo, .subjects = {kConfigFile}};
  finding.cause = fmt::format(
      "config.json says {} and all weights are {}: a loader that takes the dtype of config.json "
      "casts them.",
      name(said), name(saved));
  finding.evidence = {{"said", std::string(name(said))}, {"saved", std::string(name(saved))}};
  findings.push_back(std::move(finding));
}

// Swapped axes that no finding repairs: with a reference, bytes prove a transpose.
void add_exchanged(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  const auto mended = subjects_with_diagnosis(findings);
  const auto exchanged = exchanged_axes(c, facts.progress);
  std::vector<const ExchangedAxes*> told;
  for (const ExchangedAxes& one : exchanged) {
    if (!mended.contains(c.fqn(one.tensor))) told.push_back(&one);
  }
  if (told.empty()) return;
  const ExchangedAxes& first = *told.front();
  Finding finding{.rule = "config-shape"};
  if (!facts.config_fit->unknown_model.empty() || facts.config_fit->has_own_code)
    finding.severity = Severity::kWarning;
  for (const ExchangedAxes* one : told) finding.subjects.emplace_back(c.fqn(one->tensor));
  finding.evidence = {{"saved", copy_of(c.shape(first.tensor))},
                      {"expected", first.expected},
                      {"axes", std::string("exchanged")},
                      {"count", count_of(told.size())}};
  finding.cause = fmt::format(
      "{} {} has its last two axes swapped: config.json says {}, so {} is expected. {} saved "
      "transposed, and a loader refuses the shape or multiplies by the wrong axis.",
      c.fqn(first.tensor), to_text(c.shape(first.tensor)), first.words, to_text(first.expected),
      told.size() == 1 ? std::string("It was") : plural(told.size(), "tensor") + " were");
  std::vector<TensorId> tensors;
  for (const ExchangedAxes* one : told) tensors.push_back(one->tensor);
  if (auto step = transposing_step(c, tensors))
    finding.evidence.emplace_back("suggested_step", std::move(*step));
  findings.push_back(std::move(finding));
}

void find_config_shapes(const Facts& facts, std::vector<Finding>& findings) {
  report_config_of_reference(facts, findings);
  if (!facts.config_fit) return;
  add_exchanged(facts, findings);
  add_sizes(facts, findings);
  add_more_rows(facts, findings);
  report_config_dtype(facts, findings);
}

}  // namespace

const Rule kConfigShape = {
    .id = "config-shape",
    .depth = Depth::kMetadata,
    .title = "A weight's size does not match config.json",
    .teaches =
        "transformers builds the model from config.json and then compares the weights' shapes. If "
        "a folder mixes two models, the config was edited, or a resized embedding was saved "
        "without its config, the sizes differ and the load fails with 'size mismatch'. "
        "transformers classes are compared by the keys that each of them reads; all others by what "
        "nearly all share (norms and embedding have the hidden size). A mismatch is an error for "
        "the best known architectures, otherwise a warning; quantised weights are not compared, "
        "because packing changes their shapes. More rows than vocab_size are a warning, because "
        "they may be padding; fewer rows than vocab_size mean missing data. A weight that matches "
        "with its last two axes swapped is transposed.",
    .lesson = {.drawing = R"(
  config.json                      model.safetensors
  "hidden_size": 4096        but   model.embed_tokens.weight  [32000, 5120]
  "num_key_value_heads": 8   but   k_proj.weight [5120, 5120] is 40 x 128
)",
               .remedy =
                   "Find the config.json that these weights were saved with. If the vocabulary was "
                   "extended and the weights are right, set vocab_size to their number of rows.",
               .link = "https://github.com/NVIDIA-NeMo/RL/issues/415"},
    .words = {.text = "will not load", .as_warning = "of another size"},
    .outcome = RunOutcome::kLoadFails,
    .symptom_in = SymptomIn::kTiles,
    .survives_rewriting = true,
    .run = find_config_shapes,
};

}  // namespace shw

// Parts that config.json announces but the weights lack.
#include <fmt/core.h>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/reference/config_look.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

Finding config_announces_finding(std::string cause) {
  Finding finding{
      .rule = "config-announces", .severity = Severity::kWarning, .subjects = {kConfigFile}};
  finding.cause = std::move(cause);
  return finding;
}

void report_absent_parts(const UnmetConfigClaims& announced, std::vector<Finding>& findings) {
  const auto& parts = announced.absent_parts;
  if (parts.empty()) return;
  Finding finding = config_announces_finding(fmt::format(
      "config.json has {}, but no tensor of {} is there (0 weights have such a name). "
      "An export of only the text model keeps the full config; a loader initializes the "
      "missing part at random or fails.",
      short_list_text(parts), parts.size() == 1 ? "that part" : "these parts"));
  finding.evidence = {{"keys", parts}, {"count", count_of(parts.size())}};
  findings.push_back(std::move(finding));
}

void report_unlisted_predictors(const UnmetConfigClaims& announced,
                                std::vector<Finding>& findings) {
  const auto& [key, said] = *announced.absent_predictors;
  Finding finding = config_announces_finding(fmt::format(
      "config.json says {} {}. {} has {} of these multi-token prediction (MTP) layers, and the "
      "index does not list that file: a loader that follows the index skips it. Speculative "
      "decoding then fails or drafts at random. Add the names to the index's weight_map.",
      key, said, announced.predictors_file, plural(announced.predictors_in_file, "tensor")));
  finding.evidence = {{"key", key}, {"said", said}, {"there", std::int64_t{0}}};
  finding.subjects.push_back(announced.predictors_file);
  findings.push_back(std::move(finding));
}

void report_absent_predictors(const UnmetConfigClaims& announced, std::vector<Finding>& findings) {
  if (!announced.absent_predictors) return;
  const auto& [key, said] = *announced.absent_predictors;
  if (announced.predictors_in_file != 0) {
    report_unlisted_predictors(announced, findings);
    return;
  }
  Finding finding = config_announces_finding(fmt::format(
      "config.json says {} {}, but the checkpoint has 0 multi-token prediction (MTP) layers. "
      "transformers leaves them out when it saves. Text generation works without them, but "
      "speculative decoding with MTP in vLLM or SGLang fails or drafts at random.",
      key, said));
  if (announced.drops_predictors) finding.severity = Severity::kInfo;
  finding.evidence = {{"key", key}, {"said", said}, {"there", std::int64_t{0}}};
  findings.push_back(std::move(finding));
}

void report_leftover_quantisation(const UnmetConfigClaims& announced,
                                  std::vector<Finding>& findings) {
  if (!announced.unapplied_quantisation) return;
  const DeclaredQuantisation& said = *announced.unapplied_quantisation;
  const std::string with_method =
      said.method.empty() ? "" : " with quant_method \"" + said.method + "\"";
  Finding finding = config_announces_finding(
      fmt::format("{}, but no weight is quantised: there is no packed tensor and no scale. The "
                  "weights were dequantised but the {} was not removed: a loader looks for packed "
                  "weights and scales, and fails or reads these as packed.",
                  said.key.empty() ? said.file + " says that weights are quantised"
                                   : "config.json has " + said.key + with_method,
                  said.key.empty() ? "file" : "entry"));
  finding.evidence = {{"key", said.key.empty() ? said.file : said.key},
                      {"quant_method", said.method}};
  findings.push_back(std::move(finding));
}

void report_packed_weights(const Checkpoint& c, const UnmetConfigClaims& announced,
                           std::vector<Finding>& findings) {
  if (announced.packed_weights.empty()) return;
  const TensorId first = announced.packed_weights.front();
  const std::size_t count = announced.packed_weights.size();
  Finding finding = config_announces_finding(fmt::format(
      "{} {} quantised ({} is {}), but config.json has no quantization_config. A loader uses the "
      "packed numbers as weights, without their scales.",
      plural(count, "weight"), count == 1 ? "is" : "are", c.fqn(first), name(c.dtype(first))));
  finding.subjects.clear();
  for (TensorId tensor : announced.packed_weights) finding.subjects.emplace_back(c.fqn(tensor));
  finding.evidence = {{"key", std::string("quantization_config")}, {"count", count_of(count)}};
  findings.push_back(std::move(finding));
}

// Reports FP8 weights without scales. A plain cast keeps each number, and any loader can cast it
// back; with scales it would be another number.
void report_bare_float8(const Checkpoint& c, const UnmetConfigClaims& announced,
                        std::vector<Finding>& findings) {
  if (announced.bare_float8.empty()) return;
  const TensorId first = announced.bare_float8.front();
  const std::size_t count = announced.bare_float8.size();
  Finding finding = config_announces_finding(fmt::format(
      "{} {} {} and 0 scales are there ({}). Either it is a plain cast, as diffusers stores "
      "weights, or the scales were lost (then values are far above 1).",
      plural(count, "weight"), count == 1 ? "is" : "are", name(c.dtype(first)), c.fqn(first)));
  finding.severity = Severity::kInfo;
  finding.evidence = {{"key", std::string("quantization_config")}, {"count", count_of(count)}};
  findings.push_back(std::move(finding));
}

void report_ineffective_tying(const Checkpoint& c, const UnmetConfigClaims& announced,
                              std::vector<Finding>& findings) {
  if (!announced.tied_despite_row_counts) return;
  const auto [head, embedding] = *announced.tied_despite_row_counts;
  Finding finding = config_announces_finding(fmt::format(
      "config.json says tie_word_embeddings true, and {} {} cannot be {} {}. A loader that ties "
      "them drops the head, or fails at the shape: set tie_word_embeddings to false.",
      c.fqn(head), to_text(c.shape(head)), c.fqn(embedding), to_text(c.shape(embedding))));
  finding.evidence = {{"key", std::string("tie_word_embeddings")}, {"said", true}};
  findings.push_back(std::move(finding));
}

void report_layer_types(const UnmetConfigClaims& announced, std::vector<Finding>& findings) {
  if (!announced.layer_types) return;
  const auto& [before, entries, layers] = *announced.layer_types;
  Finding finding = config_announces_finding(
      fmt::format("config.json's {}layer_types has {}, and num_hidden_layers is {}. transformers 5 "
                  "refuses a config whose list does not have one entry per layer. Entries of "
                  "multi-token prediction (MTP) layers do not belong there.",
                  before, plural(static_cast<std::uint64_t>(entries), "entry"), layers));
  finding.evidence = {{"key", before + "layer_types"}, {"said", layers}, {"there", entries}};
  findings.push_back(std::move(finding));
}

void find_announced_and_absent(const Facts& facts, std::vector<Finding>& findings) {
  if (!facts.config_fit) return;
  const UnmetConfigClaims announced =
      unmet_config_claims_of_folder(facts.checkpoint, facts.progress);
  report_absent_parts(announced, findings);
  report_absent_predictors(announced, findings);
  report_leftover_quantisation(announced, findings);
  report_packed_weights(facts.checkpoint, announced, findings);
  report_bare_float8(facts.checkpoint, announced, findings);
  report_ineffective_tying(facts.checkpoint, announced, findings);
  report_layer_types(announced, findings);
}

}  // namespace

const Rule kConfigAnnounces = {
    .id = "config-announces",
    .depth = Depth::kMetadata,
    .title = "config.json describes parts that the checkpoint does not have",
    .teaches =
        "A loader builds the model that config.json describes: a vision part (vision_config), an "
        "audio part (audio_config), multi-token prediction layers (num_nextn_predict_layers), "
        "packed weights (quantization_config), one matrix for embedding and head "
        "(tie_word_embeddings). If the tensors of such a part were never exported, they are "
        "initialized at random or the load fails. The same applies to a quantization_config that "
        "was not removed after dequantising, and to quantised weights without a "
        "quantization_config. Tensors are recognised by their names and dtypes. In a "
        "sentence-transformers folder modules.json lists the module folders.",
    .lesson = {.drawing = R"(
  config.json                        model.safetensors
  "num_nextn_predict_layers": 1      no mtp.*, no layer behind the last one
  "quantization_config": {"fp8"}     all weights bfloat16, no scale
)",
               .remedy = "Export the missing part too, or remove its entry from config.json. For "
                         "dequantised weights delete quantization_config.",
               .link = ""},
    .words = {.text = "does not match config.json"},
    .outcome = RunOutcome::kLosesElements,
    .survives_rewriting = true,
    .run = find_announced_and_absent,
};

}  // namespace shw

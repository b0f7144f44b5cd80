// Zero weights whose siblings are not zero, zero vocabularies, and adapters that have only one
// rank's rows.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/adapter_config.h"
#include "core/facts/names/weight_kinds.h"
#include "core/facts/names/wrapper_marks.h"
#include "core/facts/reference/model_config.h"
#include "core/facts/values/quant_numbers.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/values/zero_rows.h"
#include "core/tensor/float_counts.h"

namespace shw {
namespace {

constexpr std::int64_t kEnoughZeros = 64;
constexpr std::int64_t kMaxFusedParts = 64;
// Limits of reading a matrix: lines per part, elements per line.
constexpr std::int64_t kLinesOfPart = 8, kMaxOfLine = 4096;

std::optional<FloatCounts> float_counts_of_full_tensor(const Facts& facts, TensorId tensor) {
  if (!can_be_counted(facts.checkpoint.dtype(tensor)) ||
      facts.tilings[index_of(tensor)].tiling != Tiling::kExact)
    return std::nullopt;
  return float_counts(facts, tensor);
}

// True for the input or output layer of a language model, which has no siblings.
bool is_vocabulary(std::string_view fqn) {
  constexpr auto kEndings = std::to_array<std::string_view>(
      {"lm_head.weight", "embed_out.weight", "output_layer.weight", "embed_tokens.weight",
       "wte.weight", "word_embeddings.weight", "tok_embeddings.weight"});
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return fqn.ends_with(ending); });
}

// True if all elements of the box are zero; false if it cannot be read.
bool is_zero_box(const Checkpoint& c, TensorId tensor, const Box& box) {
  const auto values = read_box_floats(c, tensor, box);
  return values &&
         std::all_of(values->begin(), values->end(), [](float value) { return value == 0; });
}

// Number of experts whose first, middle and last rows are zero.
std::int64_t experts_with_zero_rows(const Checkpoint& c, TensorId tensor) {
  const ExtentsView shape = c.shape(tensor);
  std::int64_t zero = 0;
  for (std::int64_t expert = 0; expert < shape[0]; ++expert) {
    bool are_zero = true;
    for (const std::int64_t row : {std::int64_t{0}, shape[1] / 2, shape[1] - 1})
      are_zero = are_zero &&
                 is_zero_box(c, tensor, {{expert, row, 0}, {1, 1, std::min(shape[2], kMaxOfLine)}});
    zero += are_zero ? 1 : 0;
  }
  return zero;
}

// Number of zero experts in a stacked tensor, if the zeros amount to whole experts with few left
// over; 0 if all are zero. Numbers of few bits are often zero (one in eight in MXFP4), so rows of
// the experts have to be zero too.
std::int64_t zero_experts(const Checkpoint& c, TensorId tensor, const FloatCounts& counts) {
  const ExtentsView shape = c.shape(tensor);
  if (shape.size() != 3 || shape[0] < 2 || c.fqn(tensor).find("experts") == std::string_view::npos)
    return 0;
  const std::int64_t expert = counts.count / shape[0];
  if (expert < kEnoughZeros || counts.zero == counts.count) return 0;
  const std::int64_t zero = counts.zero / expert;
  const bool may_be = zero > 0 && (counts.zero % expert) * 100 <= expert;
  return may_be && experts_with_zero_rows(c, tensor) == zero ? zero : 0;
}

struct ZeroFamily {
  std::size_t members = 0;
  std::vector<std::string_view> zero;
};

Finding zero_finding(const std::vector<std::string>& subjects, std::string cause) {
  Finding finding{
      .rule = std::string(kZeroWeights.id), .severity = Severity::kWarning, .subjects = subjects};
  finding.cause = std::move(cause);
  finding.evidence = {{"count", count_of(subjects.size())}};
  return finding;
}

void report_zero_experts(const std::vector<std::string>& subjects,
                         const std::vector<std::string>& details, std::vector<Finding>& findings) {
  if (subjects.empty()) return;
  findings.push_back(zero_finding(
      subjects, fmt::format("In {} of stacked experts some experts are all zeros ({}). They were "
                            "never written, or only one rank's experts were saved and the rest "
                            "filled with zeros; a model uses them without an error.",
                            plural(subjects.size(), "tensor"), short_list_text(details))));
  findings.back().evidence = {{"experts", capped(details)}, {"count", count_of(subjects.size())}};
}

void report_zero_vocabulary(const std::vector<std::string>& subjects,
                            std::vector<Finding>& findings) {
  if (subjects.empty()) return;
  findings.push_back(zero_finding(
      subjects, fmt::format("{} {} only zeros: the model cannot tell tokens apart. It was never "
                            "written, unless this checkpoint was saved before the first step.",
                            short_list_text(subjects), subjects.size() == 1 ? "is" : "are")));
}

// Classes whose norms multiply by the weight itself, not by 1 + weight, and whose attention has no
// matrix that begins at zero.
bool never_has_zero_weights(const Facts& facts) {
  constexpr auto kTypes = std::to_array<std::string_view>(
      {"llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "phi3",
       "deepseek_v2", "deepseek_v3", "kimi_k2", "olmo2", "olmoe", "glm4", "glm4_moe", "gpt_oss"});
  const auto& directory = facts.checkpoint.directory();
  if (directory == nullptr) return false;
  const auto config = read_model_config(*directory);
  if (!config || !*config) return false;
  return std::find(kTypes.begin(), kTypes.end(), (*config)->parts.front().model_type) !=
         kTypes.end();
}

// Reports norms, queries and keys that are zero in all layers, so that the output is the same for
// every token.
void report_all_zero(const Facts& facts, const std::map<std::string, ZeroFamily>& families,
                     std::vector<Finding>& findings) {
  constexpr auto kNeverZero = std::to_array<std::string_view>(
      {"norm.weight", "input_layernorm.weight", "post_attention_layernorm.weight", "q_proj.weight",
       "k_proj.weight", "v_proj.weight"});
  std::vector<std::string> subjects, details;
  for (const auto& [name, family] : families) {
    const std::string_view whole = std::string_view(name).substr(0, name.find(" ("));
    const bool is_named =
        std::any_of(kNeverZero.begin(), kNeverZero.end(),
                    [&](std::string_view ending) { return whole.ends_with(ending); });
    if (!is_named || family.zero.empty() || family.zero.size() != family.members) continue;
    details.push_back(name);
    for (std::string_view fqn : family.zero) subjects.emplace_back(fqn);
  }
  if (subjects.empty() || !never_has_zero_weights(facts)) return;
  findings.push_back(zero_finding(
      subjects, fmt::format("{} {} all zero ({}), in every layer that has one: everything they "
                            "multiply becomes zero, and the model gives the same output for every "
                            "input. They were allocated and never written.",
                            plural(subjects.size(), "tensor"), subjects.size() == 1 ? "is" : "are",
                            short_list_text(details))));
}

// Finds unwritten layers and experts: most siblings have values. If zero initialisation is by
// design (the last matrix of a block), most members are zero.
void find_zero_tensors(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::map<std::string, ZeroFamily> families;
  std::vector<std::string> stacked, stacked_details, vocabulary;
  for (TensorId tensor : each_tensor(facts)) {
    if (!is_model_weight(c, tensor)) continue;
    const auto counts = float_counts_of_full_tensor(facts, tensor);
    if (!counts || counts->count < kEnoughZeros) continue;
    if (const std::int64_t experts = zero_experts(c, tensor, *counts); experts != 0) {
      stacked.emplace_back(c.fqn(tensor));
      stacked_details.push_back(
          fmt::format("{}: {} of {} experts", c.fqn(tensor), experts, c.shape(tensor)[0]));
    }
    if (counts->zero == counts->count && is_vocabulary(c.fqn(tensor)))
      vocabulary.emplace_back(c.fqn(tensor));
    ZeroFamily& family = families[kind_of_name(c.fqn(tensor), c.shape(tensor).size())];
    ++family.members;
    if (counts->zero == counts->count) family.zero.push_back(c.fqn(tensor));
  }
  report_zero_experts(stacked, stacked_details, findings);
  report_zero_vocabulary(vocabulary, findings);
  report_all_zero(facts, families, findings);
  Finding finding{.rule = std::string(kZeroWeights.id), .severity = Severity::kWarning};
  std::vector<std::string> details;
  for (const auto& [name, family] : families) {
    if (family.zero.empty() || family.zero.size() * 2 > family.members || family.members < 2)
      continue;
    details.push_back(fmt::format("{}: {} of {}", name, family.zero.size(), family.members));
    for (std::string_view fqn : family.zero) finding.subjects.emplace_back(fqn);
  }
  if (finding.subjects.empty()) return;
  finding.cause = fmt::format(
      "{} {} all zero, while the same {} of other layers or experts {} not ({}). They were never "
      "written, or a tool filled missing data with zeros; a model uses them without an error.",
      plural(finding.subjects.size(), "tensor"), finding.subjects.size() == 1 ? "is" : "are",
      finding.subjects.size() == 1 ? "one" : "ones", finding.subjects.size() == 1 ? "is" : "are",
      short_list_text(finding.subjects));
  finding.evidence = {{"families", capped(details)}, {"count", count_of(finding.subjects.size())}};
  findings.push_back(std::move(finding));
}

struct AdapterZeros {
  std::vector<std::string> partly, all_lora_b_zero;
  std::size_t tensors = 0, b = 0, zero_tensors = 0;
  std::int64_t parts = 0;  // the number of ranks that matches the last tensor
};

// n if the nonzero rows are one of n equal parts and all others are zero; 0 if there is no such n.
std::int64_t parts_of_rows(ExtentsView shape, const FloatCounts& counts) {
  if (shape.size() < 2 || counts.zero == 0 || counts.zero == counts.count) return 0;
  const std::int64_t rows = shape[0], row = counts.count / rows;
  const std::int64_t kept = counts.count - counts.zero;
  for (std::int64_t n = 2; n <= 64 && n <= rows; ++n) {
    const std::int64_t part = (rows + n - 1) / n * row;
    // Single zeros are rare among trained values.
    if (kept <= part && kept * 50 >= part * 49) return n;
  }
  return 0;
}

// One of `parts` equal parts of a matrix along `dim`, with the offset of that part.
struct WrittenPart {
  std::size_t dim = 0;
  std::int64_t parts = 0, part = 0;
};

// n if the number of zeros allows that only one of n equal parts has values. Not conclusive: a
// pruned matrix may have as many.
std::int64_t part_count_by_zeros(ExtentsView shape, const FloatCounts& counts) {
  if (shape.size() != 2 || counts.zero == 0 || counts.zero == counts.count) return 0;
  const std::int64_t kept = counts.count - counts.zero;
  for (std::int64_t n = 2; n <= kMaxFusedParts; ++n) {
    if (shape[0] % n != 0 && shape[1] % n != 0) continue;
    const std::int64_t part = counts.count / n;
    if (kept <= part && kept * 50 >= part * 49) return n;
  }
  return 0;
}

// True if sampled lines across `dim` have values inside the part and are zero outside.
bool is_only_written_part(const Checkpoint& c, TensorId tensor, const WrittenPart& written) {
  const ExtentsView shape = c.shape(tensor);
  const std::int64_t size = shape[written.dim] / written.parts;
  const std::int64_t step = std::max<std::int64_t>(1, size / kLinesOfPart);
  for (std::int64_t at = 0; at < shape[written.dim]; at += step) {
    Box line = whole(copy_of(shape));
    line.offsets[written.dim] = at;
    line.sizes[written.dim] = 1;
    line.sizes[1 - written.dim] = std::min(line.sizes[1 - written.dim], kMaxOfLine);
    if (is_zero_box(c, tensor, line) == (at / size == written.part)) return false;
  }
  return true;
}

std::optional<WrittenPart> written_part(const Checkpoint& c, TensorId tensor, std::int64_t parts) {
  for (std::size_t dim = 0; dim < 2; ++dim) {
    if (c.shape(tensor)[dim] % parts != 0) continue;
    for (std::int64_t part = 0; part < parts; ++part) {
      const WrittenPart written{dim, parts, part};
      if (is_only_written_part(c, tensor, written)) return written;
    }
  }
  return std::nullopt;
}

// The last half of a vocabulary is zeros and no layer has zeros: rows without a token, usually.
Finding padded_vocabulary_finding(const std::vector<std::string>& subjects,
                                  const std::string& detail) {
  Finding finding = zero_finding(
      subjects,
      fmt::format(
          "The last half of the vocabulary is exact zeros ({}). If no token uses these rows, they "
          "are padding. If the tokenizer uses them, only one of two ranks' shards was saved.",
          detail));
  finding.severity = Severity::kInfo;
  return finding;
}

// Reports matrices in which only one rank's part has values: the others were never gathered.
void find_partly_zero_weights(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  struct PartlyZeroWeights {
    std::vector<std::string> subjects, details;
    bool are_last_vocabulary_rows =
        true;  // the zeros are the last rows of embeddings or output layers
  };
  std::map<std::int64_t, PartlyZeroWeights> by_parts;
  for (TensorId tensor : each_tensor(facts)) {
    if (!is_model_weight(c, tensor) || c.shape(tensor).size() != 2) continue;
    const auto counts = float_counts_of_full_tensor(facts, tensor);
    if (!counts || counts->count < kEnoughZeros) continue;
    const std::int64_t parts = part_count_by_zeros(c.shape(tensor), *counts);
    const auto written = parts == 0 ? std::nullopt : written_part(c, tensor, parts);
    if (!written) continue;
    const std::int64_t size = c.shape(tensor)[written->dim] / parts;
    PartlyZeroWeights& partly = by_parts[parts];
    partly.are_last_vocabulary_rows = partly.are_last_vocabulary_rows &&
                                      is_vocabulary(c.fqn(tensor)) && written->dim == 0 &&
                                      written->part == 0;
    partly.subjects.emplace_back(c.fqn(tensor));
    partly.details.push_back(fmt::format("{}: only {} {} to {} have values", c.fqn(tensor),
                                         written->dim == 0 ? "rows" : "columns",
                                         written->part * size, (written->part + 1) * size - 1));
  }
  for (auto& [parts, partly] : by_parts) {
    if (partly.subjects.size() < 2) continue;  // a single tensor may be designed so
    if (parts == 2 && partly.are_last_vocabulary_rows) {
      findings.push_back(padded_vocabulary_finding(partly.subjects, partly.details.front()));
      continue;
    }
    findings.push_back(zero_finding(
        partly.subjects, fmt::format("In {} matrices {} of {} equal parts are exact zeros ({}). "
                                     "One rank's shard was saved as the whole and the rest was "
                                     "never gathered; a model uses the zeros without an error.",
                                     human_count(partly.subjects.size()), parts - 1, parts,
                                     partly.details.front())));
    findings.back().evidence = {{"parts", parts},
                                {"tensors", capped(partly.details)},
                                {"count", count_of(partly.subjects.size())}};
  }
}

// The matrix of an adapter by its name in PEFT, kohya's scripts and diffusers ("lora_up",
// "lora.up").
std::optional<LoraPart> part_of_adapter(std::string_view fqn) {
  if (parse_state_fqn(fqn)) return std::nullopt;
  if (fqn.ends_with("lora_up.weight") || fqn.ends_with("lora.up.weight")) return LoraPart::kB;
  if (fqn.ends_with("lora_down.weight") || fqn.ends_with("lora.down.weight")) return LoraPart::kA;
  auto name = lora_name(fqn);
  return name ? std::optional(name->part) : std::nullopt;
}

// True if files of a training run exist next to the adapter; an adapter that was only created has
// none.
bool has_training_files(const Checkpoint& c) {
  const auto& directory = c.directory();
  if (directory == nullptr) return false;
  constexpr auto kFiles = std::to_array<const char*>(
      {"trainer_state.json", "training_args.bin", "optimizer.pt", "optimizer.bin", "scheduler.pt"});
  return std::any_of(kFiles.begin(), kFiles.end(), [&](const char* file) {
    return directory->stat(file).kind == EntryKind::kFile;
  });
}

void find_adapter_zeros(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  AdapterZeros seen;
  for (TensorId tensor : each_tensor(facts)) {
    const auto part = part_of_adapter(c.fqn(tensor));
    const auto counts = part ? float_counts_of_full_tensor(facts, tensor) : std::nullopt;
    if (!counts || counts->count == 0 || *part == LoraPart::kMagnitude) continue;
    const bool is_b = *part == LoraPart::kB || *part == LoraPart::kEmbeddingA;
    ++seen.tensors;
    seen.zero_tensors += counts->zero == counts->count ? 1 : 0;
    seen.b += is_b ? 1 : 0;
    if (is_b && counts->zero == counts->count) seen.all_lora_b_zero.emplace_back(c.fqn(tensor));
    const std::int64_t parts = parts_of_rows(c.shape(tensor), *counts);
    if (parts == 0) continue;
    seen.parts = parts;
    seen.partly.push_back(
        fmt::format("{}: {} of {} elements are zeros", c.fqn(tensor), counts->zero, counts->count));
  }
  if (seen.partly.size() >= 2 && seen.partly.size() * 4 >= seen.tensors) {
    Finding finding{.rule = std::string(kZeroWeights.id), .severity = Severity::kWarning};
    finding.cause = fmt::format(
        "In {} of {} of the adapter {} of {} equal parts of the rows are exact zeros ({}). One "
        "rank's shard was saved and the rest filled with zeros; the adapter applies only that "
        "shard.",
        human_count(seen.partly.size()), plural(seen.tensors, "tensor"), seen.parts - 1, seen.parts,
        seen.partly.front());
    for (const std::string& one : seen.partly)
      finding.subjects.push_back(one.substr(0, one.find(": ")));
    finding.evidence = {{"tensors", capped(seen.partly)},
                        {"count", count_of(seen.partly.size())},
                        {"parts", seen.parts}};
    findings.push_back(std::move(finding));
  }
  if (seen.b == 0 || seen.all_lora_b_zero.empty()) return;
  Finding finding{.rule = std::string(kZeroWeights.id)};
  const bool all = seen.all_lora_b_zero.size() == seen.b;
  // LoRA starts A at random, so an adapter of zeros alone was allocated and never written.
  const bool is_unwritten = seen.zero_tensors == seen.tensors && seen.tensors > seen.b;
  // An info if the adapter may be early in its training: the run may not have updated some layers
  // yet.
  finding.severity =
      is_unwritten || (all && has_training_files(c)) ? Severity::kWarning : Severity::kInfo;
  finding.cause = fmt::format(
      "{} of {} of the adapter {} only zeros, their initial value in LoRA: {}.",
      human_count(seen.all_lora_b_zero.size()), plural(seen.b, "lora_B or lora_up tensor"),
      seen.all_lora_b_zero.size() == 1 ? "is" : "are",
      is_unwritten ? "so are all others, which LoRA starts at random. The adapter was allocated "
                     "and never written, or its shards were not gathered"
      : all ? "the adapter has no effect: it was never trained, or its training was not saved"
            : "these modules were never trained");
  finding.evidence = {{"count", count_of(seen.all_lora_b_zero.size())}, {"of", count_of(seen.b)}};
  finding.subjects = std::move(seen.all_lora_b_zero);
  findings.push_back(std::move(finding));
}

void find_zero_weights(const Facts& facts, std::vector<Finding>& findings) {
  find_zero_tensors(facts, findings);
  find_partly_zero_weights(facts, findings);
  report_zero_rows(facts, findings);
  find_adapter_zeros(facts, findings);
}

}  // namespace

const Rule kZeroWeights = {
    .id = "zero-weights",
    .depth = Depth::kData,
    .title = "A weight holds only zeros",
    .teaches =
        "A trained weight should not be all zeros if the same weight in other layers or experts is "
        "not: it was allocated and never written, or a tool filled missing data with zeros. The "
        "same holds for rows: if one quarter of each matrix has values and three quarters are "
        "exactly zero, one rank of four saved its shard as the whole. Matrices that start at zero "
        "by design (LoRA's B, the last one of a residual block) are zero in all layers, and are "
        "reported only as info.",
    .lesson = {.drawing = R"(
  experts.5.gate_proj.weight     0.013  -0.207   0.090
  experts.6.gate_proj.weight     0       0       0         never written
  experts.7.gate_proj.weight     0.051   0.120  -0.044
)",
               .remedy = "Take the tensors from an earlier checkpoint or from the ranks that hold "
                         "them; this one does not contain their values."},
    .words = {.text = "nothing but zeros"},
    .outcome = RunOutcome::kLosesElements,
    .run = find_zero_weights,
};

}  // namespace shw

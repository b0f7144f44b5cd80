// Numbers of layers, experts or heads that differ from config.json. A loader
// initialises missing ones randomly and ignores additional ones, with a line in its
// log.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// "3", "3 to 7 and 9"; the last number of a hostile config may be huge.
std::string ranges_text(const std::vector<NumberRange>& ranges) {
  std::vector<std::string> texts;
  for (const NumberRange& range : ranges) {
    texts.push_back(range.first == range.last ? fmt::format("{}", range.first)
                                              : fmt::format("{} to {}", range.first, range.last));
  }
  return short_list_text(texts);
}

std::int64_t count_numbers_in_ranges(const std::vector<NumberRange>& ranges) {
  std::int64_t count = 0;
  for (const NumberRange& range : ranges) count += range.last - range.first + 1;
  return count;
}

// Names such as "model.layers.30", limited in number.
std::vector<std::string> member_names(const CountContradiction& one,
                                      const std::vector<NumberRange>& ranges) {
  constexpr std::size_t kMaxNamed = 4096;
  std::vector<std::string> names;
  for (const std::string& row : one.rows) {
    for (const NumberRange& range : ranges) {
      for (std::int64_t i = range.first; i <= range.last && names.size() < kMaxNamed; ++i)
        names.push_back(fmt::format("{}{}", row, i));
    }
  }
  return names;
}

std::string row_words(const CountContradiction& one) {
  return one.rows.size() == 1
             ? one.row + "*"
             : fmt::format("{}* and {} like it", one.row, plural(one.rows.size() - 1, "row"));
}

Finding count_finding(const CountContradiction& one, const std::vector<NumberRange>& ranges,
                      const char* key) {
  Finding finding{.rule = "config-count",
                  .severity = Severity::kWarning,
                  .subjects = member_names(one, ranges)};
  finding.evidence = {{"key", one.key},
                      {"said", one.said},
                      {"there", one.there},
                      {key, ranges_text(ranges)},
                      {"count", count_numbers_in_ranges(ranges)},
                      {"rows", capped(one.rows)}};
  return finding;
}

// A gap between existing layers, which neither pipeline stages nor truncated models have.
bool is_gap(const CountContradiction& one) {
  return std::any_of(one.missing.begin(), one.missing.end(), [&](const NumberRange& range) {
    return range.first > 0 && range.last < one.said - 1;
  });
}

void add_missing(const Facts& facts, const CountContradiction& one,
                 std::vector<Finding>& findings) {
  if (one.missing.empty()) return;
  Finding finding = count_finding(one, one.missing, "missing");
  const bool is_sure = !facts.config_fit->has_own_code && facts.config_fit->unknown_model.empty();
  if (is_gap(one) && is_sure) finding.severity = Severity::kError;
  finding.cause = fmt::format(
      "config.json says {}; of {} there {} {}, and {} {} not there: transformers initializes them "
      "at random, with only a line in its log.",
      one.words, row_words(one), one.there == 1 ? "is" : "are", one.there, ranges_text(one.missing),
      count_numbers_in_ranges(one.missing) == 1 ? "is" : "are");
  findings.push_back(std::move(finding));
}

void add_extra(const CountContradiction& one, std::vector<Finding>& findings) {
  if (one.extra.empty()) return;
  Finding finding = count_finding(one, one.extra, "extra");
  finding.cause = fmt::format(
      "config.json says {}; of {} there {} {}, and {} {} beyond what it counts: transformers skips "
      "them, so the loaded model differs from the saved one.",
      one.words, row_words(one), one.there == 1 ? "is" : "are", one.there, ranges_text(one.extra),
      count_numbers_in_ranges(one.extra) == 1 ? "is" : "are");
  findings.push_back(std::move(finding));
}

void add_head(const Facts& facts, std::vector<Finding>& findings) {
  if (!facts.config_fit->missing_head) return;
  Finding finding{.rule = "config-count",
                  .severity = Severity::kWarning,
                  .subjects = {*facts.config_fit->missing_head}};
  finding.cause = *facts.config_fit->missing_head +
                  " is missing, and config.json says tie_word_embeddings false: transformers "
                  "initializes it at random. If the model ties it to its embedding, set "
                  "tie_word_embeddings to true; otherwise its trained values are lost.";
  finding.evidence = {{"key", std::string("tie_word_embeddings")}, {"said", false}};
  findings.push_back(std::move(finding));
}

void find_config_counts(const Facts& facts, std::vector<Finding>& findings) {
  if (!facts.config_fit) return;
  for (const CountContradiction& one : facts.config_fit->counts) {
    add_missing(facts, one, findings);
    add_extra(one, findings);
  }
  add_head(facts, findings);
}

}  // namespace

const Rule kConfigCount = {
    .id = "config-count",
    .depth = Depth::kMetadata,
    .title = "The number of layers, experts or heads differs from config.json",
    .teaches =
        "transformers builds as many layers as config.json says. Layers without weights in the "
        "folder are initialized at random, and layers beyond the count are skipped; in both cases "
        "the model loads, with only a line in the log. The same applies to the experts of a layer, "
        "and to an output layer that is not tied to the embedding and was never saved. Multi-token "
        "prediction layers (num_nextn_predict_layers) come after the count and are right. A gap "
        "between layers is an error: no library saves a model like that.",
    .lesson = {.drawing = R"(
  config.json                   model.safetensors
  "num_hidden_layers": 32       model.layers.0 ... model.layers.29
                                30 and 31 are made up
)",
               .remedy =
                   "Get the missing files, or the config.json that these weights were saved with.",
               .link = "https://github.com/vllm-project/vllm/pull/34930"},
    .words = {.text = "does not match the counts in config.json"},
    .outcome = RunOutcome::kLosesElements,
    .subjects = SubjectKind::kAbsentTensors,
    .survives_rewriting = true,
    .run = find_config_counts,
};

}  // namespace shw

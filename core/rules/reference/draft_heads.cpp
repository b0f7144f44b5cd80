// Parts of draft models for speculation that do not fit each other: EAGLE's tables between two
// vocabularies, and Medusa's numbered heads.
//
//   d2t  one entry per token of the draft's vocabulary: how far its id is from the target's
//   t2d  one flag per token of the target's vocabulary: whether the draft has it
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/reference/config_look.h"
#include "core/facts/reference/model_config.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

using ConfigSizes = std::map<std::string, std::int64_t, std::less<>>;

// The numbers at the top of config.json; empty if there are none or it cannot be read, which other
// rules report.
ConfigSizes sizes_in_folder(const Checkpoint& c) {
  if (c.directory() == nullptr) return {};
  auto numbers = read_config_numbers(*c.directory());
  return numbers && *numbers ? std::move((*numbers)->sizes) : ConfigSizes{};
}

// A number that has to be equal to others, and where it comes from.
struct Length {
  std::string words;  // "lm_head.weight has 32,000 rows"
  std::int64_t value = 0;
};

void add_size(const ConfigSizes& sizes, const char* key, std::vector<Length>& lengths) {
  const auto said = sizes.find(key);
  if (said == sizes.end()) return;
  const auto value = static_cast<std::uint64_t>(said->second);
  lengths.push_back({fmt::format("config.json says {} {}", key, human_count(value)), said->second});
}

void add_rows(const Checkpoint& c, const std::string& fqn, std::vector<Length>& lengths) {
  const auto tensor = c.find(fqn);
  if (!tensor || c.shape(*tensor).size() != 2) return;
  const std::int64_t rows = c.shape(*tensor)[0];
  lengths.push_back(
      {fmt::format("{} has {} rows", fqn, human_count(static_cast<std::uint64_t>(rows))), rows});
}

void report_table(const Checkpoint& c, TensorId table, const std::vector<Length>& lengths,
                  std::vector<Finding>& findings) {
  const std::int64_t entries = c.shape(table)[0];
  const bool fits = std::all_of(lengths.begin(), lengths.end(),
                                [&](const Length& one) { return one.value == entries; });
  if (fits) return;
  std::vector<std::string> texts;
  for (const Length& one : lengths) texts.push_back(one.words);
  Finding finding{.rule = "draft-heads", .subjects = {std::string(c.fqn(table))}};
  finding.cause = fmt::format(
      "{} has {} entries, and {}: they have to be equal. The table was made for another "
      "vocabulary, or cut. A server fails at its shape, or maps drafted tokens to wrong ones.",
      c.fqn(table), human_count(static_cast<std::uint64_t>(entries)), short_list_text(texts));
  finding.evidence = {{"there", entries}, {"said", lengths.front().value}};
  findings.push_back(std::move(finding));
}

void report_vocabulary_tables(const Facts& facts, const ConfigSizes& sizes,
                              std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = c.fqn(tensor);
    const std::string before(fqn.substr(0, fqn.rfind('.') + 1));
    const std::string_view last = fqn.substr(before.size());
    if (c.shape(tensor).size() != 1 || (last != "d2t" && last != "t2d")) continue;
    std::vector<Length> lengths;
    if (last == "d2t") {
      add_rows(c, before + "lm_head.weight", lengths);
      add_size(sizes, "draft_vocab_size", lengths);
    } else {
      add_size(sizes, "vocab_size", lengths);
    }
    report_table(c, tensor, lengths, findings);
  }
}

// --- numbered heads

struct DraftHeads {
  std::map<std::uint32_t, std::set<std::string>> heads;  // names of each head's tensors
  bool is_alone = true;                                  // no other tensor is in the checkpoint
};

// The part of a name after its head's row: "0.1.weight" in "medusa_head.0.1.weight".
std::optional<std::string_view> name_part_after_head_row(std::string_view fqn,
                                                         std::string_view row) {
  if (row.empty()) return fqn;
  const std::size_t at = fqn.find(row);
  if (at == fqn.npos || (at != 0 && fqn[at - 1] != '.')) return std::nullopt;
  return fqn.substr(at + row.size());
}

DraftHeads collect_draft_heads(const Facts& facts, std::string_view row) {
  const Checkpoint& c = facts.checkpoint;
  DraftHeads found;
  for (TensorId tensor : each_tensor(facts)) {
    auto rest = name_part_after_head_row(c.fqn(tensor), row);
    const auto number = rest ? consume_number(*rest) : std::nullopt;
    if (number && rest->starts_with('.'))
      found.heads[*number].emplace(rest->substr(1));
    else
      found.is_alone = false;
  }
  return found;
}

// Names that are missing: whole heads, and tensors that a head lacks and all others have.
std::vector<std::string> missing_in(const DraftHeads& row, std::string_view before,
                                    std::int64_t said) {
  constexpr std::int64_t kMaxHeads = 64;  // public ones have 3 to 5
  std::vector<std::string> missing;
  std::map<std::string, std::size_t> counted;
  for (const auto& [number, names] : row.heads) {
    for (const std::string& name : names) ++counted[name];
  }
  const std::int64_t last = row.heads.rbegin()->first;
  const std::int64_t count = std::max(last + 1, said);
  if (count > kMaxHeads) return {};
  for (std::uint32_t number = 0; number < static_cast<std::uint32_t>(count); ++number) {
    const auto head = row.heads.find(number);
    if (head == row.heads.end()) {
      missing.push_back(fmt::format("{}{}", before, number));
      continue;
    }
    for (const auto& [name, there] : counted) {
      if (there + 1 == row.heads.size() && !head->second.contains(name))
        missing.push_back(fmt::format("{}{}.{}", before, number, name));
    }
  }
  return missing;
}

void report_head_row(const DraftHeads& row, std::string_view before, std::string_view key,
                     std::int64_t said, std::vector<Finding>& findings) {
  constexpr std::size_t kMinHeads = 2;
  if (row.heads.size() < kMinHeads) return;
  std::vector<std::string> missing = missing_in(row, before, said);
  if (missing.empty()) return;
  Finding finding{.rule = "draft-heads", .severity = Severity::kWarning};
  const std::string announced =
      said == 0 ? "" : fmt::format(", and config.json says {} {}", key, said);
  const std::string where = before.empty() ? "" : fmt::format(" {}*", before);
  finding.cause = fmt::format(
      "{} {} missing from the numbered draft heads{}: {} are there{}. A server fails, or drafts at "
      "random with the missing heads: slower, but the output is right.",
      short_list_text(missing), missing.size() == 1 ? "is" : "are", where, row.heads.size(),
      announced);
  finding.evidence = {{"missing", capped(missing)},
                      {"count", count_of(missing.size())},
                      {"said", said},
                      {"there", count_of(row.heads.size())}};
  finding.subjects = std::move(missing);
  findings.push_back(std::move(finding));
}

void report_missing_heads(const Facts& facts, const ConfigSizes& sizes,
                          std::vector<Finding>& findings) {
  constexpr std::string_view kKey = "medusa_num_heads";
  const auto found = sizes.find(kKey);
  const std::int64_t said = found == sizes.end() ? 0 : found->second;
  for (std::string_view before : {"medusa_head.", "medusa_heads."})
    report_head_row(collect_draft_heads(facts, before), before, kKey, said, findings);
  // A file of the heads alone numbers them at the top.
  if (said == 0) return;
  const DraftHeads alone = collect_draft_heads(facts, "");
  if (alone.is_alone) report_head_row(alone, "", kKey, said, findings);
}

void find_draft_heads(const Facts& facts, std::vector<Finding>& findings) {
  if (!is_complete_folder(facts.checkpoint)) return;
  const ConfigSizes sizes = sizes_in_folder(facts.checkpoint);
  report_vocabulary_tables(facts, sizes, findings);
  report_missing_heads(facts, sizes, findings);
}

}  // namespace

const Rule kDraftHeads = {
    .id = "draft-heads",
    .depth = Depth::kMetadata,
    .title = "A draft model's tables or heads do not fit",
    .teaches =
        "Draft models guess several tokens that the target model then confirms. EAGLE-3 drafts in "
        "a smaller vocabulary: d2t has an entry for each of its tokens, t2d a flag for each token "
        "of the target. Medusa adds numbered heads to the target. A table with a different length "
        "belongs to another vocabulary, and a missing head was lost in an export: the target's "
        "text stays right, but drafts are wrong or the server fails. More heads than "
        "medusa_num_heads are allowed: a loader uses the first ones.",
    .lesson = {.drawing = R"(
  config.json                  model.safetensors
  "draft_vocab_size": 32000    lm_head.weight [32000, 4096]
                               d2t [31990]     10 tokens without an entry
)",
               .remedy = "Export the draft again with the tables of its own vocabulary, and with "
                         "all heads.",
               .link = "https://github.com/SafeAILab/EAGLE"},
    .words = {.text = "draft heads do not fit"},
    .outcome = RunOutcome::kLosesElements,
    .subjects = SubjectKind::kAbsentTensors,
    .survives_rewriting = true,
    .run = find_draft_heads,
};

}  // namespace shw

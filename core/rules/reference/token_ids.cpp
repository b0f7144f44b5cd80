// Token ids in the files next to the weights for which the embedding has no row.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/reference/config_look.h"
#include "core/facts/reference/token_ids.h"
#include "core/rules/explained.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

std::string id_text(const NamedTokenId& one) {
  return fmt::format("{} {} ({})", one.name, one.id, one.file);
}

std::string ids_text(const std::vector<NamedTokenId>& ids) {
  std::vector<std::string> texts;
  for (const NamedTokenId& one : ids) texts.push_back(id_text(one));
  return short_list_text(texts);
}

Finding token_finding(const Checkpoint& c, const TokenIdsBeyond& beyond,
                      const std::vector<NamedTokenId>& ids, std::string cause) {
  Finding finding{.rule = std::string(kTokenIds.id), .severity = Severity::kWarning};
  finding.subjects.emplace_back(c.fqn(beyond.embedding));
  finding.cause = std::move(cause);
  std::vector<std::string> texts;
  for (const NamedTokenId& one : ids) texts.push_back(id_text(one));
  finding.evidence = {
      {"ids", capped(texts)}, {"count", count_of(ids.size())}, {"rows", beyond.rows}};
  return finding;
}

void find_token_ids(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (!is_complete_folder(c)) return;
  const auto beyond = token_ids_beyond_embedding(c, facts.progress);
  if (!beyond) return;
  // Skipped if a finding explains it by one rank's part of the vocabulary, or by another size than
  // in config.json.
  const std::string_view embedding = c.fqn(beyond->embedding);
  if (explained_by(findings, kConfigShape.id).contains(embedding) ||
      explained_by(findings, kLocalSavedAsGlobal.id).contains(embedding))
    return;
  const std::string table =
      fmt::format("{} has {} rows, so ids 0 to {}", embedding, beyond->rows, beyond->rows - 1);
  // In models with smaller vocabularies these may be defaults of the config's class.
  if (!beyond->special.empty()) {
    findings.push_back(token_finding(
        c, *beyond, beyond->special,
        fmt::format(
            "{}: {} {} no row. With such a padding id many models fail to build (Padding_idx must "
            "be within num_embeddings); with such an end id generation never ends.",
            table, ids_text(beyond->special), beyond->special.size() == 1 ? "has" : "have")));
    findings.back().severity = Severity::kInfo;
  }
  if (beyond->added.empty()) return;
  findings.push_back(token_finding(
      c, *beyond, beyond->added,
      fmt::format("{}: {} of the tokenizer {} no row: {}. A text with {} crashes the model (index "
                  "out of range; on a GPU a device-side assert). The embedding was not resized to "
                  "the tokenizer before the save, or the tokenizer belongs to another model.",
                  table, plural(beyond->added.size(), "added token"),
                  beyond->added.size() == 1 ? "has" : "have", ids_text(beyond->added),
                  beyond->added.size() == 1 ? "it" : "one of them")));
}

}  // namespace

const Rule kTokenIds = {
    .id = "token-ids",
    .depth = Depth::kMetadata,
    .title = "A token id is larger than the embedding",
    .teaches =
        "Each token id is a row of the input embedding. Training that adds tokens (a padding "
        "token, marks of a chat) calls resize_token_embeddings(len(tokenizer)); if that was "
        "skipped, or its result was not saved, the tokenizer produces ids without a row. The "
        "weights load without an error, and the first text with such a token crashes the model. "
        "The same holds for the ids in config.json and generation_config.json.",
    .lesson = {.drawing = R"(
  tokenizer.json   "<pad>" is 32000
  embed_tokens     [32000, 4096]     rows 0 to 31999
)",
               .remedy = "Call model.resize_token_embeddings(len(tokenizer)), and save model and "
                         "tokenizer together. Or use the tokenizer that belongs to these weights.",
               .link = "https://huggingface.co/docs/transformers/main_classes/model"},
    .words = {.text = "ids without a row", .as_warning = "ids without a row"},
    .survives_rewriting = true,
    .run = find_token_ids,
};

}  // namespace shw

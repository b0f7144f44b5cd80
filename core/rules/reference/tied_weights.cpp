// Embedding and output layer of a model are one tensor (tied) or two. A save that wrongly assumes
// tying drops the second; a load that wrongly assumes it ignores the second.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/facts.h"
#include "core/facts/reference/config_look.h"
#include "core/facts/reference/model_config.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/facts/reference/tensor_contents.h"
#include "core/facts/values/equal_elements.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

bool is_embedding(std::string_view fqn) {
  constexpr std::array<std::string_view, 5> kWords = {"embed_tokens", "word_embeddings", "wte",
                                                      "tok_embeddings", "embedding.weight"};
  return contains_any(fqn, kWords) && !fqn.starts_with("optim");
}

bool is_head(std::string_view fqn) {
  constexpr std::array<std::string_view, 4> kWords = {"lm_head", "output_layer", "embed_out",
                                                      "output.weight"};
  return contains_any(fqn, kWords) && fqn.ends_with("weight") && !fqn.starts_with("optim");
}

// The other tensor of a possible tied pair in the reference: the only one of its role and shape.
std::optional<TensorId> tied_partner_in_reference(const Facts& facts, TensorId tensor) {
  const Checkpoint& reference = *facts.reference;
  bool head = is_head(reference.fqn(tensor));
  std::optional<TensorId> found;
  for (TensorId other : each_of(reference.tensors(), facts)) {
    std::string_view fqn = reference.fqn(other);
    if (other == tensor || !(head ? is_embedding(fqn) : is_head(fqn))) continue;
    if (!same(reference.shape(other), reference.shape(tensor))) continue;
    if (found) return std::nullopt;
    found = other;
  }
  return found;
}

struct TiedCandidates {
  TensorId missing{}, kept{};  // both in the reference
};

constexpr std::string_view kTied = "tied", kApart = "apart";

// Relation of the pair; empty if one cannot be read.
std::string encode_relation_of_pair(const Facts& facts, const TiedCandidates& pair) {
  const Checkpoint& reference = *facts.reference;
  auto read = [&](TensorId tensor) {
    return pieces_of(reference, tensor, Dtype::kUnknown, facts.progress);
  };
  auto one = read(pair.missing), two = one ? read(pair.kept) : std::nullopt;
  auto same_elements = two ? are_equal_elements(*one, *two) : std::nullopt;
  if (!same_elements) return {};
  return std::string(*same_elements ? kTied : kApart);
}

// The class of config.json, if it has no head over the vocabulary; otherwise empty.
std::string class_without_head(const Checkpoint& c) {
  if (c.directory() == nullptr) return {};
  const auto config = read_model_config(*c.directory());
  if (!config || !*config || (*config)->architectures.size() != 1) return {};
  const std::string& name = (*config)->architectures.front();
  constexpr auto kEndings = std::to_array<std::string_view>(
      {"ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"});
  const bool has_none = std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) {
    return name.ends_with(ending);
  });
  return has_none ? name : std::string();
}

// The head of a language model next to a classifier that was made of it.
void add_replaced_head(const Checkpoint& reference, const TiedCandidates& pair,
                       const std::string& class_name, std::vector<Finding>& findings) {
  Finding finding{.rule = "tied-weights", .severity = Severity::kInfo};
  finding.subjects = {std::string(reference.fqn(pair.missing))};
  finding.cause = fmt::format(
      "{} is only in the reference: config.json's {} has no head over the vocabulary, and its "
      "loader does not look for one.",
      finding.subjects.front(), class_name);
  finding.evidence = {{"kept", std::string(reference.fqn(pair.kept))},
                      {"equal_in_reference", false}};
  findings.push_back(std::move(finding));
}

void add_tie(const Checkpoint& reference, const TiedCandidates& pair, bool tied,
             std::vector<Finding>& findings) {
  Finding finding{.rule = "tied-weights", .severity = tied ? Severity::kInfo : Severity::kError};
  std::string name(reference.fqn(pair.missing)), kept(reference.fqn(pair.kept));
  finding.subjects = {name};
  finding.cause =
      tied ? name + " was not saved; in the reference it equals " + kept +
                 " byte for byte: the two are tied, and a loader that ties them needs nothing more."
           : name + " was not saved, as if it were tied to " + kept +
                 "; in the reference the two differ, so its trained values are lost.";
  finding.evidence = {{"kept", kept}, {"equal_in_reference", tied}};
  finding.link = "NeMo AutoModel #2511";
  findings.push_back(std::move(finding));
}

// True if both are the same view of one storage: two names of one tensor.
bool are_one_tensor(const Checkpoint& c, TensorId one, TensorId two) {
  const ChunkId first = c.chunks(one)[0], second = c.chunks(two)[0];
  if (c.dtype(one) != c.dtype(two) || !same(c.shape(one), c.shape(two))) return false;
  const auto a = c.view(first), b = c.view(second);
  return a ? b && a->offset == b->offset && same(a->strides, b->strides) : !b;
}

// Reports names that the reference has for tensors of which the checkpoint has another name:
// torch.save writes each name of a tied weight, save_pretrained one of them. Returns these tensors.
std::set<TensorId> report_second_names(const Facts& facts, const std::vector<bool>& is_there,
                                       std::vector<Finding>& findings) {
  const Checkpoint& reference = *facts.reference;
  std::map<StorageId, TensorId> there;
  const auto storage_of = [&](TensorId tensor) {
    const auto chunks = reference.chunks(tensor);
    return chunks.size() == 1 ? reference.storage(chunks[0]) : StorageId::kNone;
  };
  for (TensorId tensor : each_of(reference.tensors(), facts)) {
    if (is_there[index_of(tensor)] && storage_of(tensor) != StorageId::kNone)
      there.emplace(storage_of(tensor), tensor);
  }
  std::set<TensorId> out;
  for (TensorId missing : each_of(reference.tensors(), facts)) {
    if (is_there[index_of(missing)]) continue;
    const auto kept = there.find(storage_of(missing));
    if (kept == there.end() || !are_one_tensor(reference, kept->second, missing)) continue;
    out.insert(missing);
    add_tie(reference, {missing, kept->second}, true, findings);
  }
  return out;
}

// True if the checkpoint has other tensors of the same module: a quantised head has no ".weight".
bool has_parts_of(const Checkpoint& c, std::string_view fqn) {
  const std::string module(fqn.substr(0, fqn.rfind('.') + 1));
  if (module.empty()) return false;
  for (TensorId tensor : c.tensors()) {
    if (c.fqn(tensor).starts_with(module)) return true;
  }
  return false;
}

// Compares both tensors if both are stored and config.json says whether they are tied.
Status compare_pair(const Facts& facts, std::vector<Finding>& findings) {
  if (!facts.config_fit || facts.depth != Depth::kData) return {};
  const Checkpoint& c = facts.checkpoint;
  const UnmetConfigClaims announced = unmet_config_claims_of_folder(c, facts.progress);
  const bool is_tied = announced.tied.has_value();
  if (!is_tied && !announced.untied) return {};
  const auto [head, embedding] = is_tied ? *announced.tied : *announced.untied;
  TensorContents contents(facts, c);
  SHW_CHECK(contents.learn({head, embedding}));
  const std::string &one = contents.of(head), &two = contents.of(embedding);
  if (one.empty() || two.empty() || (one == two) == is_tied) return {};
  Finding finding{.rule = "tied-weights",
                  .severity = Severity::kWarning,
                  .subjects = {std::string(c.fqn(head)), std::string(c.fqn(embedding))}};
  const std::string pair =
      fmt::format("{} and {} ({} both)", c.fqn(head), c.fqn(embedding), to_text(c.shape(head)));
  finding.cause =
      is_tied ? fmt::format(
                    "config.json says tie_word_embeddings true, but {} are stored and differ. A "
                    "loader that follows config.json drops one of them without an error. Both were "
                    "trained, or a merge untied them: set tie_word_embeddings to false.",
                    pair)
              : fmt::format(
                    "config.json says tie_word_embeddings false, but {} have the same elements. "
                    "Two separately trained matrices are never equal. Either they are tied, and "
                    "config.json should say so, or the head was lost and the embedding written "
                    "instead.",
                    pair);
  finding.evidence = {{"key", std::string("tie_word_embeddings")}, {"said", is_tied}};
  finding.link = "https://github.com/huggingface/transformers/issues/45127";
  findings.push_back(std::move(finding));
  return {};
}

Status find_tied_weights(const Facts& facts, std::vector<Finding>& findings) {
  SHW_CHECK(compare_pair(facts, findings));
  if (facts.reference == nullptr) return {};
  const Checkpoint& reference = *facts.reference;
  std::vector<bool> is_there(reference.tensor_count(), false);
  for (const auto& other : facts.counterparts) {
    if (other) is_there[index_of(*other)] = true;
  }
  const std::set<TensorId> second_names = report_second_names(facts, is_there, findings);
  std::vector<TiedCandidates> pairs;
  std::vector<ComparisonCost> costs;
  for (TensorId missing : each_of(reference.tensors(), facts)) {
    std::string_view fqn = reference.fqn(missing);
    if (is_there[index_of(missing)] || (!is_head(fqn) && !is_embedding(fqn))) continue;
    auto other = tied_partner_in_reference(facts, missing);
    if (!other || !is_there[index_of(*other)] || second_names.contains(missing) ||
        has_parts_of(facts.checkpoint, fqn))
      continue;
    pairs.push_back({missing, *other});
    costs.push_back(
        {2 * bytes_of_elements(reference, missing), memory_to_read_in_pieces(reference, missing)});
  }
  if (pairs.empty()) return {};
  auto find = [&](std::size_t i) -> Result<std::string> {
    return encode_relation_of_pair(facts, pairs[i]);
  };
  SHW_TRY(auto told, map_comparisons(facts, "look for tied weights", costs, find));
  const std::string headless = class_without_head(facts.checkpoint);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const bool is_replaced = !headless.empty() && is_head(reference.fqn(pairs[i].missing));
    if (told[i] == kApart && is_replaced) {
      add_replaced_head(reference, pairs[i], headless, findings);
      continue;
    }
    // For unreadable tensors, missing-key reports the rest.
    if (!told[i].empty()) add_tie(reference, pairs[i], told[i] == kTied, findings);
  }
  return {};
}

}  // namespace

const Rule kTiedWeights = {
    .id = "tied-weights",
    .depth = Depth::kHeaders,
    .title = "One of two tied weights is missing, or they differ",
    .teaches =
        "Many models use one matrix as embedding and as output layer. Such a pair is saved once, "
        "and a loader uses it for both. If the two were never tied, or differ after training, a "
        "save that drops one loses it. With --against another checkpoint that has both, their "
        "bytes show which case it is. If config.json says tie_word_embeddings true and both are "
        "stored with different bytes, as after a merge of an adapter that trained both, --data "
        "reports it: a loader keeps only one. Two equal matrices with tie_word_embeddings false "
        "are reported too.",
    .lesson = {.drawing = R"(
  reference                saved
  embed_tokens.weight      embed_tokens.weight
  lm_head.weight           -                     the same matrix, or another?
)",
               .remedy = "If the bytes are equal nothing is lost: the loader ties them. If they "
                         "differ, take the missing one from another step.",
               .link = "https://github.com/NVIDIA-NeMo/Automodel/pull/2511"},
    .subjects = SubjectKind::kAbsentTensors,
    .run_shared = find_tied_weights,
};

}  // namespace shw

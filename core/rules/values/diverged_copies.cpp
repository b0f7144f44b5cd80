#include "core/rules/values/diverged_copies.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "core/base/letter_case.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Compares lower-case words of a name: "rank_0.rngState" has rank, 0 and rngstate.
bool has_word(std::string_view fqn, std::span<const std::string_view> words) {
  std::string word;
  for (std::size_t i = 0; i <= fqn.size(); ++i) {
    const char c = i < fqn.size() ? fqn[i] : '.';
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += lower(c);
      continue;
    }
    if (std::find(words.begin(), words.end(), word) != words.end()) return true;
    word.clear();
  }
  return false;
}

// True for tensors that may differ between ranks, checked by their form. Integers are never
// trained, so these are not diverged weights: generators of torch (uint8: 5,056 elements on a CPU,
// 16 on a GPU) and numpy (624 words and a position), and names of per-rank data.
bool is_rank_specific_tensor(const Checkpoint& c, TensorId tensor) {
  constexpr auto kGenerators =
      std::to_array<std::string_view>({"rng", "rngs", "prng", "seed", "seeds", "generator"});
  constexpr auto kDataFeedWords = std::to_array<std::string_view>(
      {"dataloader", "dataset", "sampler", "worker", "rank", "random"});
  constexpr auto kStates = std::to_array<std::int64_t>({5056, 16, 624, 625});
  const Dtype dtype = c.dtype(tensor);
  if (dtype < Dtype::kInt8 || dtype > Dtype::kUint64) return false;
  const std::string_view fqn = c.fqn(tensor);
  const ExtentsView shape = c.shape(tensor);
  if (shape.size() > 1) return false;
  const std::int64_t length = shape.empty() ? 1 : shape[0];
  if (dtype == Dtype::kUint8 && length == kStates[0]) return true;
  if (has_word(fqn, kGenerators)) return true;
  const bool is_state = std::find(kStates.begin(), kStates.end(), length) != kStates.end();
  return has_word(fqn, kDataFeedWords) && (is_state || length <= 4);
}

// True if each rank loads its own uncut tensor by its own index.
bool is_loaded_per_rank(const Checkpoint& c, TensorId tensor) {
  if (c.format().traits.index_of_rank == nullptr) return false;
  auto chunks = c.chunks(tensor);
  return chunks.size() == 1 && same(c.sizes(chunks[0]), c.shape(tensor));
}

struct CopyMismatches {
  std::vector<std::string> subjects, how;
  void add(const std::string& fqn, const std::string& words) {
    subjects.push_back(fqn);
    how.push_back(fqn + ": " + words);
  }
};

void report_mismatches(const CopyMismatches& doubts, Severity severity, std::string_view rule,
                       std::string cause, std::vector<Finding>& findings) {
  if (doubts.how.empty()) return;
  Finding finding{.rule = std::string(rule), .severity = severity, .subjects = doubts.subjects};
  finding.cause = std::move(cause);
  finding.evidence = {{"copies", capped(doubts.how)}, {"count", count_of(doubts.how.size())}};
  findings.push_back(std::move(finding));
}

}  // namespace

void find_diverged_copies(const Facts& facts, std::vector<Finding>& findings) {
  using Kind = ReplicaMismatch::Kind;
  CopyMismatches unread, apart, own, of_rank;
  for (const auto& [tensor, doubt] : facts.replica_mismatches) {
    const bool is_own =
        doubt.kind == Kind::kDiffers && is_loaded_per_rank(facts.checkpoint, tensor);
    CopyMismatches& to = doubt.kind == Kind::kUnread                         ? unread
                         : !is_own                                           ? apart
                         : is_rank_specific_tensor(facts.checkpoint, tensor) ? of_rank
                                                                             : own;
    to.add(std::string(facts.checkpoint.fqn(tensor)), doubt.words);
  }
  if (!unread.how.empty())
    report_mismatches(unread, Severity::kInfo, kNotLookedAt.id,
                      "Copies of chunks of " + plural(unread.how.size(), "tensor") +
                          " could not be compared (" + unread.how.front() + ").",
                      findings);
  report_mismatches(apart, Severity::kError, kReplicaDiverge.id,
                    "Ranks saved the same elements of " + plural(apart.how.size(), "tensor") +
                        " with different values, and it is not known which are right (" +
                        short_list_text(apart.how) + ").",
                    findings);
  report_mismatches(own, Severity::kWarning, kReplicaDiverge.id,
                    "Ranks saved different elements of " + plural(own.how.size(), "tensor") +
                        " under one name (" + short_list_text(own.how) +
                        "). Each rank loads its own values back, but copies of one tensor should "
                        "be equal; repair, reshard and convert keep only the lowest rank's values.",
                    findings);
  report_mismatches(
      of_rank, Severity::kInfo, kReplicaDiverge.id,
      "Each rank has " + plural(of_rank.how.size(), "tensor") + " of its own (" +
          short_list_text(of_rank.subjects) +
          "): the state of its random generator or data loader. The values should differ; "
          "repair, reshard and convert keep only the lowest rank's.",
      findings);
}

}  // namespace shw

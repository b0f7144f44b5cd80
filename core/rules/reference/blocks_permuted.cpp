// N1, N2, N3, S5 E5 with a reference: the shape is right, every number is there, and they lie
// in another order (spec/failures.md 8). One pass reads both checkpoints and reports two rules:
// blocks-permuted, differs-from-reference.
#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "core/facts/block_order.h"
#include "core/facts/block_words.h"
#include "core/facts/memo.h"
#include "core/facts/reference_bytes.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Fewer elements than this may come out as a permutation of each other by chance.
constexpr std::int64_t kLeastElements = 8;

// Weights that several matrices were fused into: where an order goes wrong.
bool is_fused(std::string_view fqn) {
  constexpr std::array<std::string_view, 17> kFused = {
      "fc1",    "gate_up", "up_gate", "gateup", "w13",           "qkv",     "query_key_value",
      "c_attn", "in_proj", "wqkv",    "wi",     "dense_h_to_4h", "experts", "w_in",
      "mlp1",   "glu",     "kv_proj"};
  std::string lower(fqn);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(kFused.begin(), kFused.end(),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

// N1: every chunk is a block, and each of the ranks wrote two of them.
bool halves_a_writer(const Checkpoint& checkpoint, TensorId tensor, const BlockOrder& order) {
  std::map<std::uint32_t, int> by_writer;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    if (volume(checkpoint.sizes(chunk)) == 0) continue;
    auto writer = checkpoint.writer(chunk);
    if (!writer || checkpoint.sizes(chunk)[order.dim] != order.block) return false;
    ++by_writer[*writer];
  }
  return !by_writer.empty() && std::all_of(by_writer.begin(), by_writer.end(),
                                           [](const auto& one) { return one.second == 2; });
}

// More chunks than ranks that wrote them: a rank that saved in parts.
bool is_cut_by_its_writers(const Checkpoint& checkpoint, TensorId tensor) {
  std::map<std::uint32_t, int> by_writer;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    if (volume(checkpoint.sizes(chunk)) == 0) continue;
    if (++by_writer[checkpoint.writer(chunk).value_or(0)] > 1) return true;
  }
  return false;
}

struct Outcome {
  std::map<std::string, Finding> permuted;  // by what is said about the order
  std::vector<std::string> ambiguous, other;
  std::int64_t equal = 0, unread = 0;
};

void add_permuted(const Checkpoint& c, TensorId tensor, BlockOrder order, Outcome& outcome) {
  BlockPattern pattern = recognise(order, halves_a_writer(c, tensor, order));
  OrderName named = name_of(pattern, order, row_kind_of(c.fqn(tensor)));
  std::string within = pattern.segments > 1
                           ? ", within each of " + std::to_string(pattern.segments) + " equal parts"
                           : "";
  Finding& finding = outcome.permuted[named.says + within + std::to_string(order.dim)];
  if (finding.subjects.empty()) {
    finding.rule = "blocks-permuted";
    finding.link = named.link;
    finding.cause = std::string(c.fqn(tensor)) +
                    " has the right shape and every number of the reference, in another order "
                    "along dim " +
                    std::to_string(order.dim) + ": " + named.says + within +
                    ". It loads without a message.";
    finding.evidence = {{"family", named.family},
                        {"dimension", static_cast<std::int64_t>(order.dim)},
                        {"rows a block", order.block},
                        {"blocks", count_of(order.order.size())},
                        {"segments", pattern.segments}};
    Extents shown(order.order.begin(),
                  order.order.begin() +
                      static_cast<std::ptrdiff_t>(std::min(order.order.size(), kMaxEvidence)));
    finding.evidence.emplace_back("block on disk of each true block", std::move(shown));
  }
  finding.subjects.emplace_back(c.fqn(tensor));
  finding.diagnoses.emplace_back(
      BlocksPermuted{tensor, order.dim, order.block, std::move(order.order)});
}

void compare(const RuleInput& input, TensorId tensor, TensorId other, Outcome& outcome) {
  const Checkpoint& c = input.checkpoint;
  ExtentsView saved = c.shape(tensor);
  if (has_equal_bytes(c, tensor, *input.reference, other)) {
    ++outcome.equal;
    return;
  }
  auto image = whole_values(c, tensor);
  auto truth = image ? whole_values(*input.reference, other) : std::nullopt;
  if (!image || !truth) {
    ++outcome.unread;
    return;
  }
  std::string fqn(c.fqn(tensor));
  std::size_t element = size_of(c.dtype(tensor));
  if (image->bytes == truth->bytes) {
    ++outcome.equal;
    return;
  }
  BlockComparison found = compare_blocks(image->bytes, truth->bytes, saved, element);
  if (found.answer == BlockAnswer::kPermuted)
    add_permuted(c, tensor, std::move(found.order), outcome);
  else if (found.answer == BlockAnswer::kAmbiguous)
    outcome.ambiguous.push_back(std::move(fqn));
  else
    outcome.other.push_back(std::move(fqn));
}

void report_differing(const Outcome& outcome, std::vector<Finding>& findings) {
  if (outcome.ambiguous.empty() && outcome.other.empty()) return;
  Finding finding;
  finding.rule = "differs-from-reference";
  finding.severity = Severity::kInfo;
  finding.subjects = outcome.other;
  finding.subjects.insert(finding.subjects.end(), outcome.ambiguous.begin(),
                          outcome.ambiguous.end());
  finding.cause = plural(finding.subjects.size(), "tensor") +
                  (finding.subjects.size() == 1 ? " holds" : " hold") +
                  " other bytes than the reference (" + some_of(finding.subjects) +
                  "): by bytes alone nothing can be said about the order of what they hold.";
  if (!outcome.ambiguous.empty())
    finding.cause += " " + some_of(outcome.ambiguous) +
                     " has the reference's rows in another order, with equal rows among them: "
                     "which belongs where is undecided.";
  finding.evidence = {{"equal", outcome.equal},
                      {"different", count_of(outcome.other.size())},
                      {"ambiguous", outcome.ambiguous},
                      {"not_read", outcome.unread}};
  findings.push_back(std::move(finding));
}

// At Depth::kHeaders only what an order goes wrong in: fused weights, squares, what its writers
// cut.
bool is_suspicious(const RuleInput& input, TensorId tensor) {
  const Checkpoint& c = input.checkpoint;
  return input.depth == Depth::kData || is_square(c.shape(tensor)) || is_fused(c.fqn(tensor)) ||
         is_cut_by_its_writers(c, tensor);
}

void run(const RuleInput& input, std::vector<Finding>& findings) {
  if (input.reference == nullptr) return;
  const Checkpoint& c = input.checkpoint;
  auto explained = with_diagnosis(findings);
  Outcome outcome;
  for (std::uint32_t t = 0; t < c.tensor_count(); ++t) {
    TensorId tensor{t};
    auto other = counterpart(input, tensor);
    if (!other || explained.contains(c.fqn(tensor))) continue;
    ExtentsView saved = c.shape(tensor);
    if (!same(saved, input.reference->shape(*other))) continue;  // a matter of shape: other rules
    if (volume(saved).value_or(0) < kLeastElements || !is_suspicious(input, tensor)) continue;
    if (memo_of(input).equal_to_reference.contains(tensor)) {
      ++outcome.equal;
      continue;
    }
    compare(input, tensor, *other, outcome);
  }
  for (auto& [says, finding] : outcome.permuted) {
    finding.remedy = Remedy{"permute-blocks", true,
                            "Put the blocks in the order of the reference: nothing is lost. "
                            "Optimizer states are moved only where the reference has them too."};
    findings.push_back(std::move(finding));
  }
  report_differing(outcome, findings);
}

}  // namespace

const Rule kBlocksPermuted = {
    "blocks-permuted", Depth::kHeaders, "The rows are all there, in another order",
    "Fused weights hold several matrices in one: gate and up, query, key and value. Trainers, "
    "exporters and kernels disagree about how they are stacked, and all orders have the same "
    "shape, so a wrong one loads without a message and answers nonsense. With --against another "
    "checkpoint the blocks are compared byte by byte; where they are the same ones in another "
    "order, the order is solved, its cause named if it is a known one, and the repair moves the "
    "blocks and loses nothing. Blocks that are equal to each other leave it undecided.",
    run};

const Rule kDiffersFromReference = {
    "differs-from-reference", Depth::kHeaders, "Other bytes than in the reference",
    "Not a defect: another step of the same training holds other numbers. It is said because the "
    "comparison with --against looks for equal blocks in another order, and finds out nothing "
    "where the numbers themselves differ.",
    nullptr};

}  // namespace shw

// Optimizer states that are plain tensors (TransformerEngine #2795): every rank offers its shard as
// the whole tensor, and deduplication keeps one. Exact test: the state has the size of the
// parameter's chunk that the state's writer owns (empty if it owns none), and belongs in that
// chunk's box.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/layout/retained_chunks.h"
#include "core/facts/layout/spec_layout.h"
#include "core/facts/states/local_states.h"
#include "core/facts/values/locate_rows.h"
#include "core/facts/values/value_reader.h"
#include "core/mesh/infer.h"
#include "core/rules/layout/adjacent_optimizer.h"
#include "core/rules/layout/copies_saved_local.h"
#include "core/rules/layout/part_by_config.h"
#include "core/rules/layout/wrong_request.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// `given_up`: complete moments that are reset because others are lost.
std::vector<PartlyLost> place_chunks_of_local_states(const Facts& facts,
                                                     const std::vector<LocalState>& locals,
                                                     std::vector<std::string>& given_up) {
  const Checkpoint& c = facts.checkpoint;
  std::vector<PartlyLost> parts;
  parts.reserve(locals.size());
  std::vector<std::size_t> moments;
  for (const LocalState& local : locals) {
    if (!local.home) continue;
    PartlyLost part{local.state.state, local.expected, {}, {}};
    if (!is_empty(*local.home))
      part.retained_chunks.push_back(
          whole_retained_chunk(local.chunk, c.sizes(local.chunk), local.home->offsets));
    if (local.state.role == StateRole::kMaster && local.state.parameter &&
        local.state.is_parameter_certain)
      part.refill_from = c.fqn(*local.state.parameter);
    if (local.state.role == StateRole::kMoment) moments.push_back(parts.size());
    parts.push_back(std::move(part));
  }
  given_up = keep_common_moments(c, facts.other_orders, moments, parts);
  return parts;
}

const LocalState& non_empty_example(const Checkpoint& c, const std::vector<LocalState>& locals) {
  auto found = std::find_if(locals.begin(), locals.end(), [&](const LocalState& local) {
    return volume(c.shape(local.state.state)).value_or(1) != 0;
  });
  return found == locals.end() ? locals.front() : *found;
}

Finding describe_local(const Checkpoint& c, const std::vector<LocalState>& locals) {
  Finding finding{.rule = "local-saved-as-global"};
  finding.link = "TransformerEngine #2795";
  std::vector<OptimizerState> states;
  for (const LocalState& local : locals) {
    finding.subjects.emplace_back(c.fqn(local.state.state));
    states.push_back(local.state);
  }
  const LocalState& example = non_empty_example(c, locals);
  finding.cause = count_text(static_cast<std::int64_t>(locals.size()), "optimizer state was",
                             "optimizer states were") +
                  " saved as plain tensors: one rank's shard was saved as the whole tensor (" +
                  std::string(c.fqn(example.state.state)) + " is " +
                  to_text(c.shape(example.state.state)) + ", its parameter " +
                  to_text(example.expected) + "), and the shards of all other ranks are lost.";
  finding.evidence = {{"example", std::string(c.fqn(example.state.state))},
                      {"saved_shape", copy_of(c.shape(example.state.state))},
                      {"shape_of_the_parameter", example.expected},
                      {"written_by_rank", static_cast<std::int64_t>(example.writer)},
                      {"who_wrote_what_survived", writers_by_kind(c, states)}};
  if (example.home && !is_empty(*example.home))
    finding.evidence.emplace_back("belongs_at", std::vector<Box>{*example.home});
  return finding;
}

// Confirms the placement by values: a rounded master equals the rows of its
// weight.
struct ValueConfirmation {
  std::vector<std::string> agree, contradict;
};

ValueConfirmation compare_values(const Facts& facts, const std::vector<LocalState>& locals) {
  constexpr std::size_t kMost = 64;   // masters
  constexpr std::int64_t kSure = 16;  // minimum number of contradicting elements
  const Checkpoint& c = facts.checkpoint;
  ValueConfirmation out;
  if (facts.depth != Depth::kData) return out;
  ValueBudget budget = value_budget(facts);
  for (const LocalState& local : locals) {
    if (local.state.role != StateRole::kMaster || !local.state.parameter ||
        !local.state.is_parameter_certain || !local.home || is_empty(*local.home))
      continue;
    if (out.agree.size() + out.contradict.size() >= kMost) break;
    TensorId model = *local.state.parameter;
    auto master = read_values(facts, local.state.state, budget);
    auto weights = master ? read_values(facts, model, budget) : std::nullopt;
    auto found = weights ? locate_rows(*master, *weights) : std::nullopt;
    if (!found) continue;
    Box box = whole(local.expected);
    box.offsets[found->dim] = found->at;
    box.sizes[found->dim] = found->count;
    std::string text = std::string(name(weights->dtype)) + "(" +
                       std::string(c.fqn(local.state.state)) + ") equals " +
                       std::string(c.fqn(model)) + " rows " + rows_text(found->at, found->count);
    if (box == *local.home) {
      out.agree.push_back(std::move(text));
    } else if (found->elements >= kSure) {
      out.contradict.push_back(text + ", but its writer owns " + to_text(*local.home));
    }
  }
  return out;
}

void report_placed_states(const Facts& facts, const std::vector<LocalState>& locals,
                          const ValueConfirmation& values, std::vector<Finding>& findings) {
  if (locals.empty()) return;
  Finding finding = describe_local(facts.checkpoint, locals);
  if (!values.contradict.empty()) {
    finding.evidence.emplace_back("values_say_otherwise", capped(values.contradict));
    finding.evidence.emplace_back(
        "undecided",
        std::string("the masters' values match rows of other ranks than the file names say, so "
                    "file names cannot be used: files were renamed, or the rank order differs"));
    findings.push_back(std::move(finding));
    return;
  }
  if (!values.agree.empty()) finding.evidence.emplace_back("values_agree", capped(values.agree));
  std::vector<std::string> given_up;
  std::vector<PartlyLost> parts = place_chunks_of_local_states(facts, locals, given_up);
  LostCount loss = loss_of(parts);
  finding.evidence.emplace_back("placed_by", locals.front().source);
  finding.evidence.emplace_back("total_kept_elements", loss.kept);
  finding.evidence.emplace_back("total_lost_elements", loss.lost);
  if (!given_up.empty()) finding.evidence.emplace_back("whole_moments_reset", capped(given_up));
  std::string text = fmt::format(
      "Put each saved shard where its rank's chunk of the parameter is, keep moment rows only if "
      "all moments have them, mask the rest: {} elements kept, {} lost",
      loss.kept, loss.lost);
  if (loss.refilled != 0) {
    finding.evidence.emplace_back("refilled_from_the_model", loss.refilled);
    text += fmt::format(", {} of them (masters) refilled from the model", loss.refilled);
  }
  finding.remedy = Remedy{loss.kept == 0 ? "mask" : "retile", false, text + "."};
  for (PartlyLost& part : parts) finding.diagnoses.emplace_back(std::move(part));
  findings.push_back(std::move(finding));
}

void report_unplaced_states(const Facts& facts, const std::vector<LocalState>& locals,
                            std::vector<Finding>& findings) {
  std::map<std::string, std::vector<LocalState>> by_reason;
  for (const LocalState& local : locals) by_reason[local.why_not].push_back(local);
  for (const auto& [why_not, alike] : by_reason) {
    Finding finding = describe_local(facts.checkpoint, alike);
    finding.evidence.emplace_back("undecided", why_not);
    auto guesses =
        infer_meshes(facts.checkpoint, named_meshes(facts.spec), nullptr, facts.progress);
    if (!guesses.empty()) {
      finding.evidence.emplace_back("likely_mesh", to_text(guesses.front().mesh));
      finding.evidence.emplace_back("confidence", guesses.front().confidence);
    }
    findings.push_back(std::move(finding));
  }
}

// By key: moments of unknown parameters where one is empty and the other is not. No optimizer makes
// such a pair, but a rank without rows saves one half of it.
std::vector<std::pair<TensorId, TensorId>> half_empty_pairs(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  std::map<std::string_view, std::pair<std::vector<TensorId>, std::vector<TensorId>>> by_key;
  for (const OptimizerState& state : each_state(facts)) {
    if (state.role != StateRole::kMoment || state.parameter || c.shape(state.state).empty())
      continue;
    auto& [empty, full] = by_key[state.key];
    (volume(c.shape(state.state)) == 0 ? empty : full).push_back(state.state);
  }
  std::vector<std::pair<TensorId, TensorId>> pairs;
  for (const auto& [key, halves] : by_key) {
    const auto& [empty, full] = halves;
    if (empty.size() == 1 && full.size() == 1 &&
        c.shape(empty[0]).size() == c.shape(full[0]).size())
      pairs.emplace_back(empty[0], full[0]);
  }
  return pairs;
}

std::string shape_line(const Checkpoint& checkpoint, TensorId tensor) {
  return std::string(checkpoint.fqn(tensor)) + " " + to_text(checkpoint.shape(tensor));
}

void report_half_empty_pairs(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  const auto pairs = half_empty_pairs(facts);
  if (pairs.empty()) return;
  Finding finding{.rule = "local-saved-as-global"};
  finding.link = "TransformerEngine #2795";
  for (const auto& [empty, full] : pairs) {
    finding.subjects.emplace_back(c.fqn(empty));
    finding.subjects.emplace_back(c.fqn(full));
  }
  const auto& [empty, full] = pairs.front();
  finding.cause = fmt::format(
      "{} has elements and {} of the same parameter has none: optimizer states were saved as plain "
      "tensors, so one rank's shard was saved as the whole tensor, here from different ranks, one "
      "of which holds no row. The shards of all other ranks are lost.",
      c.fqn(full), c.fqn(empty));
  finding.evidence = {
      {"pairs", count_of(pairs.size())},
      {"shapes", std::vector<std::string>{shape_line(c, empty), shape_line(c, full)}},
      {"undecided",
       std::string("it is not known which parameters these states belong to: give --spec")}};
  findings.push_back(std::move(finding));
}

void find_local_saved_as_global(const Facts& facts, std::vector<Finding>& findings) {
  report_wrong_requests(facts, RequestKind::kOther, "local-saved-as-global",
                        "TransformerEngine #2795", findings);
  std::vector<LocalState> locals = local_states(facts);
  auto unknown = std::stable_partition(
      locals.begin(), locals.end(), [](const LocalState& local) { return local.home.has_value(); });
  std::vector<LocalState> unplaced(std::make_move_iterator(unknown),
                                   std::make_move_iterator(locals.end()));
  locals.erase(unknown, locals.end());
  report_placed_states(facts, locals, compare_values(facts, locals), findings);
  report_unplaced_states(facts, unplaced, findings);
  report_half_empty_pairs(facts, findings);
  find_adjacent_parts(facts, findings);
  find_parts_by_config(facts, findings);
  find_copies_saved_local(facts, findings);
}

}  // namespace

const Rule kLocalSavedAsGlobal = {
    .id = "local-saved-as-global",
    .depth = Depth::kMetadata,
    .title = "One rank's shard was saved as the whole tensor",
    .teaches =
        "If optimizer states are plain tensors instead of DTensors, every rank saves its shard as "
        "the whole tensor, and deduplication keeps one of them; load balancing decides which. The "
        "state then has the shape of one chunk of its parameter (or is empty, if that rank owns no "
        "row). The repair puts each saved shard where its rank's chunk is, keeps moments only "
        "where all of them are known, refills masters from the model, and masks the rest. The same "
        "happens to weights: DTensors that one rank saved without gathering, the state dict of one "
        "tensor-parallel rank published as a model, or one rank's optimizer.pt next to full "
        "weights. Their other rows are in no file: save again with all ranks.",
    .lesson =
        {.drawing = R"(
  parameter [8]           │ 0 1 │ 2 3 │ 4 5 │ 6 7 │
  held by rank               0     1     2     3

  any state, expected     │ 0 1 │ 2 3 │ 4 5 │ 6 7 │   [8]
  exp_avg, saved                │ 2 3 │               [2] of rank 1
  exp_avg_sq, saved                   │ 4 5 │         [2] of rank 2
  master_param, saved                       │ 6 7 │   [2] of rank 3
)",
         .remedy =
             "`shardwright repair` puts each saved shard at its rank's rows, keeps moments only "
             "where both are known, and refills masters from the model. The rest is masked.",
         .link = "https://github.com/NVIDIA/TransformerEngine/pull/2795"},
    .cause_of = ExplainedSymptoms::kTiles,
    .makes_shapes_doubtful = true,
    .run = find_local_saved_as_global,
};

}  // namespace shw

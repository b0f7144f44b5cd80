// S3, TransformerEngine #2795. Optimizer states that are plain tensors: every rank offers its own
// shard as the whole tensor, and deduplication keeps one of them. The exact rule (failures.md
// 0.7.2): the state's size is that of the chunk of the parameter which the state's writer owns,
// empty where it owns none, and that chunk's box is where the survivor belongs.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/facts/locate_rows.h"
#include "core/facts/spec_layout.h"
#include "core/facts/survivors.h"
#include "core/facts/value_reader.h"
#include "core/mesh/error_models.h"
#include "core/mesh/infer.h"
#include "core/rules/layout/wrong_request.h"
#include "core/rules/reports.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

struct Local {
  OptimizerState state;
  Extents expected;
  std::uint32_t writer = 0;
  ChunkId chunk{};
  std::optional<Box>
      home;            // where the survivor belongs; empty box: nothing survived; none: unknown
  std::string source;  // what tells it
};

// One chunk from the origin that is the whole tensor: what a plain tensor leaves.
std::optional<ChunkId> only_chunk(const Checkpoint& c, TensorId state) {
  auto chunks = c.chunks(state);
  if (chunks.size() != 1) return std::nullopt;
  ExtentsView offsets = c.offsets(chunks[0]);
  bool at_origin = std::all_of(offsets.begin(), offsets.end(), [](auto o) { return o == 0; });
  if (!at_origin || !same(c.sizes(chunks[0]), c.shape(state))) return std::nullopt;
  return chunks[0];
}

bool has_elements(ExtentsView sizes) {
  return volume(sizes).value_or(1) != 0;
}

// An empty shard keeps all extents but the one that was cut.
bool is_empty_shard(ExtentsView sizes, ExtentsView shape) {
  if (sizes.size() != shape.size() || has_elements(sizes)) return false;
  std::size_t differing = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (sizes[d] != shape[d]) ++differing;
  }
  return differing == 1;
}

Box empty_box(ExtentsView shape) {
  return Box{copy_of(shape), Extents(shape.size(), 0)};
}

// The chunk of `parameter` that `writer` owns: what it wrote itself, or what the spec's mesh gives
// it where deduplication let a replica write.
void find_home(const RuleInput& input, TensorId parameter, Local& local) {
  const Checkpoint& c = input.checkpoint;
  ExtentsView sizes = c.sizes(local.chunk);
  bool wrote_any = false;
  for (ChunkId chunk : c.chunks(parameter)) {
    if (c.writer(chunk) != local.writer || !has_elements(c.sizes(chunk))) continue;
    if (!lies_inside(c.offsets(chunk), c.sizes(chunk), local.expected)) continue;
    wrote_any = true;
    if (!same(c.sizes(chunk), sizes)) continue;
    local.home = saved_box(c, chunk);
    local.source = "the chunk of the parameter that the same rank wrote";
    return;
  }
  if (wrote_any) return;
  if (is_empty_shard(sizes, local.expected)) {
    local.home = empty_box(local.expected);
    local.source = "the rank owns no row of the parameter";
    return;
  }
  // A replica wrote for it: the mesh tells which.
  auto take = [&](const Mesh& mesh, const std::vector<Placement>& placements, std::int64_t rank,
                  std::string_view source) {
    auto box = nested_box(local.expected, mesh, placements, rank);
    if (!box || !same(box->sizes, sizes)) return;
    for (ChunkId chunk : c.chunks(parameter)) {
      if (saved_box(c, chunk) != *box) continue;
      local.home = *box;
      local.source = source;
      return;
    }
  };
  const SpecEntry* entry = layout_of(input, c.fqn(parameter));
  if (entry != nullptr && same(entry->shape, local.expected)) {
    auto rank = rank_on(input, *entry->mesh, local.writer);
    if (rank)
      take(*entry->mesh, entry->placements, *rank,
           "the spec's mesh: a replica of the rank wrote that chunk of the parameter");
  } else if (input.mesh != nullptr && local.writer < input.mesh->size()) {
    auto placements = infer_placements(c, *input.mesh, parameter);
    if (placements)
      take(*input.mesh, *placements, local.writer,
           "the mesh that was given: a replica of the rank wrote that chunk of the parameter");
  }
}

// Has the state the size of any chunk of the parameter? Enough to say what happened, not where the
// survivor belongs.
bool looks_local(const Checkpoint& c, TensorId parameter, ExtentsView sizes) {
  if (is_empty_shard(sizes, c.shape(parameter))) return true;
  if (c.chunks(parameter).size() < 2) return false;
  for (ChunkId chunk : c.chunks(parameter)) {
    if (same(c.sizes(chunk), sizes)) return true;
  }
  return false;
}

std::optional<Local> by_parameter(const RuleInput& input, const OptimizerState& state) {
  const Checkpoint& c = input.checkpoint;
  if (same(c.shape(state.state), c.shape(*state.parameter))) return std::nullopt;
  if (c.shape(state.state).size() != c.shape(*state.parameter).size()) return std::nullopt;
  auto chunk = only_chunk(c, state.state);
  auto writer = chunk ? c.writer(*chunk) : std::nullopt;
  if (!writer) return std::nullopt;
  Local local{state, copy_of(c.shape(*state.parameter)), *writer, *chunk, std::nullopt, {}};
  find_home(input, *state.parameter, local);
  if (!local.home && !looks_local(c, *state.parameter, c.sizes(*chunk))) return std::nullopt;
  return local;
}

// A checkpoint of the optimizer alone: the spec says what the state should be.
std::optional<Local> by_spec(const RuleInput& input, const OptimizerState& state) {
  const Checkpoint& c = input.checkpoint;
  const SpecEntry* entry = layout_of(input, c.fqn(state.state));
  if (entry == nullptr || same(c.shape(state.state), entry->shape)) return std::nullopt;
  if (c.shape(state.state).size() != entry->shape.size()) return std::nullopt;
  auto chunk = only_chunk(c, state.state);
  auto writer = chunk ? c.writer(*chunk) : std::nullopt;
  auto rank = writer ? rank_on(input, *entry->mesh, *writer) : std::nullopt;
  if (!rank) return std::nullopt;
  auto box = nested_box(entry->shape, *entry->mesh, entry->placements, *rank);
  if (!box || !same(box->sizes, c.sizes(*chunk))) return std::nullopt;
  return Local{state, entry->shape, *writer, *chunk, *box, "the spec's mesh and placements"};
}

// States of one kind that are wrong but not in this way speak against it: a factored or quantised
// optimizer has states of other shapes by design.
std::vector<Local> local_states(const RuleInput& input) {
  const Checkpoint& c = input.checkpoint;
  std::set<TensorId> split = split_locally(input);
  std::map<std::string, std::vector<Local>> hits;
  std::map<std::string, std::size_t> misses;
  for (const OptimizerState& state : optimizer_states(c)) {
    if (split.contains(state.state) || c.shape(state.state).empty()) continue;
    if (state.parameter) {
      if (same(c.shape(state.state), c.shape(*state.parameter))) continue;
      if (auto local = by_parameter(input, state))
        hits[state.kind].push_back(std::move(*local));
      else
        ++misses[state.kind];
    } else if (auto local = by_spec(input, state)) {
      hits[state.kind].push_back(std::move(*local));
    }
  }
  std::vector<Local> all;
  for (auto& [kind, locals] : hits) {
    if (locals.size() < 9 * misses[kind]) continue;
    // A counter of one element beside parameters that are cut into single elements says nothing.
    bool only_counters = std::all_of(locals.begin(), locals.end(), [&](const Local& local) {
      return local.state.role == StateRole::kOther &&
             volume(c.shape(local.state.state)).value_or(0) <= 1;
    });
    if (only_counters) continue;
    std::move(locals.begin(), locals.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<PartlyLost> place(const Checkpoint& c, const std::vector<Local>& locals) {
  std::vector<PartlyLost> parts;
  parts.reserve(locals.size());
  std::map<std::string, std::vector<std::size_t>> moments;
  for (const Local& local : locals) {
    if (!local.home) continue;
    PartlyLost part{local.state.state, local.expected, {}, {}};
    if (!is_empty(*local.home))
      part.survivors.push_back(
          whole_survivor(local.chunk, c.sizes(local.chunk), local.home->offsets));
    if (local.state.role == StateRole::kMaster && local.state.parameter &&
        local.state.parameter_is_sure)
      part.refill_from = c.fqn(*local.state.parameter);
    if (local.state.role == StateRole::kMoment) moments[local.state.key].push_back(parts.size());
    parts.push_back(std::move(part));
  }
  for (const auto& [key, indices] : moments) {
    std::vector<PartlyLost*> one;
    for (std::size_t i : indices) one.push_back(&parts[i]);
    keep_common_rows(one);
  }
  return parts;
}

const Local& clearest(const Checkpoint& c, const std::vector<Local>& locals) {
  auto found = std::find_if(locals.begin(), locals.end(), [&](const Local& local) {
    return has_elements(c.shape(local.state.state));
  });
  return found == locals.end() ? locals.front() : *found;
}

Finding describe(const Checkpoint& c, const std::vector<Local>& locals) {
  Finding finding;
  finding.rule = "local-saved-as-global";
  finding.link = "TransformerEngine #2795";
  std::vector<OptimizerState> states;
  for (const Local& local : locals) {
    finding.subjects.emplace_back(c.fqn(local.state.state));
    states.push_back(local.state);
  }
  const Local& example = clearest(c, locals);
  finding.cause = count_text(static_cast<std::int64_t>(locals.size()), "optimizer state was",
                             "optimizer states were") +
                  " saved as plain tensors: the shard of one rank stands for the whole (" +
                  std::string(c.fqn(example.state.state)) + " is " +
                  to_text(c.shape(example.state.state)) + ", its parameter " +
                  to_text(example.expected) + "), those of all other ranks are gone.";
  finding.evidence = {{"example", std::string(c.fqn(example.state.state))},
                      {"saved shape", copy_of(c.shape(example.state.state))},
                      {"shape of the parameter", example.expected},
                      {"written by rank", static_cast<std::int64_t>(example.writer)},
                      {"who wrote what survived", writers_by_kind(c, states)}};
  if (example.home && !is_empty(*example.home))
    finding.evidence.emplace_back("belongs at", std::vector<Box>{*example.home});
  return finding;
}

// What values say of the placement by writers: a master, rounded, is the rows of the weight that it
// was made from (spec P16).
struct ByValues {
  std::vector<std::string> agree, contradict;
};

ByValues hold_against_values(const RuleInput& input, const std::vector<Local>& locals) {
  constexpr std::size_t kMost = 64;   // masters
  constexpr std::int64_t kSure = 16;  // elements that a contradiction rests on
  const Checkpoint& c = input.checkpoint;
  ByValues out;
  if (input.depth != Depth::kData) return out;
  ValueBudget budget;
  for (const Local& local : locals) {
    if (local.state.role != StateRole::kMaster || !local.state.parameter ||
        !local.state.parameter_is_sure || !local.home || is_empty(*local.home))
      continue;
    if (out.agree.size() + out.contradict.size() >= kMost) break;
    TensorId model = *local.state.parameter;
    auto master = read_values(input, local.state.state, budget);
    auto weights = master ? read_values(input, model, budget) : std::nullopt;
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

void add_placed(const Checkpoint& c, const std::vector<Local>& locals, const ByValues& values,
                std::vector<Finding>& findings) {
  if (locals.empty()) return;
  Finding finding = describe(c, locals);
  if (!values.contradict.empty()) {
    finding.evidence.emplace_back("values say otherwise", capped(values.contradict));
    finding.evidence.emplace_back(
        "undecided", std::string("where masters lie by their values is not where their writers' "
                                 "chunks lie, so the names of the files are no guide: files that "
                                 "were renamed, or another rank order"));
    findings.push_back(std::move(finding));
    return;
  }
  if (!values.agree.empty()) finding.evidence.emplace_back("values agree", capped(values.agree));
  std::vector<PartlyLost> parts = place(c, locals);
  Loss loss = loss_of(parts);
  finding.evidence.emplace_back("placed by", locals.front().source);
  finding.evidence.emplace_back("kept elements", loss.kept);
  finding.evidence.emplace_back("lost elements", loss.lost);
  std::string text =
      "Put each survivor where its writer's chunk of the parameter lies, keep rows "
      "of a moment only where all moments know them, mask the rest: " +
      std::to_string(loss.kept) + " elements kept, " + std::to_string(loss.lost) + " lost";
  if (loss.refilled != 0) {
    finding.evidence.emplace_back("refilled from the model", loss.refilled);
    text += ", " + std::to_string(loss.refilled) + " of them (masters) refilled from the model";
  }
  finding.remedy = Remedy{loss.kept == 0 ? "mask" : "retile", false, text + "."};
  for (PartlyLost& part : parts) finding.diagnoses.emplace_back(std::move(part));
  findings.push_back(std::move(finding));
}

void add_unplaced(const RuleInput& input, const std::vector<Local>& locals,
                  std::vector<Finding>& findings) {
  if (locals.empty()) return;
  Finding finding = describe(input.checkpoint, locals);
  finding.evidence.emplace_back(
      "undecided", std::string("the writers of these states wrote no chunk of their parameters, so "
                               "where the survivors belong needs the mesh: --mesh, or a spec"));
  auto guesses = infer_meshes(input.checkpoint, input.spec, nullptr);
  if (!guesses.empty()) {
    finding.evidence.emplace_back("likely mesh", to_text(guesses.front().mesh));
    finding.evidence.emplace_back("confidence", guesses.front().confidence);
  }
  findings.push_back(std::move(finding));
}

void run(const RuleInput& input, std::vector<Finding>& findings) {
  add_wrong_requests(input, RequestKind::kOther, "local-saved-as-global", "TransformerEngine #2795",
                     findings);
  std::vector<Local> locals = local_states(input);
  auto unknown = std::stable_partition(locals.begin(), locals.end(),
                                       [](const Local& local) { return local.home.has_value(); });
  std::vector<Local> unplaced(std::make_move_iterator(unknown),
                              std::make_move_iterator(locals.end()));
  locals.erase(unknown, locals.end());
  add_placed(input.checkpoint, locals, hold_against_values(input, locals), findings);
  add_unplaced(input, unplaced, findings);
}

}  // namespace

std::set<TensorId> saved_as_global(const RuleInput& input) {
  std::set<TensorId> states;
  for (const Local& local : local_states(input)) states.insert(local.state.state);
  return states;
}

const Rule kLocalSavedAsGlobal = {
    "local-saved-as-global", Depth::kMetadata,
    "One rank's shard of an optimizer state stands for the whole",
    "Optimizer states that are plain tensors instead of DTensors are offered by every rank as "
    "the whole tensor; deduplication keeps one of them, whose depends on load balancing. A "
    "state then has the shape of one chunk of its parameter (or is empty, where the surviving "
    "rank owns none). The repair puts each survivor where the chunk of its writer lies, keeps "
    "moments only where all of them are known, refills masters from the model, and masks the "
    "rest.",
    run};

}  // namespace shw

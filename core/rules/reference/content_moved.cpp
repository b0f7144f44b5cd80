// Tensors whose contents the reference has under another name (gate and up exchanged, experts
// numbered from 0 on every rank, a head tied to the wrong table), and rows that it has in a sibling
// (query, key and value split from one grouped matrix). Only for differing tensors that no other
// rule explains.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/layout/retained_chunks.h"
#include "core/facts/names/layer_numbers.h"
#include "core/facts/names/name_families.h"
#include "core/facts/reference/content_search.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/facts/values/many_values.h"
#include "core/facts/values/value_reader.h"
#include "core/rules/explained.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Limit of bytes read on both sides without result: at another training step no rows are equal.
constexpr std::uint64_t kMaxReadWithoutMatch = std::uint64_t{1} << 30;

std::vector<TensorId> unexplained_tensors(const Facts& facts,
                                          const std::vector<Finding>& findings) {
  const auto differing = explained_by(findings, kDiffersFromReference.id);
  const auto renumbered = explained_by(findings, kLayersRenumbered.id);
  std::vector<TensorId> tensors;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = facts.checkpoint.fqn(tensor);
    const bool is_asked = differing.contains(fqn) && !renumbered.contains(fqn) &&
                          facts.counterparts[index_of(tensor)] &&
                          has_values(facts.checkpoint.dtype(tensor)) && !fqn.starts_with("optim");
    if (is_asked && facts.tilings[index_of(tensor)].tiling == Tiling::kExact)
      tensors.push_back(tensor);
  }
  return tensors;
}

// Removes explained tensors from differs-from-reference.
void remove_explained_subjects(const std::set<std::string_view>& told,
                               std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    if (finding.rule != kDiffersFromReference.id) continue;
    const std::size_t before = finding.subjects.size();
    std::erase_if(finding.subjects, [&](const auto& subject) { return told.contains(subject); });
    if (finding.subjects.size() == before || finding.subjects.empty()) continue;
    finding.cause = plural(finding.subjects.size(), "more tensor") +
                    (finding.subjects.size() == 1 ? " holds" : " hold") +
                    " bytes that differ from the reference (" + short_list_text(finding.subjects) +
                    "), and the reference does not have these bytes under any other name.";
  }
  std::erase_if(findings, [](const Finding& finding) {
    return finding.rule == kDiffersFromReference.id && finding.subjects.empty();
  });
}

// --- whole tensors

struct Move {
  TensorId tensor{};
  std::string from, to;  // name here, and name of its contents in the reference
  bool is_only = true;
};

std::vector<Move> moves_of(const Facts& facts, const std::vector<ContentFound>& found) {
  std::map<TensorId, std::string> names;  // of the reference
  for (const ContentFound& one : found) names.emplace(one.there, "");
  for (std::size_t i = 0; i < facts.counterparts.size(); ++i) {
    const auto& other = facts.counterparts[i];
    auto asked = other ? names.find(*other) : names.end();
    if (asked != names.end())
      asked->second = facts.checkpoint.fqn(TensorId{static_cast<std::uint32_t>(i)});
  }
  std::vector<Move> moves;
  for (const ContentFound& one : found) {
    std::string to = names[one.there];
    if (to.empty()) to = facts.reference->fqn(one.there);
    moves.push_back(
        {one.here, std::string(facts.checkpoint.fqn(one.here)), std::move(to), one.is_only});
  }
  return moves;
}

// Why tensors cannot be renamed back; empty: they can.
std::string why_not_renamed(const Facts& facts, const std::vector<Move>& moves) {
  std::set<std::string_view> left, given;
  for (const Move& move : moves) left.insert(move.from);
  for (const Move& move : moves) {
    if (!move.is_only) return "the reference holds the same bytes under several names";
    if (!given.insert(move.to).second)
      return fmt::format(
          "{} is here more than once, and the tensors that the copies replaced are not here",
          move.to);
    if (!left.contains(move.to) && facts.checkpoint.find(move.to))
      return fmt::format("{} is there already", move.to);
  }
  return "";
}

// "experts.0" and "experts.6": names that differ in one number.
struct Renumbered {
  std::string before, after;
  std::int64_t from = 0, to = 0;
};
std::optional<Renumbered> find_renumbering(const Move& move) {
  const auto mine = members_in(move.from), theirs = members_in(move.to);
  if (mine.size() != theirs.size()) return std::nullopt;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (mine[i].index == theirs[i].index) continue;
    if (mine[i].before != theirs[i].before || mine[i].after != theirs[i].after) return std::nullopt;
    return Renumbered{std::string(mine[i].before), std::string(mine[i].after), mine[i].index,
                      theirs[i].index};
  }
  return std::nullopt;
}

// "0 is 6, 1 is 7", for the first list of experts or layers.
std::string renumbering_text(const std::vector<Move>& moves) {
  std::string before;
  std::map<std::int64_t, std::int64_t> numbers;
  for (const Move& move : moves) {
    const auto one = find_renumbering(move);
    if (!one) return "";
    if (before.empty()) before = one->before;
    if (one->before == before) numbers.emplace(one->from, one->to);
  }
  std::vector<std::string> words;
  for (const auto& [from, to] : numbers) words.push_back(fmt::format("{} is {}", from, to));
  return fmt::format(
      "Under {}* number {}: the numbers were reassigned, for example because every rank counts "
      "from 0.",
      before, short_list_text(words, 4));
}

bool are_exchanged(const std::vector<Move>& moves) {
  std::map<std::string_view, std::string_view> to;
  for (const Move& move : moves) to[move.from] = move.to;
  return std::all_of(moves.begin(), moves.end(), [&](const Move& move) {
    auto back = to.find(move.to);
    return back != to.end() && back->second == move.from;
  });
}

std::string moved_cause(const std::vector<Move>& moves) {
  const Move& first = moves.front();
  std::string cause = fmt::format(
      "{} {} the bytes that the reference has under another name: {} is its {}",
      plural(moves.size(), "tensor"), moves.size() == 1 ? "holds" : "hold", first.from, first.to);
  const bool exchanged = are_exchanged(moves);
  cause += exchanged ? ", and the reverse: they were swapped. " : ". ";
  const std::string numbers = exchanged ? "" : renumbering_text(moves);
  return cause + (numbers.empty() ? "Shapes are equal, so it loads without an error." : numbers);
}

// True if optimizer states of repaired tensors would keep wrong names or rows.
bool describe_unrepaired_states(const Facts& facts, const std::set<TensorId>& mended,
                                Finding& finding) {
  const auto left = states_not_repaired_with(facts, mended, {});
  if (left.empty()) return false;
  finding.cause += fmt::format(
      " Not repaired: its optimizer states ({}) would have to move too, and the reference does not "
      "have them.",
      short_list_text(left));
  finding.evidence.emplace_back("states_left", capped(left));
  return true;
}

void add_rename(const Facts& facts, const std::vector<Move>& moves, Finding& finding) {
  const std::string why_not = why_not_renamed(facts, moves);
  if (!why_not.empty()) {
    finding.cause += " No name is corrected: " + why_not + ".";
    finding.evidence.emplace_back("decided", false);
    return;
  }
  std::set<TensorId> mended;
  for (const Move& move : moves) mended.insert(move.tensor);
  if (describe_unrepaired_states(facts, mended, finding)) return;
  const Checkpoint& c = facts.checkpoint;
  const bool is_permutation = std::all_of(moves.begin(), moves.end(), [&](const Move& move) {
    const auto target = c.find(move.to);
    return target && mended.contains(*target) && same(c.shape(*target), c.shape(move.tensor));
  });
  for (const Move& move : moves) {
    if (is_permutation)
      finding.diagnoses.emplace_back(copy_content_repair(c, *c.find(move.to), move.tensor));
    else
      finding.diagnoses.emplace_back(Renamed{move.tensor, move.to, {}});
  }
  const std::string tensors = plural(moves.size(), "tensor");
  finding.remedy = is_permutation
                       ? Remedy{"exchange", true,
                                "Put what " + tensors +
                                    " hold under the names under which the reference has these "
                                    "bytes: nothing is lost."}
                       : Remedy{"rename", true,
                                "Give " + tensors +
                                    " the names under which the reference has these bytes. "
                                    "No value changes, nothing is lost."};
}

Status find_moved_tensors(const Facts& facts, std::vector<TensorId>& left,
                          std::vector<Finding>& findings) {
  SHW_TRY(const auto found, find_contents(facts, left));
  std::vector<TensorId> tensors;
  for (const ContentFound& one : found) tensors.push_back(one.here);
  const std::vector<bool> tells = have_more_values_than(facts, tensors, kMinDistinctValues);
  std::vector<ContentFound> telling;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (tells[i]) telling.push_back(found[i]);
  }
  if (telling.empty()) return {};
  const std::vector<Move> moves = moves_of(facts, telling);
  Finding finding{.rule = "content-moved"};
  finding.cause = moved_cause(moves);
  std::vector<std::string> lines;
  std::set<std::string_view> told;
  for (const Move& move : moves) {
    finding.subjects.push_back(move.from);
    told.insert(facts.checkpoint.fqn(move.tensor));
    lines.push_back(move.from + " is " + move.to);
    std::erase(left, move.tensor);
  }
  finding.evidence = {{"moves", capped(lines)}, {"count", count_of(moves.size())}};
  add_rename(facts, moves, finding);
  remove_explained_subjects(told, findings);
  findings.push_back(std::move(finding));
  return {};
}

// --- rows

// Matrices of one layer with equal row width and dtype.
std::vector<std::vector<TensorId>> group_by_layer_and_width(const Facts& facts,
                                                            const std::vector<TensorId>& tensors) {
  const Checkpoint& c = facts.checkpoint;
  std::map<std::string, std::vector<TensorId>> groups;
  for (TensorId tensor : tensors) {
    const ExtentsView shape = c.shape(tensor);
    const TensorId other = *facts.counterparts[index_of(tensor)];
    const auto layer = layer_name_of(c.fqn(tensor));
    if (!layer || shape.size() < 2 || !same(shape, facts.reference->shape(other)) ||
        c.dtype(tensor) != facts.reference->dtype(other))
      continue;
    groups[fmt::format("{}{} {}{}", layer->before, layer->number, name(c.dtype(tensor)),
                       to_text(shape.subspan(1)))]
        .push_back(tensor);
  }
  std::vector<std::vector<TensorId>> out;
  for (auto& [where, group] : groups) {
    if (group.size() > 1) out.push_back(std::move(group));
  }
  return out;
}

std::uint64_t bytes_of_group(const Facts& facts, const std::vector<TensorId>& group) {
  std::uint64_t bytes = 0;
  for (TensorId tensor : group) bytes += 2 * bytes_of_elements(facts.checkpoint, tensor);
  return bytes;
}

// Searches group by group until the read limit; after a first result all groups.
Result<std::vector<RowsFound>> find_rows_in_groups(
    const Facts& facts, const std::vector<std::vector<TensorId>>& groups) {
  std::uint64_t in_vain = 0;
  std::vector<RowsFound> all;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    SHW_TRY(auto found, find_rows(facts, {groups[i]}));
    if (!found.front().empty()) {
      all = std::move(found.front());
      const std::vector<std::vector<TensorId>> rest(
          groups.begin() + static_cast<std::ptrdiff_t>(i) + 1, groups.end());
      SHW_TRY(auto others, find_rows(facts, rest));
      for (auto& one : others) {
        all.insert(all.end(), std::make_move_iterator(one.begin()),
                   std::make_move_iterator(one.end()));
      }
      break;
    }
    in_vain += bytes_of_group(facts, groups[i]);
    if (in_vain > kMaxReadWithoutMatch || facts.depth != Depth::kData) break;
  }
  return all;
}

// Rows of a tensor as boxes of its chunks.
bool append_retained_rows(const Checkpoint& c, const MovedRows& run,
                          std::vector<RetainedChunk>& out) {
  Box wanted = whole(c.shape(run.source));
  wanted.offsets[0] = run.from;
  wanted.sizes[0] = run.count;
  Extents at(wanted.offsets.size(), 0);
  at[0] = run.at;
  std::int64_t covered = 0;
  for (RetainedChunk& part : crop_to_retained_chunks(c, run.source, wanted, at)) {
    covered += volume(part.source.sizes).value_or(0);
    out.push_back(std::move(part));
  }
  return covered == volume(wanted.sizes).value_or(-1);
}

std::string moved_rows_text(const Checkpoint& c, TensorId tensor, const MovedRows& run) {
  if (run.count == 1)
    return fmt::format("row {} of {} is row {} of {}", run.from, c.fqn(run.source), run.at,
                       c.fqn(tensor));
  return fmt::format("rows {} to {} of {} are rows {} to {} of {}", run.from,
                     run.from + run.count - 1, c.fqn(run.source), run.at, run.at + run.count - 1,
                     c.fqn(tensor));
}

// Text of the first displaced rows, used in the finding's cause.
std::string first_displaced_rows_text(const Checkpoint& c, const std::vector<RowsFound>& found) {
  for (const RowsFound& one : found) {
    for (const MovedRows& run : one.runs) {
      if (run.source != one.tensor) return moved_rows_text(c, one.tensor, run);
    }
  }
  return "";
}

// True if rows of two tensors alternate.
bool are_interleaved(const std::vector<RowsFound>& found) {
  return std::all_of(found.begin(), found.end(), [](const RowsFound& one) {
    return one.runs.size() > 8 && std::all_of(one.runs.begin(), one.runs.end(),
                                              [](const MovedRows& run) { return run.count == 1; });
  });
}

Status find_moved_rows(const Facts& facts, const std::vector<TensorId>& left,
                       std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  SHW_TRY(auto found, find_rows_in_groups(facts, group_by_layer_and_width(facts, left)));
  if (found.empty()) return {};
  const std::vector<RowsFound> biases = find_moved_biases(facts, found);
  found.insert(found.end(), biases.begin(), biases.end());
  Finding finding{.rule = "content-moved"};
  std::vector<std::string> lines;
  std::set<std::string_view> told;
  bool is_covered = true;
  std::set<TensorId> mended;
  for (const RowsFound& one : found) {
    PartlyLost whole_again{one.tensor, copy_of(c.shape(one.tensor)), {}, ""};
    for (const MovedRows& run : one.runs) {
      is_covered = append_retained_rows(c, run, whole_again.retained_chunks) && is_covered;
      if (lines.size() < kMaxEvidence) lines.push_back(moved_rows_text(c, one.tensor, run));
    }
    finding.subjects.emplace_back(c.fqn(one.tensor));
    finding.diagnoses.emplace_back(std::move(whole_again));
    told.insert(c.fqn(one.tensor));
    mended.insert(one.tensor);
  }
  finding.cause = fmt::format(
      "{} hold each other's rows: compared with the reference, {}. {}.",
      plural(found.size(), "tensor"), first_displaced_rows_text(c, found),
      are_interleaved(found)
          ? "Rows of two matrices alternate: one interleaved matrix was split in the middle"
          : "One matrix stored group by group was split as if its parts were contiguous");
  finding.evidence = {{"rows", std::move(lines)}, {"count", count_of(found.size())}};
  if (is_covered && !describe_unrepaired_states(facts, mended, finding)) {
    finding.remedy =
        Remedy{"move-rows", true,
               fmt::format("Put the rows of {} where the reference has them: each row is there "
                           "exactly once, proved by its bytes, and nothing is lost.",
                           plural(found.size(), "tensor"))};
  } else {
    finding.diagnoses.clear();
  }
  remove_explained_subjects(told, findings);
  findings.push_back(std::move(finding));
  return {};
}

Status find_moved_contents(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.reference == nullptr || facts.headers.empty()) return {};
  std::vector<TensorId> left = unexplained_tensors(facts, findings);
  if (left.empty()) return {};
  SHW_CHECK(find_moved_tensors(facts, left, findings));
  return find_moved_rows(facts, left, findings);
}

}  // namespace

const Rule kContentMoved = {
    .id = "content-moved",
    .depth = Depth::kHeaders,
    .title = "A tensor holds the data of another tensor",
    .teaches =
        "A converter that splits or stacks matrices can swap names: gate gets up's bytes, or an "
        "expert gets another rank's; or it splits query, key and value contiguously though they "
        "are stored group by group. Shapes are equal, so it loads, and the model outputs garbage. "
        "With --against a good copy of the same step the bytes show where each tensor, and each "
        "row of a layer's matrices, belongs; the repair restores names or rows and loses nothing. "
        "Tensors of 16 values or fewer are ignored.",
    .lesson = {.drawing = R"(
  reference                  saved
  gate_proj.weight   A       gate_proj.weight   B
  up_proj.weight     B       up_proj.weight     A
)",
               .remedy = "`shardwright repair --against REFERENCE` restores each tensor's name, or "
                         "its rows, as the bytes prove. Fix the converter that wrote it too.",
               .link = "https://github.com/charlie12345/ROCmFPX/issues/49"},
    .run_shared = find_moved_contents,
};

}  // namespace shw

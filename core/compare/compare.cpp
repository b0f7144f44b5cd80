#include "core/compare/compare.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "core/base/cancellable_range.h"
#include "core/base/parallel.h"
#include "core/base/words.h"
#include "core/compare/damaged_items.h"
#include "core/compare/entries.h"
#include "core/compare/fingerprints.h"
#include "core/compare/matched.h"
#include "core/compare/openable.h"
#include "core/compare/renamed_pairs.h"
#include "core/facts/reference/equal_tensors.h"
#include "core/facts/storage/filled.h"
#include "core/formats/replicas.h"
#include "core/model/index_only_tensors.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

class Comparison {
 public:
  Comparison(const Checkpoint& a, const Checkpoint& b, const CompareOptions& options,
             Progress* progress)
      : both_{a, b}, options_(options), progress_(progress) {}
  Result<CheckpointDifference> run();

 private:
  bool is_requested(std::string_view fqn) const {
    return options_.only == nullptr || options_.only->contains(fqn);
  }
  bool includes_entries() const;
  void match();
  Status compare_by_metadata();
  bool are_same_items(const MatchedTensors& matched) const;
  void check_shared_files_readable();
  Status compare_element_values();
  Status compare_replica_copies();
  Status check_equal_tensors_for_damage();
  Status compare_reshaped();
  Status match_renamed();
  Status compare_all_entries();
  void add_unread_parts_to_unjudged();
  void add_unmatched_tensors(const Checkpoint& checkpoint, const std::vector<TensorId>& tensors,
                             DifferenceKind kind);
  void add_renamed();
  void add_index_only_tensors();
  void compare_matched_tensors();
  void compare_matched_tensors(const MatchedTensors& matched);
  void choose_verdict();
  void add_unchecked_parts_to_result();

  BothCheckpoints both_;
  const CompareOptions& options_;
  Progress* progress_;
  FilledReport filled_a_, filled_b_;
  UnreadableSides unread_sides_;
  std::set<std::string_view> named_a_, named_b_;  // FQNs without data
  std::vector<MatchedTensors> matched_;
  std::vector<TensorId> only_a_, only_b_;
  std::vector<RenamedPair> renamed_;
  std::uint64_t uncompared_entry_count_ = 0;
  std::uint64_t uncompared_tensor_count_ = 0;  // common tensors whose values were not compared
  CheckpointDifference out_;
};

std::set<std::string_view> index_only_names(const Checkpoint& checkpoint,
                                            const ComparedNames* only) {
  std::set<std::string_view> names;
  for (const UnclaimedStorageRecord& unclaimed : index_only_tensors(checkpoint)) {
    if (only == nullptr || only->contains(unclaimed.fqn)) names.insert(unclaimed.fqn);
  }
  return names;
}

std::int64_t filled_element_count(const FilledReport& report, std::string_view fqn) {
  const FilledTensor* filled = report.tensors.empty() ? nullptr : report.find(fqn);
  return filled == nullptr ? 0 : filled->lost;
}

// Checkpoints of one model usually have names in the same order, so the same index is tried
// first.
std::optional<TensorId> find_at_index_or_by_name(const Checkpoint& checkpoint, std::string_view fqn,
                                                 TensorId near) {
  if (index_of(near) < checkpoint.tensor_count() && checkpoint.fqn(near) == fqn) return near;
  return checkpoint.find(fqn);
}

void Comparison::match() {
  named_a_ = index_only_names(both_.a, options_.only);
  named_b_ = index_only_names(both_.b, options_.only);
  for (TensorId tensor : cancellable_range(both_.a.tensors(), progress_)) {
    std::string_view fqn = both_.a.fqn(tensor);
    if (!is_requested(fqn)) continue;
    if (auto other = find_at_index_or_by_name(both_.b, fqn, tensor))
      matched_.push_back({.tensor = {tensor, *other}, .a = {}, .b = {}});
    else if (!named_b_.contains(fqn))
      only_a_.push_back(tensor);
  }
  for (TensorId tensor : cancellable_range(both_.b.tensors(), progress_)) {
    std::string_view fqn = both_.b.fqn(tensor);
    if (!is_requested(fqn)) continue;
    if (!find_at_index_or_by_name(both_.a, fqn, tensor) && !named_a_.contains(fqn))
      only_b_.push_back(tensor);
  }
}

bool has_replicas(const Checkpoint& checkpoint, TensorId tensor) {
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    if (!checkpoint.replicas(chunk).empty()) return true;
  }
  return false;
}

// Replicas and overlaps are shared too, but whether they agree is only seen by reading them.
bool Comparison::are_same_items(const MatchedTensors& matched) const {
  auto [one, two] = matched.tensor;
  if (volume(both_.a.shape(one)) == 0) return true;
  bool one_folder = both_.a.directory() != nullptr && both_.b.directory() != nullptr &&
                    both_.a.directory()->name() == both_.b.directory()->name();
  return one_folder && matched.a.overlaps.empty() && !has_replicas(both_.a, one) &&
         !has_replicas(both_.b, two) && has_same_items(both_.a, one, both_.b, two);
}

Status Comparison::compare_by_metadata() {
  return parallel_for(matched_.size(), [&](std::size_t i) -> Status {
    if (is_cancelled(progress_)) return cancelled_error();
    MatchedTensors& matched = matched_[i];
    auto [one, two] = matched.tensor;
    matched.a = compute_tile_cover(both_.a, one);
    matched.b = compute_tile_cover(both_.b, two);
    matched.other_dtype = both_.a.dtype(one) != both_.b.dtype(two);
    matched.other_shape = !same(both_.a.shape(one), both_.b.shape(two));
    matched.retiled = !matched.other_shape && !have_equal_boxes(both_.a, one, both_.b, two);
    matched.filled_a = filled_element_count(filled_a_, both_.a.fqn(one));
    matched.filled_b = filled_element_count(filled_b_, both_.b.fqn(two));
    matched.same_items = are_same_items(matched);
    return {};
  });
}

// Identical byte ranges of the same file are equal without reading, if they can be opened.
void Comparison::check_shared_files_readable() {
  if (both_.a.directory() == nullptr) return;
  OpenableFiles files(both_.a);
  for (MatchedTensors& matched : cancellable_range(matched_, progress_)) {
    if (!matched.same_items || matched.a.error) continue;
    matched.a.error = files.error_of(matched.tensor.a);
    matched.same_items = !matched.a.error;
  }
}

Status Comparison::compare_element_values() {
  std::vector<RequestedPair> asked;
  std::vector<std::size_t> whose;
  for (std::size_t i = 0; i < matched_.size(); ++i) {
    const MatchedTensors& matched = matched_[i];
    Dtype a = both_.a.dtype(matched.tensor.a), b = both_.b.dtype(matched.tensor.b);
    bool comparable = a == b ? size_of(a) != 0 : can_compare(a, b);
    if (matched.other_shape || !comparable) continue;
    asked.push_back({matched.tensor, &matched.a, &matched.b});
    whose.push_back(i);
  }
  SHW_TRY(auto seen, compare_values(both_, asked, options_.memory, progress_, options_.tolerance));
  for (std::size_t i = 0; i < whose.size(); ++i) {
    out_.compared += seen[i].values.compared != 0 ? 1 : 0;
    matched_[whose[i]].seen = std::move(seen[i]);
  }
  return {};
}

// Equal bytes prove nothing if one of them fails its checksum.
Status Comparison::check_equal_tensors_for_damage() {
  std::vector<TensorId> a, b;
  for (const MatchedTensors& matched : matched_) {
    const bool agrees = matched.seen && matched.seen->values.elements.differing == 0;
    if (!agrees) continue;
    a.push_back(matched.tensor.a);
    b.push_back(matched.tensor.b);
  }
  SHW_TRY(const auto damaged_a, damaged_items(both_.a, a, progress_));
  SHW_TRY(const auto damaged_b, damaged_items(both_.b, b, progress_));
  for (MatchedTensors& matched : matched_) {
    if (auto found = damaged_a.find(matched.tensor.a); found != damaged_a.end())
      matched.doubts.push_back("in A " + found->second);
    if (auto found = damaged_b.find(matched.tensor.b); found != damaged_b.end())
      matched.doubts.push_back("in B " + found->second);
  }
  return {};
}

Status Comparison::compare_replica_copies() {
  SHW_TRY(auto doubts_a, mismatched_replicas(both_.a, progress_));
  SHW_TRY(auto doubts_b, mismatched_replicas(both_.b, progress_));
  for (MatchedTensors& matched : matched_) {
    if (auto found = doubts_a.find(matched.tensor.a); found != doubts_a.end())
      matched.doubts.push_back("in A " + found->second.words);
    if (auto found = doubts_b.find(matched.tensor.b); found != doubts_b.end())
      matched.doubts.push_back("in B " + found->second.words);
  }
  return {};
}

// Fingerprints are by row-major index, so reshaped tensors have equal ones. The tensor is reported
// as different anyway, so a hash is enough.
Status Comparison::compare_reshaped() {
  std::vector<TensorId> a, b;
  std::vector<MatchedTensors*> whose;
  for (MatchedTensors& matched : matched_) {
    bool may_be =
        matched.other_shape && !matched.other_dtype &&
        volume(both_.a.shape(matched.tensor.a)) == volume(both_.b.shape(matched.tensor.b));
    if (!may_be) continue;
    a.push_back(matched.tensor.a);
    b.push_back(matched.tensor.b);
    whose.push_back(&matched);
  }
  SHW_TRY(auto one, fingerprints_of(both_.a, a, options_.memory, progress_));
  SHW_TRY(auto two, fingerprints_of(both_.b, b, options_.memory, progress_));
  for (std::size_t i = 0; i < whose.size(); ++i) {
    if (one[i] && two[i]) whose[i]->same_elements = *one[i] == *two[i];
  }
  return {};
}

Status Comparison::match_renamed() {
  SHW_TRY(renamed_, find_renamed(both_, only_a_, only_b_, options_.memory, progress_));
  std::set<TensorId> a, b;
  for (const RenamedPair& pair : renamed_) {
    a.insert(pair.tensor.a);
    b.insert(pair.tensor.b);
  }
  std::erase_if(only_a_, [&](TensorId tensor) { return a.contains(tensor); });
  std::erase_if(only_b_, [&](TensorId tensor) { return b.contains(tensor); });
  return {};
}

Status Comparison::compare_all_entries() {
  SHW_TRY(EntryComparison seen,
          compare_entries(both_.a, filled_a_, both_.b, filled_b_, options_.data, progress_));
  out_.entries = std::move(seen.entries);
  std::erase_if(out_.entries,
                [&](const EntryDifference& entry) { return !is_requested(entry.fqn); });
  uncompared_entry_count_ = includes_entries() ? seen.uncompared_count : 0;
  for (EntryDifference& entry : out_.entries) {
    bool in_a = entry.kind == DifferenceKind::kMissing && unread_sides_.b;
    bool in_b = entry.kind == DifferenceKind::kAdded && unread_sides_.a;
    if (!in_a && !in_b) continue;
    entry.kind = DifferenceKind::kUndecided;
    entry.why = unreadable_side_text(in_a ? "B" : "A", "it may be");
  }
  return {};
}

bool Comparison::includes_entries() const {
  auto has_one = [&](const Checkpoint& checkpoint) {
    const auto objects = checkpoint.objects();
    return std::any_of(objects.begin(), objects.end(),
                       [&](const NonTensorEntry& object) { return is_requested(object.fqn); });
  };
  return has_one(both_.a) || has_one(both_.b);
}

// Unreadable parts may contain differences.
void Comparison::add_unread_parts_to_unjudged() {
  constexpr std::size_t kMost = 8;
  auto add = [&](const Checkpoint& checkpoint, const FilledReport& filled, const char* side) {
    for (const Finding& finding : checkpoint.opening_findings()) {
      const Rule& rule = rule_of(finding);
      // Infos concern bytes that are not read here, or a total that is not used.
      const bool damaged = rule.damages_bytes && finding.severity > Severity::kInfo;
      if ((damaged || rule.leaves_undecided) && out_.doubts.size() < kMost)
        out_.doubts.push_back(std::string("in ") + side + " " + finding.cause);
    }
    for (const std::string& file : filled.unreadable)
      out_.doubts.push_back(std::string("in ") + side + " " + file +
                            ", which says what a repair filled, is damaged");
  };
  add(both_.a, filled_a_, "A");
  add(both_.b, filled_b_, "B");
}

void Comparison::add_unmatched_tensors(const Checkpoint& checkpoint,
                                       const std::vector<TensorId>& tensors, DifferenceKind kind) {
  for (TensorId tensor : cancellable_range(tensors, progress_)) {
    TensorDifference told;
    told.fqn = checkpoint.fqn(tensor);
    told.kind = kind;
    const bool in_a = kind == DifferenceKind::kMissing;
    (in_a ? told.a : told.b) = side_of(checkpoint, tensor);
    if (in_a ? unread_sides_.b : unread_sides_.a) {
      told.kind = DifferenceKind::kUndecided;
      told.why.push_back(unreadable_side_text(in_a ? "B" : "A", "it may be"));
    }
    out_.tensors.push_back(std::move(told));
  }
}

void Comparison::add_renamed() {
  for (const auto& [pair, by_hash] : renamed_) {
    TensorDifference told;
    told.fqn = both_.a.fqn(pair.a);
    told.kind = DifferenceKind::kRenamed;
    told.a = side_of(both_.a, pair.a);
    told.b = side_of(both_.b, pair.b);
    told.retiled = !have_equal_boxes(both_.a, pair.a, both_.b, pair.b);
    told.other = both_.b.fqn(pair.b);
    if (unread_sides_.a || unread_sides_.b) {
      told.kind = DifferenceKind::kUndecided;
      told.why = {"in B " + told.other + " has the same bytes; " +
                  unreadable_side_text(unread_sides_.a ? "A" : "B", "either name may be")};
    } else if (by_hash) {
      told.kind = DifferenceKind::kUndecided;
      told.why = {"in B " + told.other +
                  " has the same hash, and their elements could not be compared to the bit"};
    }
    out_.tensors.push_back(std::move(told));
  }
}

void Comparison::add_index_only_tensors() {
  std::set<std::string_view> names = named_a_;
  names.insert(named_b_.begin(), named_b_.end());
  for (std::string_view fqn : names) {
    TensorDifference told;
    told.fqn = fqn;
    if (auto a = both_.a.find(fqn)) told.a = side_of(both_.a, *a);
    if (auto b = both_.b.find(fqn)) told.b = side_of(both_.b, *b);
    for (auto [alone, side] : {std::pair(&named_a_, "A"), std::pair(&named_b_, "B")}) {
      if (alone->contains(fqn))
        told.why.push_back(std::string("in ") + side +
                           " only its name is known: the file that holds it cannot be read");
    }
    out_.tensors.push_back(std::move(told));
  }
}

void Comparison::compare_matched_tensors(const MatchedTensors& matched) {
  MatchVerdict judged = judge(both_, matched, unread_sides_);
  judged.told.within = options_.tolerance && judged.kind == DifferenceKind::kValues &&
                       matched.seen->values.elements.beyond == 0;
  out_.within += judged.told.within ? 1 : 0;
  const bool settled = !judged.kind || *judged.kind == DifferenceKind::kRetiled;
  if (settled && (options_.data || matched.same_items))
    ++out_.same;
  else if (settled)
    ++uncompared_tensor_count_;
  if (judged.kind) out_.tensors.push_back(std::move(judged.told));
}

void Comparison::compare_matched_tensors() {
  add_unmatched_tensors(both_.a, only_a_, DifferenceKind::kMissing);
  add_unmatched_tensors(both_.b, only_b_, DifferenceKind::kAdded);
  for (const MatchedTensors& matched : cancellable_range(matched_, progress_))
    compare_matched_tensors(matched);
  add_index_only_tensors();
  add_renamed();
  std::stable_sort(out_.tensors.begin(), out_.tensors.end(),
                   [](const auto& x, const auto& y) { return x.kind < y.kind; });
}

void Comparison::choose_verdict() {
  auto decides = [](DifferenceKind kind) {
    return kind != DifferenceKind::kUndecided && kind != DifferenceKind::kRetiled;
  };
  auto is_open = [](DifferenceKind kind) { return kind == DifferenceKind::kUndecided; };
  bool different = false,
       open = !out_.doubts.empty() || uncompared_tensor_count_ != 0 || uncompared_entry_count_ != 0;
  for (const TensorDifference& tensor : out_.tensors) {
    different = different || (decides(tensor.kind) && !tensor.within);
    // Unread elements may differ by more than the tolerance.
    const bool is_partly_read =
        tensor.within && (tensor.error || !tensor.why.empty() || tensor.values->unread != 0);
    open = open || is_open(tensor.kind) || is_partly_read;
  }
  for (const EntryDifference& entry : out_.entries) {
    different = different || decides(entry.kind);
    open = open || is_open(entry.kind);
  }
  out_.verdict = different ? EqualityVerdict::kDifferent
                 : open    ? EqualityVerdict::kUndecided
                           : EqualityVerdict::kSame;
}

void Comparison::add_unchecked_parts_to_result() {
  if (uncompared_tensor_count_ != 0)
    out_.unjudged.push_back({"values of " + plural(uncompared_tensor_count_, "tensor"), "--data"});
  if (uncompared_entry_count_ != 0)
    out_.unjudged.push_back({"values of " + human_count(uncompared_entry_count_) +
                                 (uncompared_entry_count_ == 1 ? " entry that is not a tensor"
                                                               : " entries that are not tensors"),
                             "--data"});
  if (!options_.data && !only_a_.empty() && !only_b_.empty())
    out_.unjudged.push_back({"which names are new names of old tensors", "--data"});
}

Result<CheckpointDifference> Comparison::run() {
  filled_a_ = filled_report_of(both_.a, progress_);
  filled_b_ = filled_report_of(both_.b, progress_);
  unread_sides_ = {!unopened(both_.a).empty(), !unopened(both_.b).empty()};
  match();
  if (is_cancelled(progress_)) return cancelled_error();
  out_.data = options_.data;
  out_.tolerance = options_.tolerance;
  out_.tensors_a = both_.a.tensor_count() + named_a_.size();
  out_.tensors_b = both_.b.tensor_count() + named_b_.size();
  out_.in_both = matched_.size();
  SHW_CHECK(compare_by_metadata());
  if (!options_.data) check_shared_files_readable();
  if (options_.data) {
    SHW_CHECK(compare_element_values());
    SHW_CHECK(compare_replica_copies());
    SHW_CHECK(check_equal_tensors_for_damage());
    SHW_CHECK(compare_reshaped());
    SHW_CHECK(match_renamed());
  }
  SHW_CHECK(compare_all_entries());
  add_unread_parts_to_unjudged();
  compare_matched_tensors();
  add_unchecked_parts_to_result();
  choose_verdict();
  if (is_cancelled(progress_)) return cancelled_error();
  return std::move(out_);
}

}  // namespace

Result<CheckpointDifference> compare_checkpoints(const Checkpoint& a, const Checkpoint& b,
                                                 const CompareOptions& options,
                                                 Progress* progress) {
  return Comparison(a, b, options, progress).run();
}

}  // namespace shw

#include "core/learn/learn.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/learn/fold_rows.h"
#include "core/learn/learn_rows.h"
#include "core/learn/nearly_equal.h"
#include "core/learn/prove_map.h"

namespace shw {
namespace {

constexpr std::size_t kMaxNearlyEqual = 256;

class MapLearner {
 public:
  MapLearner(LearnSide a, LearnSide b, Progress* progress)
      : a_(std::move(a)), b_(std::move(b)), progress_(progress) {}

  Result<LearnedMap> run() {
    out_.way = has_unstacked_tensors(a_, b_) ? MapDirection::kForward : MapDirection::kBack;
    SHW_TRY(learned_, learn_rows(from(), to(), out_.way, progress_));
    out_.tensors = b_.size();
    // Removes rows that the bytes refute and proves the rest again, because a row that uses another
    // row's tensors harms that one too.
    for (bool changes = true; changes;) {
      folded_ = fold_rows(from(), to(), learned_);
      name_map();
      for (std::size_t r : folded_.inexpressible_rows) {
        for (std::size_t t : tensors_of_b_made_by(learned_.rows[r].row))
          inexpressible_tensors_.insert(t);
      }
      if (folded_.map.rows.empty()) break;
      SHW_TRY(proof_, proved());
      changes = drop_refuted();
    }
    fill_learned_map();
    return std::move(out_);
  }

 private:
  LearnSide& from() { return out_.way == MapDirection::kForward ? a_ : b_; }
  LearnSide& to() { return out_.way == MapDirection::kForward ? b_ : a_; }

  // Names the sides by their formats. B's side has the plain format name, so that `convert --to`
  // selects the direction even if both sides have one format and the same names.
  void name_map() {
    const bool is_forward = out_.way == MapDirection::kForward;
    std::string of_a(a_.checkpoint->format().name), of_b(b_.checkpoint->format().name);
    out_.needs_direction = of_a == of_b;
    if (out_.needs_direction) of_a = "other_" + of_a;
    folded_.map.from = is_forward ? of_a : of_b;
    folded_.map.to = is_forward ? of_b : of_a;
    folded_.map.name = "learned";
    folded_.map.title = folded_.map.name;
  }

  Result<MapProof> proved() {
    auto proof = prove_map(folded_.map, out_.way, a_.checkpoint, *b_.checkpoint, progress_);
    if (proof || proof.error().kind == ErrorKind::kCancelled) return proof;
    // The map does not fit the checkpoint it was learned from, so nothing is proved.
    problem_ = proof.error().message;
    return MapProof{std::vector<ProvedTensor>(b_.size(), ProvedTensor::kNotMade), {}};
  }

  // Tensors of B that a learned row makes.
  std::vector<std::size_t> tensors_of_b_made_by(const FoundRow& row) const {
    if (out_.way == MapDirection::kForward) return row.to;
    std::vector<std::size_t> out;
    for (const auto& cell : row.from) out.insert(out.end(), cell.begin(), cell.end());
    return out;
  }
  bool is_refuted(const FoundRow& row) const {
    const auto tensors = tensors_of_b_made_by(row);
    return std::any_of(tensors.begin(), tensors.end(), [&](std::size_t t) {
      return proof_.tensors[t] == ProvedTensor::kDiffers ||
             proof_.tensors[t] == ProvedTensor::kNotMade;
    });
  }
  // True if a row was removed.
  bool drop_refuted() {
    const std::size_t before = learned_.rows.size();
    std::erase_if(learned_.rows, [&](const LearnedRow& one) {
      const bool is_wrong = is_refuted(one.row);
      if (is_wrong) forget(one.row);
      return is_wrong;
    });
    return learned_.rows.size() != before;
  }
  void forget(const FoundRow& row) {
    for (std::size_t t : row.to) to().explained[t] = false;
    for (const auto& cell : row.from) {
      for (std::size_t f : cell) from().explained[f] = false;
    }
    for (std::size_t t : tensors_of_b_made_by(row)) refuted_.insert(t);
  }

  void fill_learned_map() {
    if (proof_.tensors.empty()) proof_.tensors.assign(b_.size(), ProvedTensor::kNotMade);
    const std::vector<std::size_t> unused = unused_tensors_of_a();
    for (std::size_t i : unused) out_.unused.push_back(a_.names[i]);
    for (std::size_t t = 0; t < b_.size(); ++t) {
      if (proof_.tensors[t] == ProvedTensor::kEqual)
        ++out_.proved;
      else
        out_.unexplained.push_back({b_.names[t], unexplained_reason(t, unused)});
    }
    add_rows();
    out_.map = std::move(folded_.map);
  }
  std::vector<std::size_t> unused_tensors_of_a() const {
    std::set<std::size_t> used;
    for (const auto& row : learned_.rows) add_used_tensors_of_a(row.row, used);
    for (const auto& [copy, of] :
         out_.way == MapDirection::kForward ? learned_.from_copies : learned_.to_copies)
      used.insert(copy);
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < a_.size(); ++i) {
      if (!used.contains(i)) out.push_back(i);
    }
    return out;
  }
  void add_used_tensors_of_a(const FoundRow& row, std::set<std::size_t>& used) const {
    if (out_.way == MapDirection::kBack) {
      used.insert(row.to.begin(), row.to.end());
      return;
    }
    for (const auto& cell : row.from) used.insert(cell.begin(), cell.end());
  }
  void add_rows() {
    for (std::size_t r = 0; r < folded_.learned.size(); ++r) {
      ExplainedRow row{.row = r};
      for (std::size_t i : folded_.learned[r]) {
        const LearnedRow& learned = learned_.rows[i];
        row.is_by_name |= learned.is_by_name;
        row.is_cast |= learned.is_cast;
        for (std::size_t t : tensors_of_b_made_by(learned.row)) {
          ++row.tensors;
          row.leaves_padding |= proof_.tensors[t] == ProvedTensor::kEqualButPads;
        }
      }
      out_.rows.push_back(row);
    }
  }

  std::string unexplained_reason(std::size_t t, const std::vector<std::size_t>& unused) const {
    if (!b_.rows[t].is_read && !b_.shapes[t].empty())
      return "it is not whole, or it cannot be read: `shardwright check` says what is wrong";
    if (proof_.tensors[t] == ProvedTensor::kEqualButPads)
      return "its first rows are explained; those that pad it are in no tensor of A";
    if (proof_.tensors[t] == ProvedTensor::kEqualRounded)
      return "A has its elements rounded to another dtype: what was rounded off "
             "is in it alone";
    if (!problem_.empty()) return "the map that was found does not fit: " + problem_;
    if (inexpressible_tensors_.contains(t))
      return "its rows are those of A, stacked in an order of layers or experts "
             "that no pattern of names says";
    if (refuted_.contains(t))
      return "hashes of its rows are in A, but no map that was tried makes it "
             "to the bit";
    if (!has_distinctive_lines(b_, t))
      return "its elements are all equal, and no name next to it says which tensor it is";
    // For unrelated checkpoints, reading all remaining tensors would explain nothing.
    std::string nearly;
    if (out_.unexplained.size() < kMaxNearlyEqual) nearly = nearly_equal_text(b_, t, a_, unused);
    return nearly.empty() ? "none of its rows or columns make up a tensor of A" : nearly;
  }

  LearnSide a_, b_;
  Progress* progress_;
  LearnedRows learned_;
  FoldedMap folded_;
  MapProof proof_;
  std::string problem_;
  std::set<std::size_t> refuted_, inexpressible_tensors_;  // tensors of B
  LearnedMap out_;
};

}  // namespace

Result<LearnedMap> learn_map(const std::shared_ptr<const Checkpoint>& a,
                             const std::shared_ptr<const Checkpoint>& b, Progress* progress) {
  SHW_TRY(LearnSide side_a, learn_side(a, /*is_source=*/true, progress));
  SHW_TRY(LearnSide side_b, learn_side(b, /*is_source=*/false, progress));
  return MapLearner(std::move(side_a), std::move(side_b), progress).run();
}

}  // namespace shw

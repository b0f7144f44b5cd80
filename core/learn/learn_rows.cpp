#include "core/learn/learn_rows.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/facts/reference/tile_content.h"
#include "core/facts/values/added_tensor.h"
#include "core/learn/learn_by_name.h"

namespace shw {
namespace {

void mark_explained(const FoundRow& row, LearnSide& from, LearnSide& to) {
  for (std::size_t t : row.to) to.explained[t] = true;
  for (const auto& cell : row.from) {
    for (std::size_t f : cell) from.explained[f] = true;
  }
}

// By tensor: true if it is not searched, because it is explained, a copy, or has no distinctive
// lines.
std::vector<bool> tensors_to_skip(const LearnSide& side) {
  std::vector<bool> out(side.size());
  for (std::size_t i = 0; i < side.size(); ++i)
    out[i] = side.explained[i] || side.same_as[i] != i || !has_distinctive_lines(side, i);
  return out;
}

// Tensors with equal content, paired by the most similar names; the rest are copies.
struct CopyGroup {
  std::vector<std::size_t> from, to;
};
constexpr std::size_t kMaxPaired = 128;

// Elements of a tensor to which a number is added: norms, also stacked ones.
constexpr std::int64_t kMaxAdded = std::int64_t{1} << 20;

class RowLearner {
 public:
  RowLearner(LearnSide& from, LearnSide& to, MapDirection way, Progress* progress)
      : from_(from), to_(to), way_(way), progress_(progress) {}

  Result<LearnedRows> run() {
    search({LineKind::kRows, from_.rows, from_.dtypes, from_.ndims},
           {LineKind::kRows, to_.rows, to_.dtypes, to_.ndims}, false);
    pair_equal_tensors();
    SHW_CHECK(search_columns(from_.rows, from_.dtypes, to_.rows, to_.dtypes, Dtype::kUnknown));
    SHW_CHECK(search_rounded());
    SHW_CHECK(search_shifted_norms());
    learn_by_name(from_, to_, out_.rows);
    add_copies(from_, out_.from_copies);
    add_copies(to_, out_.to_copies);
    return std::move(out_);
  }

 private:
  void search(SideLines from, SideLines to, bool is_cast, double added = 0) {
    const std::vector<bool> from_out = tensors_to_skip(from_), to_out = tensors_to_skip(to_);
    from.left_out = &from_out;
    to.left_out = &to_out;
    for (FoundRow& row : search_rows(from, to).rows) {
      mark_explained(row, from_, to_);
      if (is_cast) add_cast(row);
      if (added != 0) add_addition(row, added);
      out_.rows.push_back({std::move(row), is_cast});
    }
  }

  // Adds a cast if there is one result and the dtypes differ.
  void add_cast(FoundRow& row) const {
    BoundOp op;
    op.kind = MapOp::Kind::kCast;
    op.from_dtype = from_.dtypes[row.from.front().front()];
    op.dtype = to_.dtypes[row.to.front()];
    if (op.dtype != op.from_dtype)
      row.ops.insert(row.to.size() > 1 ? row.ops.begin() : row.ops.end(), op);
  }

  static void add_addition(FoundRow& row, double added) {
    BoundOp op;
    op.kind = MapOp::Kind::kAdd;
    op.value = added;
    row.ops.insert(row.to.size() > 1 ? row.ops.begin() : row.ops.end(), op);
  }

  // Norms that one side keeps as w and the other as 1 + w. Sums are made of the side that the map
  // is applied to: a rounded sum does not always come back.
  Status search_shifted_norms() {
    for (const float value : {1.0F, -1.0F}) {
      const bool is_forward = way_ == MapDirection::kForward;
      const LearnSide& side = is_forward ? from_ : to_;
      SHW_TRY(const auto sums, lines_of_sums(side, is_forward ? value : -value));
      if (sums.empty()) return {};
      const std::span<const LineHashes> of_from = is_forward ? std::span(sums) : from_.rows;
      const std::span<const LineHashes> of_to = is_forward ? to_.rows : std::span(sums);
      search({LineKind::kRows, of_from, from_.dtypes, from_.ndims},
             {LineKind::kRows, of_to, to_.dtypes, to_.ndims}, false, value);
    }
    return {};
  }
  // Of the tensors that are left, each with `value` added; empty where there is none.
  Result<std::vector<LineHashes>> lines_of_sums(const LearnSide& side, float value) {
    const std::vector<bool> out = tensors_to_skip(side);
    ComputedPart part;
    std::vector<std::size_t> added;
    for (std::size_t i = 0; i < side.size(); ++i) {
      const bool is_small = volume(side.shapes[i]).value_or(kMaxAdded + 1) <= kMaxAdded;
      if (out[i] || !is_small || !is_addition_supported(side.dtypes[i])) continue;
      part.tensors.push_back(added_tensor(side.checkpoint, TensorId{static_cast<std::uint32_t>(i)},
                                          value, side.dtypes[i]));
      added.push_back(i);
    }
    if (added.empty() || side.checkpoint->directory() == nullptr) return std::vector<LineHashes>();
    auto made =
        make_computed_only_checkpoint(*side.checkpoint->directory(), std::move(part), progress_);
    if (!made) return std::vector<LineHashes>();
    std::vector<LineQuery> asked;
    for (const std::size_t i : added)
      asked.push_back(
          {*(*made)->find(side.checkpoint->fqn(TensorId{static_cast<std::uint32_t>(i)}))});
    SHW_TRY(std::vector<LineHashes> found, line_hashes(**made, asked, progress_));
    std::vector<LineHashes> lines(side.size());
    for (std::size_t k = 0; k < added.size(); ++k) lines[added[k]] = std::move(found[k]);
    return lines;
  }

  static std::vector<LineQuery> queries_for_unexplained(const LearnSide& side, Dtype dtype,
                                                        LineKind kind) {
    const std::vector<bool> out = tensors_to_skip(side);
    std::vector<LineQuery> asked;
    for (std::size_t i = 0; i < side.size(); ++i) {
      const bool is_matrix = side.ndims[i] >= 2;
      const bool fits = dtype == Dtype::kUnknown || common_dtype(side.dtypes[i], dtype) == dtype;
      if (!out[i] && fits && (is_matrix || kind == LineKind::kRows))
        asked.push_back({TensorId{static_cast<std::uint32_t>(i)}, dtype, kind});
    }
    return asked;
  }
  // Lines of the remaining tensors; the others get none.
  Result<std::vector<LineHashes>> hash_lines_of_tensors(const LearnSide& side, Dtype dtype,
                                                        LineKind kind) {
    const std::vector<LineQuery> asked = queries_for_unexplained(side, dtype, kind);
    SHW_TRY(std::vector<LineHashes> found, line_hashes(*side.checkpoint, asked, progress_));
    std::vector<LineHashes> out(side.size());
    for (std::size_t i = 0; i < asked.size(); ++i)
      out[index_of(asked[i].tensor)] = std::move(found[i]);
    return out;
  }

  Status search_columns(const std::vector<LineHashes>& from_rows,
                        const std::vector<Dtype>& from_dtypes,
                        const std::vector<LineHashes>& to_rows, const std::vector<Dtype>& to_dtypes,
                        Dtype dtype) {
    const bool is_cast = dtype != Dtype::kUnknown;
    if (queries_for_unexplained(from_, dtype, LineKind::kColumns).empty() ||
        queries_for_unexplained(to_, dtype, LineKind::kColumns).empty())
      return {};
    SHW_TRY(const auto from_columns, hash_lines_of_tensors(from_, dtype, LineKind::kColumns));
    SHW_TRY(const auto to_columns, hash_lines_of_tensors(to_, dtype, LineKind::kColumns));
    const SideLines from_r{LineKind::kRows, from_rows, from_dtypes, from_.ndims};
    const SideLines from_c{LineKind::kColumns, from_columns, from_dtypes, from_.ndims};
    const SideLines to_r{LineKind::kRows, to_rows, to_dtypes, to_.ndims};
    const SideLines to_c{LineKind::kColumns, to_columns, to_dtypes, to_.ndims};
    search(from_c, to_r, is_cast);
    search(from_c, to_c, is_cast);
    search(from_r, to_c, is_cast);
    return {};
  }

  // If dtypes differ, compares elements rounded to the narrower dtype.
  Status search_rounded() {
    std::set<std::pair<Dtype, Dtype>> pairs;
    const std::vector<bool> from_out = tensors_to_skip(from_), to_out = tensors_to_skip(to_);
    std::set<Dtype> from_dtypes, to_dtypes;
    for (std::size_t i = 0; i < from_.size(); ++i) {
      if (!from_out[i]) from_dtypes.insert(from_.dtypes[i]);
    }
    for (std::size_t i = 0; i < to_.size(); ++i) {
      if (!to_out[i]) to_dtypes.insert(to_.dtypes[i]);
    }
    std::set<Dtype> narrow;
    for (Dtype a : from_dtypes) {
      for (Dtype b : to_dtypes) {
        const auto common = common_dtype(a, b);
        if (a != b && common) narrow.insert(*common);
      }
    }
    for (Dtype dtype : narrow) SHW_CHECK(search_equal_after_rounding_to(dtype));
    return {};
  }
  Status search_equal_after_rounding_to(Dtype dtype) {
    SHW_TRY(const auto from_rows, hash_lines_of_tensors(from_, dtype, LineKind::kRows));
    SHW_TRY(const auto to_rows, hash_lines_of_tensors(to_, dtype, LineKind::kRows));
    const std::vector<Dtype> from_dtypes(from_.size(), dtype), to_dtypes(to_.size(), dtype);
    search({LineKind::kRows, from_rows, from_dtypes, from_.ndims},
           {LineKind::kRows, to_rows, to_dtypes, to_.ndims}, true);
    return search_columns(from_rows, from_dtypes, to_rows, to_dtypes, dtype);
  }

  // For rows that keep a tensor unchanged: pairs the tensors with equal content.
  void pair_equal_tensors() {
    std::map<std::size_t, CopyGroup> groups;  // by the tensor of `from` that represents them
    std::map<std::size_t, std::size_t> by_to;
    for (const LearnedRow& learned : out_.rows) {
      const FoundRow& row = learned.row;
      if (!row.ops.empty() || !row.lead.empty() || row.to.size() != 1) continue;
      by_to[row.to.front()] = row.from.front().front();
      groups[row.from.front().front()];
    }
    for (std::size_t i = 0; i < from_.size(); ++i) {
      if (auto found = groups.find(from_.same_as[i]); found != groups.end())
        found->second.from.push_back(i);
    }
    for (std::size_t i = 0; i < to_.size(); ++i) {
      if (auto found = by_to.find(to_.same_as[i]); found != by_to.end())
        groups[found->second].to.push_back(i);
    }
    for (const auto& [stands, group] : groups) {
      if (group.from.size() > 1 || group.to.size() > 1) pair_tensors_of_group(group);
    }
    from_.explained.assign(from_.size(), false);
    to_.explained.assign(to_.size(), false);
    for (const LearnedRow& learned : out_.rows) mark_explained(learned.row, from_, to_);
  }
  void pair_tensors_of_group(const CopyGroup& group) {
    if (group.from.size() > kMaxPaired || group.to.size() > kMaxPaired) return;
    std::erase_if(out_.rows, [&](const LearnedRow& learned) {
      const FoundRow& row = learned.row;
      return row.ops.empty() && row.lead.empty() && row.to.size() == 1 &&
             to_.same_as[row.to.front()] == to_.same_as[group.to.front()];
    });
    struct Pair {
      std::size_t likeness, from, to;
    };
    std::vector<Pair> pairs;
    for (std::size_t f : group.from) {
      for (std::size_t t : group.to)
        pairs.push_back({name_similarity(from_.names[f], to_.names[t]), f, t});
    }
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const Pair& a, const Pair& b) { return a.likeness > b.likeness; });
    std::set<std::size_t> from, to;
    for (const Pair& pair : pairs) {
      if (from.contains(pair.from) || to.contains(pair.to)) continue;
      if (from.empty()) {
        for (std::size_t f : group.from) from_.same_as[f] = pair.from;
        for (std::size_t t : group.to) to_.same_as[t] = pair.to;
      }
      from.insert(pair.from);
      to.insert(pair.to);
      out_.rows.push_back({{.to = {pair.to}, .from = {{pair.from}}}, false});
    }
  }

  static void add_copies(LearnSide& side, std::vector<std::pair<std::size_t, std::size_t>>& out) {
    for (std::size_t i = 0; i < side.size(); ++i) {
      if (side.explained[i] || side.same_as[i] == i || !side.explained[side.same_as[i]]) continue;
      out.emplace_back(i, side.same_as[i]);
      side.explained[i] = true;
    }
  }

  LearnSide& from_;
  LearnSide& to_;
  const MapDirection way_;
  Progress* progress_;
  LearnedRows out_;
};

}  // namespace

Result<LearnedRows> learn_rows(LearnSide& from, LearnSide& to, MapDirection way,
                               Progress* progress) {
  return RowLearner(from, to, way, progress).run();
}

bool has_unstacked_tensors(const LearnSide& from, const LearnSide& to) {
  const std::vector<bool> from_out = tensors_to_skip(from), to_out = tensors_to_skip(to);
  const RowSearchResult found =
      search_rows({LineKind::kRows, from.rows, from.dtypes, from.ndims, &from_out},
                  {LineKind::kRows, to.rows, to.dtypes, to.ndims, &to_out});
  std::size_t coarser = 0, finer = found.finer + found.shorter;
  for (const FoundRow& row : found.rows) {
    if (!row.lead.empty() || row.padded != 0) ++coarser;
    if (row.lead.empty() && row.to.size() > 1) ++finer;
    if (row.lead.empty() && row.from.front().size() > 1) ++coarser;
  }
  return coarser >= finer;
}

}  // namespace shw

#include "core/compare/renamed_pairs.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/compare/fingerprints.h"
#include "core/compare/tile_cover.h"
#include "core/compare/value_pass.h"

namespace shw {
namespace {

// Total length of the common prefix and suffix.
std::size_t shared_affix_length(std::string_view a, std::string_view b) {
  std::size_t most = std::min(a.size(), b.size()), begin = 0, end = 0;
  while (begin < most && a[begin] == b[begin]) ++begin;
  while (end < most - begin && a[a.size() - 1 - end] == b[b.size() - 1 - end]) ++end;
  return begin + end;
}

// Tensors are compared by bytes only if these are equal.
using DtypeAndShape = std::pair<Dtype, Extents>;
struct Candidates {
  std::vector<TensorId> a, b;
};

std::map<DtypeAndShape, Candidates> candidates_of(const BothCheckpoints& both,
                                                  const std::vector<TensorId>& only_a,
                                                  const std::vector<TensorId>& only_b) {
  std::map<DtypeAndShape, Candidates> forms;
  for (TensorId tensor : only_a)
    forms[{both.a.dtype(tensor), copy_of(both.a.shape(tensor))}].a.push_back(tensor);
  for (TensorId tensor : only_b) {
    auto found = forms.find({both.b.dtype(tensor), copy_of(both.b.shape(tensor))});
    if (found != forms.end()) found->second.b.push_back(tensor);
  }
  std::erase_if(forms, [](const auto& form) { return form.second.b.empty(); });
  return forms;
}

// Pairs by most similar names first. Larger groups of equal bytes are paired in order.
constexpr std::size_t kMaxAlike = 1024;

void pair_by_name(const BothCheckpoints& both, Candidates alike, std::vector<TensorPair>& out) {
  if (alike.a.size() * alike.b.size() > kMaxAlike * kMaxAlike) {
    for (std::size_t i = 0; i < std::min(alike.a.size(), alike.b.size()); ++i)
      out.push_back({alike.a[i], alike.b[i]});
    return;
  }
  std::vector<std::tuple<std::size_t, std::size_t, std::size_t>> ways;
  for (std::size_t i = 0; i < alike.a.size(); ++i) {
    for (std::size_t j = 0; j < alike.b.size(); ++j)
      ways.emplace_back(shared_affix_length(both.a.fqn(alike.a[i]), both.b.fqn(alike.b[j])), i, j);
  }
  std::stable_sort(ways.begin(), ways.end(),
                   [](const auto& x, const auto& y) { return std::get<0>(x) > std::get<0>(y); });
  std::vector<bool> taken_a(alike.a.size()), taken_b(alike.b.size());
  for (const auto& [letters, i, j] : ways) {
    if (taken_a[i] || taken_b[j]) continue;
    taken_a[i] = taken_b[j] = true;
    out.push_back({alike.a[i], alike.b[j]});
  }
}

// The hash is not secure against deliberate collisions, so bytes are compared.
Result<std::vector<RenamedPair>> bitwise_equal_pairs(const BothCheckpoints& both,
                                                     const std::vector<TensorPair>& pairs,
                                                     std::uint64_t memory, Progress* progress) {
  std::vector<TileCover> covers;
  covers.reserve(2 * pairs.size());
  std::vector<RequestedPair> asked;
  for (const TensorPair& pair : pairs) {
    covers.push_back(compute_tile_cover(both.a, pair.a));
    covers.push_back(compute_tile_cover(both.b, pair.b));
    asked.push_back({pair, &covers[covers.size() - 2], &covers.back()});
  }
  SHW_TRY(const auto seen, compare_values(both, asked, memory, progress));
  std::vector<RenamedPair> out;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (seen[i].values.elements.differing != 0) continue;
    const bool is_open = seen[i].too_many_pairs || seen[i].error || seen[i].values.unread != 0;
    out.push_back({pairs[i], is_open});
  }
  return out;
}

}  // namespace

Result<std::vector<RenamedPair>> find_renamed(const BothCheckpoints& both,
                                              const std::vector<TensorId>& only_a,
                                              const std::vector<TensorId>& only_b,
                                              std::uint64_t memory, Progress* progress) {
  std::vector<TensorId> a, b;
  for (const auto& [form, candidates] : candidates_of(both, only_a, only_b)) {
    a.insert(a.end(), candidates.a.begin(), candidates.a.end());
    b.insert(b.end(), candidates.b.begin(), candidates.b.end());
  }
  SHW_TRY(auto a_prints, fingerprints_of(both.a, a, memory, progress));
  SHW_TRY(auto b_prints, fingerprints_of(both.b, b, memory, progress));
  std::map<std::tuple<DtypeAndShape, std::uint64_t, std::uint64_t>, Candidates> alike;
  auto add = [&](const Checkpoint& checkpoint, const std::vector<TensorId>& tensors,
                 const std::vector<Result<Fingerprint>>& prints,
                 std::vector<TensorId> Candidates::*side) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!prints[i]) continue;
      DtypeAndShape form{checkpoint.dtype(tensors[i]), copy_of(checkpoint.shape(tensors[i]))};
      (alike[{std::move(form), prints[i]->a, prints[i]->b}].*side).push_back(tensors[i]);
    }
  };
  add(both.a, a, a_prints, &Candidates::a);
  add(both.b, b, b_prints, &Candidates::b);
  std::vector<TensorPair> out;
  for (auto& [key, candidates] : alike) pair_by_name(both, std::move(candidates), out);
  return bitwise_equal_pairs(both, out, memory, progress);
}

}  // namespace shw

#include "core/maps/repairs_through_map.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "core/base/hash.h"
#include "core/facts/layout/retained_chunks.h"
#include "core/facts/reference/content_search.h"
#include "core/facts/reference/match.h"
#include "core/facts/states/optimizer_states.h"
#include "core/facts/values/added_tensor.h"
#include "core/facts/values/tensor_pieces.h"
#include "core/formats/items/items.h"
#include "core/maps/diagnose_rows.h"
#include "core/maps/map_of_pair.h"
#include "core/maps/reassembled.h"
#include "core/maps/slice_order.h"
#include "core/transform/named_entries.h"
#include "core/transform/part_reader.h"

namespace shw {
namespace {

// Largest tensor in bytes that is reassembled: its saved and its expected elements are in memory
// together.
constexpr std::uint64_t kMaxRearranged = std::uint64_t{1} << 30;
constexpr std::size_t kMaxRetained = 1 << 16;  // limit on boxes of a reassembled tensor

Extents with_last_dims_swapped(Extents shape) {
  if (shape.size() >= 2) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return shape;
}

}  // namespace

std::optional<Diagnosis> diagnose_rearrangement(TensorId tensor, const LoadedTensor& there,
                                                const LoadedTensor& expected,
                                                std::int64_t padding_from) {
  const std::size_t ndim = there.shape.size();
  if (there.dtype != expected.dtype || there.bytes.size() != expected.bytes.size() ||
      there.bytes.empty() || size_of(there.dtype) == 0)
    return std::nullopt;
  if (there.shape == expected.shape) {
    for (std::size_t d = 0; d < ndim; ++d) {
      const Extents order =
          slice_order(there, d, there.bytes, expected.bytes, d == 0 ? padding_from : 0);
      if (!order.empty()) return in_blocks(tensor, d, order);
    }
  }
  if (ndim >= 2 && with_last_dims_swapped(there.shape) == expected.shape &&
      are_transposed_cells(there, expected))
    return Transposed{tensor, ndim - 2, ndim - 1, expected.shape};
  return std::nullopt;
}

namespace {

// The reference mapped to the world of the compared checkpoint.
struct ExpectedSide {
  TargetState state;
  std::map<std::string, std::size_t> entries;  // by FQN in the compared checkpoint
};

Result<ExpectedSide> expected_side(const std::shared_ptr<const Checkpoint>& compared,
                                   const std::shared_ptr<const Checkpoint>& reference,
                                   const MappedOptions& options, const ModelFacts& facts,
                                   Progress* progress) {
  const std::vector<MapTensor> here = tensor_names_and_shapes(*compared),
                               there = tensor_names_and_shapes(*reference);
  SHW_TRY(const MapOfPair pair, map_of_pair(here, there, options.map, facts));
  ExpectedSide out;
  if (pair.map == nullptr) return out;
  const ModelMap& map = *pair.map;
  BoundMap bound;
  if (auto of_here = bind_map(
          map, pair.is_first_from ? MapDirection::kForward : MapDirection::kBack, here, facts))
    bound = std::move(*of_here);
  const ModelFacts followed =
      pair.is_first_from ? facts : facts_from_other_side(map, there, *compared, bound, facts);
  SHW_TRY(MappedSteps steps, mapped_steps(*reference, &map, pair.is_first_from ? map.from : map.to,
                                          followed, {{"*"}, true}));
  SHW_TRY(out.state, apply_steps(target_state_of(reference), steps.steps, progress));
  const std::map<std::string, std::string> names = saved_names(*compared, bound);
  for (std::size_t i = 0; i < out.state.tensors.size(); ++i) {
    const std::string& fqn = out.state.tensors[i].fqn;
    const auto found = names.find(pair.is_first_from ? fqn : without_written_prefix(map, fqn));
    if (found != names.end()) out.entries.emplace(found->second, i);
  }
  return out;
}

// A tensor that cannot be repaired by itself, and its expected content.
struct MisplacedTensor {
  TensorId tensor{};
  std::size_t entry = 0;  // in the expected state
  Extents shape;
  std::string there, expected;  // hashes
};

// The first padding row, which may have any value; 0 if there is none.
std::int64_t padding_begin(const TargetTensor& wanted) {
  for (const Part& part : wanted.parts) {
    if (part.is_padding() && !part.box.offsets.empty() && part.box.offsets.front() > 0)
      return part.box.offsets.front();
  }
  return 0;
}

class RepairSearch {
 public:
  RepairSearch(const Checkpoint& checkpoint, const TargetState& expected)
      : checkpoint_(checkpoint), expected_(expected), reader_(expected) {}

  Status add(TensorId tensor, std::size_t entry) {
    SHW_TRY(const TargetTensor wanted, copy_of_entry(expected_, entry));
    const Extents shape = copy_of(checkpoint_.shape(tensor));
    if (checkpoint_.dtype(tensor) != wanted.dtype || !fits_in_memory(wanted.dtype, shape) ||
        !fits_in_memory(wanted.dtype, wanted.shape))
      return {};
    auto is = held(tensor);
    if (!is) return {};
    SHW_TRY(const LoadedTensor was, expected_of(wanted, *is));
    if (is->shape == was.shape && is->bytes == was.bytes) return {};
    if (auto found = diagnose_rearrangement(tensor, *is, was, padding_begin(wanted))) {
      found_.diagnoses.push_back(std::move(*found));
      return {};
    }
    if (is->dtype == was.dtype && is->shape == was.shape && is_addition_supported(is->dtype)) {
      if (const auto shift = find_constant_shift(is->dtype, is->bytes, was.bytes)) {
        found_.shifts.emplace(tensor, *shift);
        return {};
      }
    }
    rows_.add(others_.size(), *is);
    others_.push_back({tensor, entry, is->shape, to_hex(hash_of(is->bytes)),
                       is->shape == was.shape ? to_hex(hash_of(was.bytes)) : std::string()});
    return {};
  }

  Result<RepairsThroughMap> take() {
    SHW_CHECK(find_exchanged_tensors());
    for (std::size_t i = 0; i < others_.size(); ++i) {
      if (!is_exchanged_.contains(i)) SHW_CHECK(reassemble(i));
    }
    return std::move(found_);
  }

 private:
  static bool fits_in_memory(Dtype dtype, const Extents& shape) {
    return bytes_when_loaded(dtype, shape) <= kMaxRearranged;
  }
  std::optional<LoadedTensor> held(TensorId tensor) const {
    auto values = read_tensor(checkpoint_, tensor, kMaxRearranged);
    LoadedTensor out{checkpoint_.dtype(tensor), copy_of(checkpoint_.shape(tensor)), {}};
    if (!values || values->uncovered != 0 ||
        values->bytes.size() != bytes_when_loaded(out.dtype, out.shape) || values->bytes.empty())
      return std::nullopt;
    out.bytes = std::move(values->bytes);
    return out;
  }
  // Padding is taken from the saved tensor, because it may have any value.
  Result<LoadedTensor> expected_of(const TargetTensor& wanted, const LoadedTensor& is) {
    LoadedTensor was{wanted.dtype, wanted.shape, {}};
    if (is.shape == was.shape)
      was.bytes = is.bytes;
    else
      was.bytes.resize(bytes_when_loaded(was.dtype, was.shape));
    SHW_CHECK(read_target_tensor(wanted, was));
    return was;
  }
  Status read_target_tensor(const TargetTensor& wanted, LoadedTensor& was) {
    Bytes bytes;
    const Extents strides = row_major_strides(was.shape);
    const std::size_t width = size_of(was.dtype);
    for (const Part& part : wanted.parts) {
      if (part.is_padding()) continue;
      SHW_CHECK(reader_.read(part, part.box, bytes));
      each_row(part.box, bytes, width, strides,
               [&](const Extents&, std::int64_t at, BytesView row) {
                 std::memcpy(was.bytes.data() + static_cast<std::size_t>(at) * width, row.data(),
                             row.size());
               });
    }
    return {};
  }

  // Reassembles a tensor from rows of all wrong tensors.
  Status reassemble(std::size_t i) {
    SHW_TRY(const TargetTensor wanted, copy_of_entry(expected_, others_[i].entry));
    const auto is = held(others_[i].tensor);
    if (!is) return {};
    SHW_TRY(const LoadedTensor was, expected_of(wanted, *is));
    const auto moves = rows_.reassembled(i, *is, was);
    if (!moves || !are_equal_after_moves(*moves, was)) return {};
    PartlyLost out{others_[i].tensor, was.shape, {}, ""};
    for (const BoxMove& move : *moves) {
      auto parts = crop_to_retained_chunks(checkpoint_, others_[move.source].tensor,
                                           {move.from, move.sizes}, move.at);
      out.retained_chunks.insert(out.retained_chunks.end(), parts.begin(), parts.end());
    }
    if (out.retained_chunks.size() <= kMaxRetained) found_.diagnoses.push_back(std::move(out));
    return {};
  }
  // Compares the bytes, because equal hashes can be forged.
  bool are_equal_after_moves(const std::vector<BoxMove>& moves, const LoadedTensor& was) const {
    std::map<std::size_t, std::vector<const BoxMove*>> by_source;
    for (const BoxMove& move : moves) by_source[move.source].push_back(&move);
    for (const auto& [source, boxes] : by_source) {
      const auto from = held(others_[source].tensor);
      if (!from || from->dtype != was.dtype) return false;
      for (const BoxMove* box : boxes) {
        if (!is_equal_after_move(*box, *from, was)) return false;
      }
    }
    return true;
  }
  // Finds tensors that have one another's content. A tensor is repaired if another tensor has its
  // expected elements.
  Status find_exchanged_tensors() {
    // By dtype, shape and hash: the tensors with that content.
    PlacesByContent<std::tuple<Dtype, Extents, std::string>> holders;
    for (std::size_t j = others_.size(); j-- > 0;)
      holders.add({checkpoint_.dtype(others_[j].tensor), others_[j].shape, others_[j].there}, j);
    std::vector<std::size_t> source(others_.size(), others_.size());
    for (std::size_t i = 0; i < others_.size(); ++i) {
      const std::tuple wanted{checkpoint_.dtype(others_[i].tensor), others_[i].shape,
                              others_[i].expected};
      const auto found = holders.last(wanted);
      if (!found) continue;
      // Compares the bytes, because equal hashes can be forged.
      SHW_TRY(const bool is_equal_after_move, holds(others_[*found].tensor, others_[i]));
      if (!is_equal_after_move) continue;
      source[i] = *holders.take(wanted);
    }
    for (std::size_t i = 0; i < others_.size(); ++i) {
      if (!is_in_cycle(i, source)) continue;
      is_exchanged_.insert(i);
      found_.diagnoses.push_back(
          copy_content_repair(checkpoint_, others_[i].tensor, others_[source[i]].tensor));
    }
    return {};
  }
  // True if `tensor` has every byte that is expected of `other`.
  Result<bool> holds(TensorId tensor, const MisplacedTensor& other) {
    SHW_TRY(const TargetTensor wanted, copy_of_entry(expected_, other.entry));
    const auto is = held(tensor), own = held(other.tensor);
    if (!is || !own) return false;
    SHW_TRY(const LoadedTensor was, expected_of(wanted, *own));
    return was.bytes == is->bytes;
  }
  static bool is_in_cycle(std::size_t first, const std::vector<std::size_t>& source) {
    std::size_t at = first;
    for (std::size_t steps = 0; steps <= source.size(); ++steps) {
      at = source[at];
      if (at == source.size()) return false;
      if (at == first) return true;
    }
    return false;
  }

  const Checkpoint& checkpoint_;
  const TargetState& expected_;
  PartReader reader_;
  RepairsThroughMap found_;
  std::vector<MisplacedTensor> others_;  // not repairable by reordering their own elements
  std::set<std::size_t> is_exchanged_;
  RowPlaces rows_;
};

}  // namespace

Result<RepairsThroughMap> repairs_through_map(const std::shared_ptr<const Checkpoint>& compared,
                                              const std::shared_ptr<const Checkpoint>& reference,
                                              const MappedComparison& comparison,
                                              const MappedOptions& options, const ModelFacts& facts,
                                              Progress* progress) {
  std::set<TensorId> named;
  for (const MappedDifference& one : comparison.differences) {
    if (one.kind == MappedDifference::Kind::kDtype || one.kind == MappedDifference::Kind::kDamaged)
      continue;
    for (const std::string& subject : one.subjects) {
      if (const auto tensor = compared->find(subject)) named.insert(*tensor);
    }
  }
  // Skips parameters with optimizer states: the states have the same wrong order, and no map
  // compared them.
  for (const OptimizerState& state : optimizer_states(*compared, progress)) {
    if (state.parameter) named.erase(*state.parameter);
  }
  if (named.empty()) return RepairsThroughMap();
  SHW_TRY(const ExpectedSide expected,
          expected_side(compared, reference, options, facts, progress));
  RepairSearch search(*compared, expected.state);
  for (const TensorId tensor : named) {
    if (is_cancelled(progress)) return cancelled_error();
    const auto entry = expected.entries.find(std::string(compared->fqn(tensor)));
    if (entry != expected.entries.end()) SHW_CHECK(search.add(tensor, entry->second));
  }
  return search.take();
}

}  // namespace shw

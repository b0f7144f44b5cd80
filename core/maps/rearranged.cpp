#include "core/maps/rearranged.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>

#include "core/base/checked.h"
#include "core/base/hash.h"
#include "core/facts/states/optimizer_states.h"
#include "core/facts/values/tensor_pieces.h"
#include "core/formats/items.h"
#include "core/maps/map_of_pair.h"
#include "core/transform/named_entries.h"
#include "core/transform/part_reader.h"

namespace shw {
namespace {

// Both sides of one tensor are held in memory.
constexpr std::uint64_t kMostRearranged = std::uint64_t{1} << 30;

// A tensor seen as [outer, count, inner]: what of it has one index along a dim.
struct SlicedTensor {
  std::size_t outer = 1, count = 1, inner = 1;  // inner: in bytes

  SlicedTensor(const HeldTensor& tensor, std::size_t dim) : inner(size_of(tensor.dtype)) {
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      const auto size = static_cast<std::size_t>(tensor.shape[d]);
      (d < dim ? outer : d == dim ? count : inner) *= size;
    }
  }
  std::string slice(BytesView bytes, std::size_t i) const {
    RunningHash hash;
    for (std::size_t o = 0; o < outer; ++o) hash.add(bytes.subspan((o * count + i) * inner, inner));
    return hash.text();
  }
  bool is_equal(BytesView a, std::size_t i, BytesView b, std::size_t j) const {
    for (std::size_t o = 0; o < outer; ++o) {
      if (std::memcmp(a.data() + (o * count + i) * inner, b.data() + (o * count + j) * inner,
                      inner) != 0)
        return false;
    }
    return true;
  }
};

// By slice that is expected: the slice that holds it. Each is used once; empty where one is
// nowhere.
Extents slice_order(const SlicedTensor& slices, BytesView there, BytesView expected) {
  std::unordered_map<std::string, std::vector<std::int64_t>> free;
  Extents order(slices.count, -1);
  for (std::size_t i = slices.count; i-- > 0;) {
    if (slices.is_equal(there, i, expected, i))
      order[i] = static_cast<std::int64_t>(i);
    else
      free[slices.slice(there, i)].push_back(static_cast<std::int64_t>(i));
  }
  for (std::size_t i = 0; i < slices.count; ++i) {
    if (order[i] >= 0) continue;
    const auto found = free.find(slices.slice(expected, i));
    if (found == free.end() || found->second.empty()) return {};
    order[i] = found->second.back();
    found->second.pop_back();
    if (!slices.is_equal(there, static_cast<std::size_t>(order[i]), expected, i)) return {};
  }
  return order;
}

// The most rows that stay together everywhere.
BlocksPermuted in_blocks(TensorId tensor, std::size_t dim, const Extents& order) {
  const auto count = static_cast<std::int64_t>(order.size());
  std::int64_t block = count;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t from = order[static_cast<std::size_t>(i)];
    if (i == 0 || from != order[static_cast<std::size_t>(i - 1)] + 1)
      block = std::gcd(std::gcd(block, i), from);
  }
  BlocksPermuted out{tensor, dim, block, {}};
  for (std::int64_t i = 0; i < count; i += block)
    out.order.push_back(order[static_cast<std::size_t>(i)] / block);
  return out;
}

bool is_turned(const HeldTensor& there, const HeldTensor& expected, const Extents& turned) {
  const auto rows = static_cast<std::size_t>(turned[turned.size() - 2]);
  const auto columns = static_cast<std::size_t>(turned.back());
  const std::size_t width = size_of(there.dtype), cell = rows * columns * width;
  for (std::size_t at = 0; cell > 0 && at < there.bytes.size(); at += cell) {
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        if (std::memcmp(expected.bytes.data() + at + (r * columns + c) * width,
                        there.bytes.data() + at + (c * rows + r) * width, width) != 0)
          return false;
      }
    }
  }
  return cell > 0;
}

Extents with_last_turned(Extents shape) {
  if (shape.size() >= 2) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return shape;
}

}  // namespace

std::optional<Diagnosis> rearranged(TensorId tensor, const HeldTensor& there,
                                    const HeldTensor& expected) {
  const std::size_t ndim = there.shape.size();
  if (there.dtype != expected.dtype || there.bytes.size() != expected.bytes.size() ||
      there.bytes.empty() || size_of(there.dtype) == 0)
    return std::nullopt;
  if (there.shape == expected.shape) {
    for (std::size_t d = 0; d < ndim; ++d) {
      const Extents order = slice_order(SlicedTensor(there, d), there.bytes, expected.bytes);
      if (!order.empty()) return in_blocks(tensor, d, order);
    }
  }
  if (ndim >= 2 && with_last_turned(there.shape) == expected.shape &&
      is_turned(there, expected, expected.shape))
    return Transposed{tensor, ndim - 2, ndim - 1, expected.shape};
  return std::nullopt;
}

namespace {

// What the map makes of the reference in the world of the one that is compared.
struct ExpectedSide {
  TargetState state;
  std::map<std::string, std::size_t> entries;  // by the name that the compared one has
};

Result<ExpectedSide> expected_side(const std::shared_ptr<const Checkpoint>& compared,
                                   const std::shared_ptr<const Checkpoint>& reference,
                                   const MappedOptions& options, const ModelFacts& facts,
                                   Progress* progress) {
  const std::vector<MapTensor> here = named_shapes(*compared), there = named_shapes(*reference);
  SHW_TRY(const MapOfPair pair, map_of_pair(here, there, options.map, facts));
  ExpectedSide out;
  if (pair.map == nullptr) return out;
  const ModelMap& map = *pair.map;
  BoundMap bound;
  if (auto of_here =
          bind_map(map, pair.is_first_from ? MapWay::kForward : MapWay::kBack, here, facts))
    bound = std::move(*of_here);
  const ModelFacts followed =
      pair.is_first_from ? facts : facts_followed(map, there, *compared, bound, facts);
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

std::uint64_t bytes_when_held(Dtype dtype, const Extents& shape) {
  const auto elements = volume(shape);
  const auto bytes = elements ? checked_mul(*elements, std::int64_t{size_of(dtype)}) : std::nullopt;
  return bytes ? static_cast<std::uint64_t>(*bytes) : UINT64_MAX;
}

// One tensor that is nowhere right, and what was expected there.
struct MovedWhole {
  TensorId tensor{};
  std::size_t entry = 0;  // of the expected state
  Extents shape;
  std::string there, expected;  // hashes
};

class RepairSearch {
 public:
  RepairSearch(const Checkpoint& checkpoint, const TargetState& expected)
      : checkpoint_(checkpoint), expected_(expected), reader_(expected) {}

  Status add(TensorId tensor, std::size_t entry) {
    SHW_TRY(const TargetTensor wanted, copy_of_entry(expected_, entry));
    HeldTensor is{checkpoint_.dtype(tensor), copy_of(checkpoint_.shape(tensor)), {}};
    HeldTensor was{wanted.dtype, wanted.shape, {}};
    if (is.dtype != was.dtype || bytes_when_held(is.dtype, is.shape) > kMostRearranged ||
        bytes_when_held(was.dtype, was.shape) != bytes_when_held(is.dtype, is.shape))
      return {};
    auto values = read_tensor(checkpoint_, tensor, kMostRearranged);
    if (!values || values->uncovered != 0) return {};
    is.bytes = std::move(values->bytes);
    if (is.bytes.size() != bytes_when_held(is.dtype, is.shape)) return {};
    if (is.shape == was.shape)
      was.bytes = is.bytes;  // of padding no value is expected
    else
      was.bytes.resize(is.bytes.size());
    SHW_CHECK(read_wanted(wanted, was));
    if (is.shape == was.shape && is.bytes == was.bytes) return {};
    if (auto found = rearranged(tensor, is, was))
      found_.push_back(std::move(*found));
    else if (is.shape == was.shape)
      whole_.push_back(
          {tensor, entry, is.shape, to_hex(hash_of(is.bytes)), to_hex(hash_of(was.bytes))});
    return {};
  }

  Result<std::vector<Diagnosis>> take() {
    SHW_CHECK(exchange_whole());
    return std::move(found_);
  }

 private:
  Status read_wanted(const TargetTensor& wanted, HeldTensor& was) {
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

  // Tensors that hold one another's elements: a tensor counts where its own are wanted by another.
  Status exchange_whole() {
    // By dtype, shape and hash: the tensors that hold it.
    std::map<std::tuple<Dtype, Extents, std::string>, std::vector<std::size_t>> holders;
    for (std::size_t j = whole_.size(); j-- > 0;)
      holders[{checkpoint_.dtype(whole_[j].tensor), whole_[j].shape, whole_[j].there}].push_back(j);
    std::vector<std::size_t> source(whole_.size(), whole_.size());
    for (std::size_t i = 0; i < whole_.size(); ++i) {
      const auto found =
          holders.find({checkpoint_.dtype(whole_[i].tensor), whole_[i].shape, whole_[i].expected});
      if (found == holders.end() || found->second.empty()) continue;
      // Equal hashes can be made by hand.
      SHW_TRY(const bool is_held, holds(whole_[found->second.back()].tensor, whole_[i]));
      if (!is_held) continue;
      source[i] = found->second.back();
      found->second.pop_back();
    }
    for (std::size_t i = 0; i < whole_.size(); ++i) {
      if (!is_in_ring(i, source)) continue;
      PartlyLost out{whole_[i].tensor, whole_[i].shape, {}, ""};
      for (const ChunkId chunk : checkpoint_.chunks(whole_[source[i]].tensor))
        out.retained_chunks.push_back(
            {chunk, whole(copy_of(checkpoint_.sizes(chunk))), copy_of(checkpoint_.offsets(chunk))});
      found_.push_back(std::move(out));
    }
    return {};
  }
  // Whether `tensor` has every byte that is expected of another one.
  Result<bool> holds(TensorId tensor, const MovedWhole& other) {
    SHW_TRY(const TargetTensor wanted, copy_of_entry(expected_, other.entry));
    auto values = read_tensor(checkpoint_, tensor, kMostRearranged);
    if (!values || values->uncovered != 0) return false;
    // Padding is expected to be as it is.
    auto own = read_tensor(checkpoint_, other.tensor, kMostRearranged);
    if (!own || own->uncovered != 0) return false;
    HeldTensor was{wanted.dtype, wanted.shape, std::move(own->bytes)};
    SHW_CHECK(read_wanted(wanted, was));
    return was.bytes == values->bytes;
  }
  static bool is_in_ring(std::size_t first, const std::vector<std::size_t>& source) {
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
  std::vector<Diagnosis> found_;
  std::vector<MovedWhole> whole_;
};

}  // namespace

Result<std::vector<Diagnosis>> repairs_through_map(
    const std::shared_ptr<const Checkpoint>& compared,
    const std::shared_ptr<const Checkpoint>& reference, const MappedComparison& comparison,
    const MappedOptions& options, const ModelFacts& facts, Progress* progress) {
  std::set<TensorId> named;
  for (const MappedDifference& one : comparison.differences) {
    if (one.kind == MappedDifference::Kind::kDtype || one.kind == MappedDifference::Kind::kDamaged)
      continue;
    for (const std::string& subject : one.subjects) {
      if (const auto tensor = compared->find(subject)) named.insert(*tensor);
    }
  }
  // A state of the optimizer has the order of its parameter, and no map compared it.
  for (const OptimizerState& state : optimizer_states(*compared, progress)) {
    if (state.parameter) named.erase(*state.parameter);
  }
  if (named.empty()) return std::vector<Diagnosis>();
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

// Reads pairs of related tensors elementwise (two moments, a master and its weight): in
// pieces, on all cores, divided among the ranks of a team. Memory is bounded by the piece
// size.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

struct ValuePair {
  TensorId a{}, b{};  // of one shape
};

// One range of elements, read from both tensors, little-endian.
struct PairPiece {
  Dtype a_dtype = Dtype::kUnknown, b_dtype = Dtype::kUnknown;
  BytesView a, b;
  std::size_t count = 0;
};

// Processes pieces of one pair; not thread-safe.
class PairCounter {
 public:
  virtual ~PairCounter() = default;
  virtual void add(const PairPiece& piece) = 0;
  // Adds elements that are zero in both tensors.
  virtual void add_zeros(std::size_t count) = 0;
  virtual std::vector<std::uint64_t> numbers() const = 0;
};

struct PairWork {
  std::string step;  // as in ScatterMapTask
  std::span<const ValuePair> pairs;
  // Fraction of the elements to read, at most 1: pieces spread over the tensors, independent of the
  // number of threads and ranks.
  double share = 1;
  std::function<std::unique_ptr<PairCounter>(std::size_t pair)> counter;
  // Receives the counts of a pair, part by part in a fixed order, on all ranks.
  std::function<Status(std::size_t pair, std::span<const std::uint64_t> numbers)> receive;
};

struct PairResults {
  // One flag per pair: false if a requested part could not be read, or if compressed chunks of the
  // two tensors have different boxes.
  std::vector<bool> is_read;
  std::uint64_t elements = 0, looked_at = 0;  // per side
};

// Reads both tensors once. Errors: cancellation, or a failure of the
// team.
Result<PairResults> compare_pairs(const CheckInput& input, const PairWork& work);

// True for float tensors that are tiled exactly and whose bytes can be read.
bool has_comparable_values(const CheckInput& input, TensorId tensor);

}  // namespace shw

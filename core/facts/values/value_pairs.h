// Tensors of one checkpoint that belong together element by element (two moments, a master and its
// weight), looked at side by side: in pieces, on every core, dealt out to the members of a team.
// Nothing larger than a piece is held.
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

// The same elements of both, little-endian, whichever they are.
struct PairPiece {
  Dtype a_dtype = Dtype::kUnknown, b_dtype = Dtype::kUnknown;
  BytesView a, b;
  std::size_t count = 0;
};

// Counts pieces of one pair, for one thread.
class PairCounter {
 public:
  virtual ~PairCounter() = default;
  virtual void add(const PairPiece& piece) = 0;
  // The same of so many elements that are zero in both.
  virtual void add_zeros(std::size_t count) = 0;
  virtual std::vector<std::uint64_t> numbers() const = 0;
};

struct PairWork {
  std::string step;  // as in TeamWork
  std::span<const ValuePair> pairs;
  // Of the elements, at most 1: pieces all over the tensors, the same for any number of threads and
  // members.
  double share = 1;
  std::function<std::unique_ptr<PairCounter>(std::size_t pair)> counter;
  // What was counted of a pair, a part after the other in one order, whoever counted it.
  std::function<Status(std::size_t pair, std::span<const std::uint64_t> numbers)> hear;
};

struct PairsSeen {
  // By pair: not where anything that was asked could not be read, or where tiles are compressed and
  // cut otherwise than those of the other tensor.
  std::vector<bool> is_read;
  std::uint64_t elements = 0, looked_at = 0;  // of one side
};

// Both are read once, as far as they are asked. An error only where somebody stopped it, or where
// the team broke.
Result<PairsSeen> look_at_pairs(const CheckInput& input, const PairWork& work);

// A float tensor that its tiles fill exactly, with bytes that can be read.
bool has_values_to_look_at(const CheckInput& input, TensorId tensor);

}  // namespace shw

// A tensor with one number added to every element. Gemma and its kind keep norms as w and multiply
// by 1 + w; other programs keep 1 + w.
#pragma once

#include <memory>
#include <optional>

#include "core/facts/values/computed_tensors.h"

namespace shw {

// True of plain floats of at most 32 bits: sums are made in float32.
bool is_addition_supported(Dtype dtype);

// Each element plus `value` in float32, rounded once to `dtype`. Requires is_addition_supported()
// of both dtypes.
ComputedTensor added_tensor(std::shared_ptr<const Checkpoint> checkpoint, TensorId tensor,
                            float value, Dtype dtype);

// True if adding `value` to each element of the box, rounded to `dtype`, and subtracting it again
// gives every element to the bit. False if an element cannot be read.
bool is_added_exactly(const Checkpoint& checkpoint, TensorId tensor, const Box& box, float value,
                      Dtype dtype);

// How the elements of one tensor become those of another one by 1 or -1.
struct FoundShift {
  int value = 0;          // that is to be added
  bool is_exact = false;  // the rounded sums are the expected elements to the bit
};
// The constant that was added: nullopt unless all elements `there` are `expected` plus it, rounded,
// or the reverse. Requires is_addition_supported(dtype).
std::optional<FoundShift> find_constant_shift(Dtype dtype, BytesView there, BytesView expected);

// True if `there` is `expected` after 1 was added or taken off, rounded, and undone again.
bool are_bits_lost_by_adding_one(Dtype dtype, BytesView there, BytesView expected);

// Gives the finding a remedy that adds one number to each subject. `shifts` has one entry per
// subject; no remedy if there are fewer or their values differ.
void set_remedy_of_adding(const std::vector<FoundShift>& shifts, Finding& finding);
// The number that the remedy of set_remedy_of_adding() adds; 0 if the finding has no such remedy.
int number_added_by_remedy(const Finding& finding);

}  // namespace shw

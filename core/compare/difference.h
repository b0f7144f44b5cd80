// Results of comparing two checkpoints.
//
// A common name is of the first kind that applies:
//   reshaped    different shapes
//   dtype       different dtypes
//   incomplete  elements are in no tile on one side, but are on the other
//   values      elements with different bits
//   undecided   unknown: bytes are damaged or missing, elements are missing on both sides or were
//               filled by a repair, or replicas within one checkpoint disagree
//   retiled     equal elements (as far as compared) in other tiles; not a difference by itself
// A name on one side only:
//   renamed     equal to a tensor that only the other side has; by a fingerprint of every byte,
//               never by shape and dtype alone
//   missing     only in A
//   added       only in B
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/rules/unjudged.h"
#include "core/tensor/dtype.h"
#include "core/tensor/element_difference.h"
#include "core/tensor/shape.h"

namespace shw {

// In display order.
enum class DifferenceKind : std::uint8_t {
  kMissing,
  kAdded,
  kIncomplete,
  kReshaped,
  kDtype,
  kValues,
  kUndecided,
  kRenamed,
  kRetiled
};
inline constexpr std::size_t kDifferenceKinds = 9;
std::string_view name(DifferenceKind kind);  // "missing"

enum class EqualityVerdict : std::uint8_t { kSame, kDifferent, kUndecided };
std::string_view name(EqualityVerdict verdict);

// A tensor's properties in one checkpoint.
struct TensorSide {
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  std::uint32_t tiles = 0;
  std::int64_t missing = 0;  // elements in no chunk
  std::int64_t filled = 0;   // elements filled by a repair
};

struct FirstDifference {
  Extents index;
  std::string a, b;  // text as in `show --values`
};

// For elements that exist and are readable on both sides.
struct ValueDifference {
  std::uint64_t compared = 0;
  std::uint64_t unread = 0;  // unreadable on at least one side
  ElementDifference elements;
  bool by_value = false;  // dtypes differ: compared by value, not by bits
  std::optional<double> cosine;
  std::optional<FirstDifference> first;
};

struct TensorDifference {
  std::string fqn;
  DifferenceKind kind = DifferenceKind::kUndecided;
  std::optional<TensorSide> a = {}, b = {};    // nullopt: no such tensor
  bool within = false;                         // kValues: all within the tolerance
  bool retiled = false;                        // also set for other kinds
  std::string other = {};                      // renamed: the other name
  std::optional<ValueDifference> values = {};  // if elements were compared
  std::optional<bool> same_elements = {};      // for kReshaped: equal elements in row-major order
  std::vector<std::string> why = {};           // for kUndecided: reasons
  std::optional<Error> error = {};             // the first read error
  char error_in = 'a';                         // side of the error: 'a' or 'b'
};

// A non-tensor entry that differs.
struct EntryDifference {
  std::string fqn;
  DifferenceKind kind = DifferenceKind::kUndecided;  // missing, added, values, undecided
  std::string a = {}, b = {};                        // short values, if they are plain data
  std::string why = {};
};

struct CheckpointDifference {
  EqualityVerdict verdict = EqualityVerdict::kUndecided;
  bool data = false;       // values were read
  bool is_mapped = false;  // A was converted through a map to the names and layouts of B's program
  std::uint64_t tensors_a = 0, tensors_b = 0, in_both = 0;
  std::uint64_t compared = 0;  // tensors whose elements were read, all that are in both
  std::uint64_t same = 0;      // of those in both: proved to be bitwise equal
  std::uint64_t within = 0;    // of those in both: TensorDifference::within
  std::optional<Tolerance> tolerance = {};
  std::vector<TensorDifference> tensors;  // by kind in display order; then in order of A, then B
  std::vector<EntryDifference> entries;
  std::vector<std::string> doubts;  // reasons against calling the checkpoints equal: sentences
  std::vector<Unjudged> unjudged;
};

}  // namespace shw

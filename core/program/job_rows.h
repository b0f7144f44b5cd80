// Conversions between jobs and the column form of a program, shared by all builders.
#pragma once

#include <array>
#include <vector>

#include "core/program/program.h"

namespace shw {

inline std::uint32_t append(std::vector<std::int64_t>& pool, ExtentsView numbers) {
  auto at = static_cast<std::uint32_t>(pool.size());
  pool.insert(pool.end(), numbers.begin(), numbers.end());
  return at;
}

inline void read_from(ProgramJob& job, SourceId source, Dtype from, std::int64_t first) {
  job.source = source;
  job.from = from;
  job.op = job.from == job.to ? ElementOp::kCopy : ElementOp::kCast;
  job.first = first;
}

// Writes the conversion into the job. Call after read_from().
inline void change(ProgramJob& job, const JobConversion& change) {
  job.via = change.via;
  if (change.via[0] != Dtype::kUnknown) job.op = ElementOp::kCast;
  if (!change.is_scaled) return;
  job.op = ElementOp::kScale;
  job.factor = change.factor;
  job.constant[0] = change.factor == SourceId::kNone ? change.factor_bits
                                                     : static_cast<std::uint64_t>(change.factor_at);
}

inline void set_constant(ProgramJob& job, const std::array<std::uint64_t, 2>& bits) {
  job.op = ElementOp::kConstant;
  job.constant[0] = bits[0];
  job.constant[1] = bits[1];
}

}  // namespace shw

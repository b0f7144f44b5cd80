// The report as tables for a notebook: an HDF5 file with one compound dataset a table.
//
//   tensors     fqn, dtype, shape, ndim, elements, bytes, chunks, first_chunk
//   chunks      tensor, file (rows of those tables, -1: none), offset, length, writer, elements,
//               then offset_0.. and size_0..
//   files       path, bytes, rank, is_there, is_referenced
//   findings    rule, severity, consequence, cause, remedy, subjects
//   subjects    finding (row), name
//   statistics  fqn, elements, nan, inf, zero, denormal, min, max, mean, std, missing, unread,
//               repeated, error (why something could not be read, else empty)
//   histogram   statistics (row), sign, exponent, count
//
// The last two only where every byte was read; `statistics` also has tensors of which only the name
// is known, behind those of `tensors`. Bytes have the unit "B" (attribute `units`).
#pragma once

#include <span>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/facts/values/tensor_statistics.h"
#include "core/report/report.h"

namespace shw {

// Replaces `path` when it is complete. `statistics`: of all tensors, in their order, and then of
// those of which only the name is known; may be empty. How many bytes were written.
Result<std::uint64_t> write_hdf5_report(const ReportInput& input,
                                        std::span<const TensorStatistics> statistics,
                                        const std::string& path, Progress* progress);

}  // namespace shw

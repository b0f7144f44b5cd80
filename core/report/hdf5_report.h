// The report as an HDF5 file for notebooks, with one compound dataset per table.
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
// The last two exist only if every byte was read. `statistics` ends with tensors of which only the
// name is known. Bytes have the attribute `units` "B".
#pragma once

#include <span>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/facts/values/tensor_statistics.h"
#include "core/report/report.h"

namespace shw {

// Replaces `path` once it is complete, and returns the number of bytes. `statistics`: of all
// tensors in order, then of those of which only names are known; may be empty.
Result<std::uint64_t> write_hdf5_report(const ReportInput& input,
                                        std::span<const TensorStatistics> statistics,
                                        const std::string& path, Progress* progress);

}  // namespace shw

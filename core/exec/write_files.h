// The files that a format has laid out, written by as many threads as there are, each part where it
// belongs.
#pragma once

#include <functional>

#include "core/base/progress.h"
#include "core/formats/format_writer.h"
#include "core/io/store.h"

namespace shw {

// Writes the elements of a tile, by index in LaidOut::made, into its file, at their offset, and
// returns their CRC-32. Asked from several threads.
using MakeTile = std::function<Result<std::uint32_t>(std::size_t made, OutputFile&)>;

// `outputs` may have no source where nothing is copied from it.
Status write_files(const FormatWriter& writer, const Outputs& outputs, const LaidOut& laid_out,
                   const MakeTile& make, WritableDirectory& directory, Progress* progress);

}  // namespace shw

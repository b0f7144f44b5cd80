// The files that a format has laid out, written from their begin to their end.
#pragma once

#include <functional>

#include "core/base/progress.h"
#include "core/formats/format_writer.h"
#include "core/io/store.h"

namespace shw {

// Writes the elements of a tile where the sink stands, and returns their CRC-32.
using MakeTile = std::function<std::function<Result<std::uint32_t>(ByteSink&)>(const MadeTile&)>;

Status write_files(const Outputs& outputs, const LaidOut& laid_out, const MakeTile& make,
                   WritableDirectory& directory, Progress* progress);

}  // namespace shw

// Moves items of new files slightly, so that long byte runs copied from a source keep their
// position within a block. A file system that shares blocks between files then copies none of them.
// The positions depend on the plan and the source only, never on the file system: the same plan
// gives the same bytes on every machine.
#pragma once

#include <span>

#include "core/formats/format_writer.h"
#include "core/program/program.h"

namespace shw {

// Inserts a gap of less than a block before items with a run of at least kMinShared, or widens
// the file's header, if the writer allows it. `made` maps laid_out.made to outputs of the program,
// which are moved too. Returns true if anything moved: the program must then be proved again.
Result<bool> align_outputs(const FormatWriter& writer, std::span<const OutputId> made,
                           LaidOut& laid_out, Program& program);

}  // namespace shw

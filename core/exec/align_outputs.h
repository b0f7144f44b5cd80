// What new files hold moves up a little, so that long runs of a source's bytes stand at the same
// places of blocks as there: a file system that shares blocks between files then copies none of
// them. Where they stand depends on the plan and the source alone, never on what the file system
// can do: the same plan gives the same bytes on every machine.
#pragma once

#include <span>

#include "core/formats/format_writer.h"
#include "core/program/program.h"

namespace shw {

// Less than a block is left free before an item with a run of at least kLeastShared, or in the
// header of a file, as the writer allows. `made` by index in laid_out.made: outputs of the program,
// which move along. Whether anything moved: what was proved of the program is then to be again.
Result<bool> align_outputs(const FormatWriter& writer, std::span<const OutputId> made,
                           LaidOut& laid_out, Program& program);

}  // namespace shw

// Writes the files of a layout with several ranks (file_assignment.h, part_assignment.h). Data that
// one rank reads for another is sent in rounds of one message per pair, so that memory is bounded;
// while a round is written, the next one is read and sent. Without data to send no rank waits for
// another.
//
// The reading rank computes the fingerprint and sends it with the bytes, so that a change on the
// way is detected when the result is read back. Copied ranges (LaidOut::copies) are copied by the
// writing rank; the four bytes of a scale are read by both.
#pragma once

#include "core/exec/file_assignment.h"
#include "core/exec/file_writer.h"
#include "core/exec/team_journal.h"

namespace shw {

// Like write_files(), on every rank of the team; `journal` receives every file, and all ranks
// receive all hashes of copied items.
Result<WrittenElementSums> write_files_collectively(const FileWriterInputs& with,
                                                    TeamJournal& journal);

}  // namespace shw

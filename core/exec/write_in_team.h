// The files that a format has laid out, written by several workers (deal_files.h, deal_parts.h).
// What one of them reads for another one is sent in rounds, one message from each to each, so that
// memory follows the limits; while a round is written the next one is read and sent. Where nothing
// has to be sent nobody waits for anybody.
//
// Who reads adds up the fingerprint of what was read, and it travels beside the bytes: what changes
// on the way shows when the result is read back. Bytes that come along as they are
// (LaidOut::copies) are copied by who writes them, and the four bytes of a scale are read by both.
#pragma once

#include "core/exec/deal_files.h"
#include "core/exec/file_writer.h"
#include "core/exec/team_journal.h"

namespace shw {

// As write_files(), on every worker of the team; `journal` hears of every file, and all know of all
// that came along.
Result<MadeElements> write_in_team(const FileWriting& with, TeamJournal& journal);

}  // namespace shw

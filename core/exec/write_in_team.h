// The files that a format has laid out, written by several workers. Each file is written by one of
// them, and each source is read by one of them, who sends to the others what they make of it: in
// rounds, one message from each to each, so that memory follows the limits. While a round is
// written the next one is read and sent.
//
// Who reads adds up the fingerprint of what was read, and it travels beside the bytes: what changes
// on the way shows when the result is read back. Bytes that come along as they are
// (LaidOut::copies) are copied by who writes them, and the four bytes of a scale are read by both.
#pragma once

#include "core/exec/deal_files.h"
#include "core/exec/file_writer.h"
#include "core/exec/team_journal.h"

namespace shw {

// As write_files(), on every worker of the team; `journal` hears of every file.
Result<std::vector<std::optional<Fingerprint>>> write_in_team(
    const FolderRun& run, const MemoryShares& shares, const Executors& executors,
    const std::vector<bool>& there, WritableDirectory& directory, TeamJournal& journal,
    Progress* progress);

}  // namespace shw

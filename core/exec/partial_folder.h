// The folder that a run works in until its result gets its name: which runs have left one, and
// what can be used of it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/exec/folder_run.h"
#include "core/exec/journal.h"

namespace shw {

// What of a run stands in its journal.
Result<JournalHeader> header_of(const Store& store, const FolderRun& run);

// Folders that runs have left, or are at work in, that would become `out`.
std::vector<std::string> partial_folders(const Store& store, const std::string& out);
// kUsage where another user made it or may write to it: its journal says what is kept unread.
Status check_is_own_partial(const Store& store, const std::string& partial);
// The name that such a folder gets at the end.
std::string out_of_partial(const std::string& partial);

// The first file that is not as the journal says, with its folder; nothing where all are.
std::optional<std::string> changed_input(const Store& store, const JournalHeader& header);

// Whether what was begun is the same run: an error says in what it is not.
Status check_same_run(const JournalHeader& begun, const JournalHeader& now);

// Whether somebody was at a file of the inputs since, whose size and time are the same: bytes may
// be others, or only its rights.
bool was_touched(const JournalHeader& begun, const JournalHeader& now);

// A folder that a dead process left of the same run. Other folders of it that nobody can go on with
// are taken away; those of other outputs stay where they have a journal.
struct Abandoned {
  std::string path;
  JournalText journal;
};
std::optional<Abandoned> find_abandoned(Store& store, const JournalHeader& header,
                                        const std::string& out);

// Of the files that the journal names, those that the run would make and that are there with their
// size, and of copies what lies beside items as well, which nobody proves; everything else in the
// folder is removed.
Result<std::vector<DurableFile>> keep_durable(const Store& store, WritableDirectory& folder,
                                              const FolderRun& run,
                                              const std::vector<DurableFile>& noted);

// Whether a folder holds anything that a run could go on with, as its journal says; also where that
// cannot be known, since the disk does not answer.
bool has_durable(const Store& store, const std::string& partial);

// Removes what its journal does not say to be durable, so that the disk has room for others. What
// cannot be removed stays.
void drop_unfinished(Store& store, const std::string& partial);

// Of tiles in files that are kept, by index in LaidOut::made, what was read for each when it was
// made.
void add_noted_elements(const LaidOut& laid_out, const std::vector<DurableFile>& kept,
                        std::vector<std::optional<ElementSums>>& made);

}  // namespace shw

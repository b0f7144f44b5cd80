// Unfinished folders: finds those that earlier runs left, and what can be
// reused.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/exec/folder_run.h"
#include "core/exec/journal.h"

namespace shw {

// The journal header of this run.
Result<JournalHeader> header_of(const Store& store, const FolderRun& run);

// Unfinished folders, abandoned or in use, whose final name is `out`.
std::vector<std::string> partial_folders(const Store& store, const std::string& out);
// kUsage if another user made it or may write to it: its journal decides which files are kept.
Status check_is_own_partial(const Store& store, const std::string& partial);
// The final name of an unfinished folder.
std::string final_name_of_partial(const std::string& partial);

// The first input file that differs from the journal, with its folder; nullopt if none does.
std::optional<std::string> first_changed_input(const Store& store, const JournalHeader& header);

// An error that names the difference if the two headers are not of the same run.
Status check_same_run(const JournalHeader& begun, const JournalHeader& now);

// True if an input file has a new change time but the same size and modification time: its bytes or
// only its permissions may have changed.
bool has_new_change_time(const JournalHeader& begun, const JournalHeader& now);

// The unfinished folder of the same run left by a dead process. Other folders of `out` that cannot
// be resumed are deleted; those of other outputs are kept if they have a journal.
struct ResumableFolder {
  std::string path;
  JournalText journal;
};
std::optional<ResumableFolder> find_resumable_folder(Store& store, const JournalHeader& header,
                                                     const std::string& out);

// The journal's files that this run would write too and that exist with the expected size; for
// copied files the bytes next to items are compared too, because no proof covers them. All other
// files in the folder are deleted.
Result<std::vector<DurableFile>> keep_resumable_files(const Store& store, WritableDirectory& folder,
                                                      const FolderRun& run,
                                                      const std::vector<DurableFile>& noted);

// True if the folder contains durable files according to its journal, or if the disk does not
// answer.
bool has_durable_files(const Store& store, const std::string& partial);

// Deletes all files that the journal does not list as durable, to free disk space. Files that
// cannot be deleted stay.
void delete_unfinished_folder(Store& store, const std::string& partial);

// Fills in the checksums of chunks in kept files, by index in LaidOut::made, from the
// journal.
void add_journaled_checksums(const LaidOut& laid_out, const std::vector<DurableFile>& kept,
                             std::vector<std::optional<ElementSums>>& made);

}  // namespace shw

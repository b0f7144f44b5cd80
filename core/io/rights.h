// Who made a folder that is gone on with, and who may read a result. All of it is about the file
// system of this machine: other stores have neither users nor rights.
#pragma once

#include <string>
#include <vector>

#include "core/io/store.h"

namespace shw {

// Half-made folders lie under names that others can see. One is gone on with only where this user
// made it: a folder and no link, of this user, that nobody else may write to, and so its own files
// of ours (`files`, where they are there). kUsage says what is wrong.
Status check_made_by_this_user(const Store& store, const std::string& folder,
                               const std::vector<std::string>& files);

// Permission bits that a result may have at most.
struct MostRights {
  unsigned folders = 0777, files = 0777;
};
// Those that all of them have, and the owner's own; paths that are not there count for nothing.
MostRights rights_of(const std::vector<std::string>& folders,
                     const std::vector<std::string>& files);

// Takes rights from what lies below a half-made folder: no file is wider than its source.
Status limit_rights(const Store& store, const std::string& folder, const MostRights& most);
Status limit_file_rights(const std::string& file, const MostRights& most);
// Gives a finished folder, which was its maker's alone, the rights that a new folder has.
Status open_finished_folder(const Store& store, const std::string& folder, const MostRights& most);

// Whether a file that lies in a folder is a link to something outside of it. The cache of a model
// hub, whose snapshots/REVISION/FILE are links into blobs/, counts as one folder.
bool leads_outside(const std::string& folder, const std::string& relative);

}  // namespace shw

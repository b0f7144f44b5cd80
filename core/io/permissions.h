// Ownership and permissions of output folders on the local file system. Other stores have neither
// users nor permissions.
#pragma once

#include <string>
#include <vector>

#include "core/io/store.h"

namespace shw {

// Checks that a resumed output folder was made by this user: it must be a real folder of this user
// that nobody else may write to, and so must the listed `files` if they exist. Its name is
// predictable, so another user could have prepared it. The kUsage error says what is wrong.
Status check_owned_by_this_user(const Store& store, const std::string& folder,
                                const std::vector<std::string>& files);

// The permission bits that a result may have at most.
struct PermissionLimit {
  unsigned folders = 0777, files = 0777;
};
// The bits that all listed paths have, plus the owner's; paths that do not exist are ignored.
PermissionLimit permission_limit_of(const std::vector<std::string>& folders,
                                    const std::vector<std::string>& files);

// Restricts the files of an unfinished folder: no file gets wider permissions than its source.
Status limit_permissions(const Store& store, const std::string& folder,
                         const PermissionLimit& most);
Status limit_file_permissions(const std::string& file, const PermissionLimit& most);
// Gives a finished folder, private until now, the permissions of a new folder.
Status set_final_permissions(const Store& store, const std::string& folder,
                             const PermissionLimit& most);

// True if a file in a folder is a link to a target outside of the folder. A model hub's cache,
// whose snapshots/REVISION/FILE link into blobs/, counts as one folder.
bool points_outside(const std::string& folder, const std::string& relative);

}  // namespace shw

// Subfolders of a checkpoint with an index of its format, which are other checkpoints.
#pragma once

#include <set>
#include <string>

#include "core/model/checkpoint.h"

namespace shw {

// Folders such as "old/" for every "old/.metadata" that the opened index does not refer to.
std::set<std::string, std::less<>> folders_with_own_index(const Checkpoint& checkpoint);
// True if a file is in one of these folders, at any depth.
bool is_in_folder(const std::set<std::string, std::less<>>& folders, std::string_view path);

}  // namespace shw

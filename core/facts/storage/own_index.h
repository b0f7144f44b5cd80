// Folders below a checkpoint that hold an index of its format: other checkpoints.
#pragma once

#include <set>
#include <string>

#include "core/model/checkpoint.h"

namespace shw {

// "old/", of every "old/.metadata" that the opened index does not refer to.
std::set<std::string, std::less<>> folders_with_own_index(const Checkpoint& checkpoint);
// Whether a file lies in one of them, at any depth.
bool lies_in(const std::set<std::string, std::less<>>& folders, std::string_view path);

}  // namespace shw

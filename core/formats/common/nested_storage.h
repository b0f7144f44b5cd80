// Storages of torch inside other pickles: pickle.dump of a tensor calls
// torch.storage._load_from_bytes with a whole file of torch.save, which torch then unpickles.
#pragma once

#include <string_view>

#include "core/base/bytes.h"
#include "core/formats/pickle/pickle_tree.h"

namespace shw {

inline constexpr std::string_view kNestedLoad = "torch.storage._load_from_bytes";

bool is_nested_storage(const PickleTree& tree, NodeId node);

// True if the file of torch.save before zip names the class of its storage alone, so that loading
// it runs nothing.
bool names_only_a_storage(BytesView nested);

// True if that holds for each nested file.
bool are_nested_storages_plain(const PickleTree& tree);

}  // namespace shw

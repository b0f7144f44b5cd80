// Opens several folders as one checkpoint: the components of a pipeline, or a model and its
// optimizer. Chunks keep their codecs and files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/format_row.h"

namespace shw {

// The name and path that an entry gets in the whole, in place of a prefix.
struct NewEntryName {
  std::string fqn;
  std::vector<PathPart> path = {};
};
struct JoinedPart {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::string folder;                // "" for the top folder
  std::string prefix;                // prefix of its tensor names
  std::set<TensorId> left_out = {};  // of its tensors, those to omit
  std::set<std::size_t> left_out_objects = {};
  std::map<std::string, NewEntryName, std::less<>> new_names = {};  // by name in the part
  // Entries that no file has: names, and opcodes of values.
  std::vector<std::pair<NewEntryName, std::string>> added_entries = {};
};

enum class JoinedFrom : std::uint8_t { kFolders, kComputation };
// kUnsupported if two parts have a tensor of the same name.
OpenedCheckpoint join_folders(std::shared_ptr<const Directory> around,
                              const std::vector<JoinedPart>& parts,
                              JoinedFrom from = JoinedFrom::kFolders);
// Opens the parts as one checkpoint of `format`, whose items are those of torch.save, with the
// provenance of the first part.
OpenedCheckpoint join_folders_as(const Format& format, std::shared_ptr<const Directory> around,
                                 const std::vector<JoinedPart>& parts);

}  // namespace shw

// What the pickles of many files of one checkpoint would do, each said once: a thousand ranks write
// the same classes.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/formats/common/pickle.h"
#include "core/formats/common/zip.h"
#include "core/model/finding.h"

namespace shw {

struct PickleNotes {
  std::set<std::string> classes = {};  // what pickles import, one text for each set of names
  std::vector<Finding> findings = {};
};

// Imports that are not data, and what Python refuses.
void note_pickle(const PickleTree& tree, const std::string& path, PickleNotes& notes);
// The first storage that the pickle of a file of torch.save names, and that is not in it as it
// should be: torch.load makes all of them, whether or not a tensor keeps them.
void note_storages(const ZipReader& zip, const PickleTree& tree, const std::string& path,
                   PickleNotes& notes);

}  // namespace shw

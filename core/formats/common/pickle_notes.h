// What the pickles of many files of one checkpoint would do, each said once: a thousand ranks write
// the same classes.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/formats/common/pickle.h"
#include "core/io/source.h"
#include "core/model/finding.h"

namespace shw {

struct PickleNotes {
  std::set<std::string> classes = {};  // what pickles import, one text for each set of names
  std::vector<Finding> findings = {};
};

// Imports that are not data, and what Python refuses.
void note_pickle(const PickleTree& tree, const std::string& path, PickleNotes& notes);
// The same of a file of torch.save, and the records in it that are gone or changed.
Status note_torch_file(const std::shared_ptr<const ByteSource>& source, const std::string& path,
                       PickleNotes& notes);

}  // namespace shw

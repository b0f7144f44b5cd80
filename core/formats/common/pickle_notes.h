// Findings about the pickles of many files of one checkpoint, each reported once: a thousand ranks
// write the same classes.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/formats/pickle/pickle.h"
#include "core/formats/zip/zip.h"
#include "core/model/finding.h"

namespace shw {

struct PickleFindings {
  std::set<std::string> classes = {};  // what pickles import, one text for each set of names
  std::vector<Finding> findings = {};
};

// Reports imports that are not data, and content that Python refuses.
void report_pickle(const PickleTree& tree, const std::string& path, PickleFindings& notes);
// Reports the first storage that the pickle names but that is missing or wrong in the file:
// torch.load creates all of them, even if no tensor uses them.
void report_missing_storages(const ZipReader& zip, const PickleTree& tree, const std::string& path,
                             PickleFindings& notes);

}  // namespace shw

#include "core/formats/common/pickle_notes.h"

#include <fmt/core.h>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/pickle/pickle_safety.h"

namespace shw {
namespace {

// All imports of a pickle as one text; files of one kind have equal ones.
std::string imports_of(const PickleTree& tree) {
  std::string text;
  for (const PickleGlobal& global : tree.globals())
    text += global.module + "." + global.name + "\n";
  return text;
}

}  // namespace

void report_pickle(const PickleTree& tree, const std::string& path, PickleFindings& notes) {
  if (notes.classes.insert(imports_of(tree)).second) {
    for (Finding& finding : unsafe_pickle_findings(tree, path, PickleFileContent::kPrograms))
      notes.findings.push_back(std::move(finding));
  }
  if (!tree.refused()) return;
  Finding finding{.rule = "bad-record", .subjects = {path}};
  finding.cause = fmt::format("Python cannot load {}: {} at byte {}.", path, tree.refused()->what,
                              human_count(tree.refused()->at));
  notes.findings.push_back(std::move(finding));
}

void report_missing_storages(const ZipReader& zip, const PickleTree& tree, const std::string& path,
                             PickleFindings& notes) {
  if (auto all = check_storages(zip, tree); !all)
    notes.findings.push_back(bad_record_finding(path,
                                                "In " + path + ": " + all.error().message + ".",
                                                all.error().place.offset.value_or(0)));
}

}  // namespace shw

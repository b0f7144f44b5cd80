#include "core/formats/common/pickle_notes.h"

#include <fmt/core.h>

#include "core/base/words.h"
#include "core/formats/common/pickle_safety.h"
#include "core/formats/common/torch_file_records.h"
#include "core/formats/common/torch_item.h"

namespace shw {
namespace {

// Metadata of 100,000 parameters takes about 20 MB of pickle.
constexpr std::uint64_t kMaxNotedPickle = std::uint64_t{1} << 30;
constexpr PickleLimits kNotedLimits{1u << 27, 200, 1u << 14};

// All imports of a pickle as one text; files of one kind have equal ones.
std::string imports_of(const PickleTree& tree) {
  std::string text;
  for (const PickleGlobal& global : tree.globals())
    text += global.module + "." + global.name + "\n";
  return text;
}

}  // namespace

void note_pickle(const PickleTree& tree, const std::string& path, PickleNotes& notes) {
  if (notes.classes.insert(imports_of(tree)).second) {
    for (Finding& finding : unsafe_pickle_findings(tree, path, PickleOf::kPrograms))
      notes.findings.push_back(std::move(finding));
  }
  if (!tree.refused()) return;
  Finding finding;
  finding.rule = "bad-record";
  finding.subjects = {path};
  finding.cause = fmt::format("Python cannot load {}: {} at byte {}.", path, tree.refused()->what,
                              human_count(tree.refused()->at));
  notes.findings.push_back(std::move(finding));
}

Status note_torch_file(const std::shared_ptr<const ByteSource>& source, const std::string& path,
                       PickleNotes& notes) {
  SHW_TRY(ZipReader zip, open_torch_records(source));
  SHW_TRY(Bytes pickle, read_pickle_record(zip, kMaxNotedPickle));
  SHW_TRY(std::uint64_t pickle_at, zip.data_offset(*zip.find("data.pkl")));
  SHW_TRY(PickleTree tree, decode_pickle(pickle, source->name(), pickle_at, kNotedLimits));
  for (Finding& finding : record_findings(zip, path)) notes.findings.push_back(std::move(finding));
  note_pickle(tree, path, notes);
  return {};
}

}  // namespace shw

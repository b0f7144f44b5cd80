#include "core/formats/common/torch_file_with_findings.h"

#include <fmt/core.h>

#include <map>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/torch_file_records.h"
#include "core/model/state_path.h"

namespace shw {

Result<OpenedTorchFile> open_torch_file_with_findings(const Directory& directory,
                                                      const std::string& path,
                                                      PickleFindings& notes) {
  SHW_TRY(auto source, directory.open(path));
  SHW_TRY(OpenedTorchFile side, open_and_decode_torch_file(std::move(source)));
  for (Finding& finding : record_findings(side.zip, path))
    notes.findings.push_back(std::move(finding));
  report_pickle(side.tree, path, notes);
  return side;
}

namespace {

constexpr std::size_t kMaxReasons = 32;

// Reports tensors that are unreadable because of damage, one finding per reason, and removes them
// from `file.unreadable`; unsupported tensors stay in it.
bool report_damaged_tensors(SideFile& file, const std::string& path, PickleFindings& notes) {
  std::map<std::string, std::pair<std::vector<std::string>, std::optional<std::uint64_t>>> damaged;
  for (const UnreadableTensor& one : file.unreadable) {
    if (one.error.kind != ErrorKind::kDamaged) continue;
    auto& [names, at] = damaged[one.error.message];
    if (names.empty()) at = one.error.place.offset;
    names.push_back(dotted_path(one.path));
  }
  std::erase_if(file.unreadable,
                [](const UnreadableTensor& one) { return one.error.kind == ErrorKind::kDamaged; });
  std::size_t noted = 0;
  for (auto& [reason, one] : damaged) {
    auto& [names, at] = one;
    if (++noted > kMaxReasons) break;
    Finding finding = bad_record_finding(
        path, fmt::format("{} in {} cannot be read: {}.", short_list_text(names), path, reason),
        at);
    finding.evidence.emplace_back("count", static_cast<std::int64_t>(names.size()));
    notes.findings.push_back(std::move(finding));
  }
  return !damaged.empty();
}

}  // namespace

Result<SideFile> tensors_with_findings(const OpenedTorchFile& side, const std::string& path,
                                       PickleFindings& notes) {
  SHW_TRY(SideFile file, tensors_of_torch_file(side));
  const bool is_damaged = report_damaged_tensors(file, path, notes);
  if (!is_damaged && file.unreadable.empty())
    report_missing_storages(side.zip, side.tree, path, notes);
  return file;
}

Result<SideFile> read_torch_file_with_findings(const Directory& directory, const std::string& path,
                                               PickleFindings& notes) {
  SHW_TRY(OpenedTorchFile side, open_torch_file_with_findings(directory, path, notes));
  return tensors_with_findings(side, path, notes);
}

}  // namespace shw

#include "core/formats/common/truncated_archives.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/zip/zip.h"

namespace shw {
namespace {

constexpr std::size_t kMaxArchives = 64;

// The error of an archive without its end; nullopt for whole ones and for other files.
std::optional<Error> truncated_archive_error(const Directory& directory, const std::string& path) {
  constexpr std::string_view kBegin = "PK\x03\x04";
  auto source = directory.open(path);
  if (!source || (*source)->size() < kBegin.size()) return std::nullopt;
  const auto begin = read_bytes(**source, 0, kBegin.size());
  if (!begin || !same_bytes(*begin, std::as_bytes(std::span(kBegin)))) return std::nullopt;
  const std::uint64_t size = (*source)->size();
  auto zip = ZipReader::open(std::move(*source), 0, size);
  if (zip || zip.error().kind != ErrorKind::kDamaged) return std::nullopt;
  return std::move(zip).error();
}

}  // namespace

std::optional<Finding> truncated_archives_finding(const Directory& directory,
                                                  std::span<const std::string> files) {
  std::vector<std::string> cut;
  std::string reason;
  for (const std::string& path : files.first(std::min(files.size(), kMaxArchives))) {
    const auto error = truncated_archive_error(directory, path);
    if (!error) continue;
    if (cut.empty()) reason = error->message;
    cut.push_back(path);
  }
  if (cut.empty()) return std::nullopt;
  Finding finding = bad_record_finding(
      cut.front(), fmt::format("{} cannot be loaded: {}. The tensors that were opened are in "
                               "another file and do not need {}.",
                               short_list_text(cut), reason, cut.size() == 1 ? "it" : "them"));
  finding.rule = "side-file";
  finding.severity = Severity::kWarning;
  finding.subjects = std::move(cut);
  return finding;
}

}  // namespace shw

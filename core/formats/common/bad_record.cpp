#include "core/formats/common/bad_record.h"

#include <fmt/core.h>

#include <utility>

#include "core/base/words.h"

namespace shw {

Finding bad_record_finding(std::string subject, std::string cause,
                           std::optional<std::uint64_t> at) {
  Finding finding{.rule = "bad-record"};
  finding.cause = std::move(cause);
  if (at) finding.evidence.emplace_back("offset", static_cast<std::int64_t>(*at));
  finding.subjects.push_back(std::move(subject));
  return finding;
}

Finding unread_file_finding(const std::string& path, const Error& error,
                            std::vector<std::string> names, std::string_view noun) {
  std::string cause = path + ": " + error.message + ". ";
  if (names.empty())
    cause += "Its contents are not known.";
  else
    cause += fmt::format("{} that the index lists in it ({}) cannot be read.",
                         plural(names.size(), noun), short_list_text(names));
  Finding finding = bad_record_finding(path, std::move(cause), error.place.offset);
  finding.evidence.emplace_back("unread_file", path);
  if (error.kind == ErrorKind::kIo) {  // nothing was seen of its bytes
    finding.rule = "not-looked-at";
    finding.severity = Severity::kInfo;
  }
  finding.subjects.insert(finding.subjects.end(), names.begin(), names.end());
  return finding;
}

}  // namespace shw

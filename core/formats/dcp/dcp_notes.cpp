#include "core/formats/dcp/dcp_notes.h"

#include <fmt/core.h>

#include <algorithm>

#include <utility>

#include "core/base/words.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxNotes = 100;

}  // namespace

RecordFindings::~RecordFindings() {
  if (count_ <= kMaxNotes) return;
  Finding rest{.rule = "bad-record", .severity = Severity::kError, .subjects = {file_}};
  rest.cause = human_count(count_ - kMaxNotes) + " more records could not be used.";
  rest.evidence.emplace_back("more", static_cast<std::int64_t>(count_ - kMaxNotes));
  builder_.add_finding(std::move(rest));
}

void RecordFindings::add(Severity severity, std::string_view subject, std::uint64_t at,
                         std::string cause) {
  if (++count_ > kMaxNotes) return;
  Finding finding{.rule = "bad-record",
                  .severity = severity,
                  .subjects = {subject.empty() ? file_ : std::string(subject)}};
  finding.cause = std::move(cause);
  finding.evidence.emplace_back("file", file_);
  finding.evidence.emplace_back("offset", static_cast<std::int64_t>(at));
  builder_.add_finding(std::move(finding));
}

std::optional<Finding> custom_record_finding(const PickleTree& tree, const std::string& file) {
  const auto globals = tree.globals();
  // torch's fields differ between versions and backports.
  const auto own = std::find_if(globals.begin(), globals.end(), [](const PickleGlobal& one) {
    return one.name == "_StorageInfo" && one.module.find("torch") == std::string::npos &&
           one.module.find("backport") == std::string::npos;
  });
  if (own == globals.end()) return std::nullopt;
  Finding finding{.rule = "portability", .severity = Severity::kInfo, .subjects = {file}};
  finding.cause = fmt::format(
      "Its storage records have the class {}.{} of another library: torch needs that library to "
      "load them, and torch 2.15 fails at the field transform_descriptors. They have torch's three "
      "fields, which were read.",
      own->module, own->name);
  finding.evidence = {{"record_class", own->module + "." + own->name}};
  finding.remedy = Remedy{"rewrite-metadata", true,
                          "Rewrite .metadata with torch's record class; no tensor byte moves."};
  return finding;
}

}  // namespace shw

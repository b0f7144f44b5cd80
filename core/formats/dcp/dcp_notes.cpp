#include "core/formats/dcp/dcp_notes.h"

#include <utility>

#include "core/base/words.h"

namespace shw {
namespace {

constexpr std::uint64_t kMostNotes = 100;

}  // namespace

RecordNotes::~RecordNotes() {
  if (count_ <= kMostNotes) return;
  Finding rest;
  rest.rule = "bad-record";
  rest.severity = Severity::kError;
  rest.subjects = {file_};
  rest.cause = human_count(count_ - kMostNotes) + " more records could not be used.";
  rest.evidence.emplace_back("more", static_cast<std::int64_t>(count_ - kMostNotes));
  builder_.add_finding(std::move(rest));
}

void RecordNotes::add(Severity severity, std::string_view subject, std::uint64_t at,
                      std::string cause) {
  if (++count_ > kMostNotes) return;
  Finding finding;
  finding.rule = "bad-record";
  finding.severity = severity;
  finding.subjects = {subject.empty() ? file_ : std::string(subject)};
  finding.cause = std::move(cause);
  finding.evidence.emplace_back("file", file_);
  finding.evidence.emplace_back("offset", static_cast<std::int64_t>(at));
  builder_.add_finding(std::move(finding));
}

}  // namespace shw

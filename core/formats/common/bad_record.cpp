#include "core/formats/common/bad_record.h"

#include <utility>

namespace shw {

Finding bad_record(std::string subject, std::string cause, std::optional<std::uint64_t> at) {
  Finding finding;
  finding.rule = "bad-record";
  finding.cause = std::move(cause);
  if (at) finding.evidence.emplace_back("offset", static_cast<std::int64_t>(*at));
  finding.subjects.push_back(std::move(subject));
  return finding;
}

}  // namespace shw

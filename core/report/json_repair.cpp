#include "core/report/json.h"
#include "core/report/report.h"

namespace shw {

std::string repair_to_json(const RepairResult& result, std::span<const Finding> remaining) {
  Json left = Json::array();
  for (const Finding& finding : remaining) left.push_back(finding_json(finding));
  return dumped({{"schema", kSchema},
                 {"output", result.output},
                 {"certificate", result.certificate},
                 {"lossless", result.lossless},
                 {"remaining", std::move(left)}});
}

std::string finished_to_json(const RepairResult& result) {
  return dumped({{"schema", kSchema},
                 {"output", result.output},
                 {"certificate", result.certificate},
                 {"lossless", result.lossless}});
}

std::string verify_to_json(const VerifyReport& report) {
  return dumped({{"schema", kSchema},
                 {"verdict", name(report.outcome)},
                 {"reasons", report.reasons},
                 {"tensors", report.tensors},
                 {"kept", report.kept},
                 {"lost", report.lost}});
}

}  // namespace shw

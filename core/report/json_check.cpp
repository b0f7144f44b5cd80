#include <cmath>

#include "core/base/version.h"
#include "core/report/ci_forms.h"
#include "core/report/json.h"
#include "core/report/report.h"
#include "core/rules/damage.h"
#include "core/rules/unreadable.h"

namespace shw {
namespace {

std::string_view severity_word(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kInfo:
      break;
  }
  return "info";
}

struct EvidenceToJson {
  Json operator()(const Extents& value) const { return json_of(ExtentsView(value)); }
  Json operator()(const std::vector<Box>& value) const {
    Json list = Json::array();
    for (const Box& box : value) list.push_back(json_of(box));
    return list;
  }
  // JSON has no NaN or infinity, and null would mean "not measured".
  Json operator()(double value) const {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return value;
  }
  template <class Plain>
  Json operator()(const Plain& value) const {
    return value;
  }
};

}  // namespace

Json finding_json(const Finding& finding) {
  Json remedy = nullptr;
  if (finding.remedy) {
    remedy = {{"kind", finding.remedy->kind},
              {"lossless", finding.remedy->lossless},
              {"text", finding.remedy->text}};
  }
  Json out = {{"rule", finding.rule},
              {"severity", severity_word(finding.severity)},
              {"consequence", name(finding.consequence)},
              {"subjects", finding.subjects},
              {"cause", finding.cause},
              {"evidence", json_of(finding.evidence)},
              {"remedy", std::move(remedy)}};
  if (!finding.link.empty()) out["link"] = finding.link;
  return out;
}

Json json_of(const Evidence& evidence) {
  Json json = Json::object();
  for (const auto& [key, value] : evidence) {
    json[key] = std::visit(EvidenceToJson{}, value);
  }
  return json;
}

std::string check_to_json(const CheckReport& report) {
  return check_to_json(report, CheckContext{});
}

std::string check_to_json(const CheckReport& report, const CheckContext& context) {
  Json findings = Json::array(), unjudged = Json::array();
  for (const Unjudged& one : report.unjudged) {
    unjudged.push_back({{"what", one.what}, {"needs", one.needs}});
    if (!one.hint.empty()) unjudged.back()["hint"] = one.hint;
  }
  std::size_t known = 0;
  for (const Finding& finding : report.findings) {
    findings.push_back(finding_json(finding));
    if (context.baseline == nullptr || !is_known(*context.baseline, finding)) continue;
    findings.back()["known"] = true;
    ++known;
  }
  Json out = {{"schema", kJsonSchema},           {"verdict", name(report.verdict)},
              {"depth", name(report.depth)},     {"deeper", report.deeper},
              {"findings", std::move(findings)}, {"unjudged", std::move(unjudged)}};
  const Unreadable gone = context.checkpoint != nullptr
                              ? unreadable_in(*context.checkpoint, report.findings)
                              : unreadable_in(report.findings);
  if (!gone.is_none())
    out["unreadable"] = {{"elements", gone.elements},
                         {"tensors", gone.tensors},
                         {"damaged_elements", gone.damaged_elements},
                         {"damaged_tensors", gone.damaged_tensors}};
  if (context.checkpoint != nullptr) {
    const AffectedCounts counts = affected_by(*context.checkpoint, report.findings);
    if (counts.causes != 0)
      out["affected"] = {
          {"causes", counts.causes}, {"tensors", counts.tensors}, {"files", counts.files}};
  }
  if (context.baseline != nullptr)
    out["baseline"] = {{"file", context.baseline_file},
                       {"known", known},
                       {"new", report.findings.size() - known},
                       {"gone", fixed_since(*context.baseline, report)}};
  for (const PolicyAnswer& policy : context.policies)
    out["policy"].push_back({{"require", policy.require},
                             {"verdict", name(policy.verdict)},
                             {"why", policy.why},
                             {"subjects", policy.subjects}});
  return dumped(out);
}

const char* error_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "usage";
    case ErrorKind::kNotFound:
      return "not_found";
    case ErrorKind::kIo:
      return "system_refused";
    case ErrorKind::kDamaged:
      return "damaged";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kCancelled:
      return "cancelled";
  }
  return "damaged";
}

Json error_json(const Error& error) {
  Json inner = {{"code", error_code(error.kind)},
                {"message", error.message},
                {"file", nullptr},
                {"offset", nullptr}};
  if (!error.place.file.empty()) inner["file"] = error.place.file;
  if (error.place.offset) inner["offset"] = *error.place.offset;
  if (!error.place.tensor.empty()) inner["tensor"] = error.place.tensor;
  if (!error.advice.empty()) inner["advice"] = error.advice;
  return inner;
}

std::string error_to_json(const Error& error) {
  return dumped({{"schema", kJsonSchema}, {"error", error_json(error)}});
}

}  // namespace shw

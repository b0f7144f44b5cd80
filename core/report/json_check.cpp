#include <cmath>

#include "core/base/version.h"
#include "core/report/check_members.h"
#include "core/report/ci_forms.h"
#include "core/report/json.h"
#include "core/report/report.h"
#include "core/rules/damage.h"
#include "core/rules/unreadable.h"

namespace shw {
namespace {

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

// Collects the members of a value as an object.
struct MemberWriter {
  Json out = Json::object();

  template <class T>
  void operator()(const char* key, const T& member) {
    out[key] = json_of_member(member);
  }
  template <class T>
  void optional(const char* key, const T& member) {
    if (member != T{}) (*this)(key, member);
  }

  static const std::string& json_of_member(const std::string& text) { return text; }
  static bool json_of_member(bool value) { return value; }
  static Json json_of_member(const std::vector<std::string>& texts) { return texts; }
  static Json json_of_member(const Evidence& evidence) { return json_of(evidence); }
  template <class Enum>
  requires std::is_enum_v<Enum>
  static std::string_view json_of_member(Enum value) { return name(value); }
  template <class T>
  static Json json_of_member(const std::optional<T>& value) {
    return value ? json_of_member(*value) : Json(nullptr);
  }
  template <class T>
  requires requires(const T& value, MemberWriter& writer) { for_each_member(value, writer); }
  static Json json_of_member(const T& value) {
    MemberWriter writer;
    for_each_member(value, writer);
    return std::move(writer.out);
  }
  template <class T>
  requires(!std::same_as<T, std::string>) static Json json_of_member(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(json_of_member(value));
    return list;
  }
};

}  // namespace

Json finding_json(const Finding& finding) {
  return MemberWriter::json_of_member(finding);
}

Json json_of(const Evidence& evidence) {
  Json json = Json::object();
  for (const auto& [key, value] : evidence) {
    json[key] = std::visit(EvidenceToJson{}, value);
  }
  return json;
}

std::string finding_to_json(const Finding& finding) {
  return pretty_json_line(finding_json(finding));
}

std::string check_to_json(const CheckReport& report) {
  return check_to_json(report, CheckContext{});
}

std::string check_to_json(const CheckReport& report, const CheckContext& context) {
  MemberWriter writer{{{"schema", kJsonSchema}}};
  for_each_member(report, writer);
  Json out = std::move(writer.out);
  std::size_t known = 0;
  for (std::size_t i = 0; context.baseline != nullptr && i < report.findings.size(); ++i) {
    if (!is_known(*context.baseline, report.findings[i])) continue;
    out["findings"][i]["known"] = true;
    ++known;
  }
  const Unreadable gone = context.checkpoint != nullptr
                              ? unreadable_in(*context.checkpoint, report.findings)
                              : unreadable_in(report.findings);
  if (!gone.is_none())
    out["unreadable"] = {{"elements", gone.elements},
                         {"tensors", gone.tensors},
                         {"damaged_elements", gone.damaged_elements},
                         {"damaged_tensors", gone.damaged_tensors}};
  if (context.checkpoint != nullptr) {
    const AffectedCounts counts = count_affected_by_findings(*context.checkpoint, report.findings);
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
  return pretty_json_line(out);
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
  return pretty_json_line({{"schema", kJsonSchema}, {"error", error_json(error)}});
}

}  // namespace shw

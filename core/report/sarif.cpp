// SARIF 2.1.0 (OASIS): https://docs.oasis-open.org/sarif/sarif/v2.1.0/
#include <algorithm>
#include <map>

#include "core/base/hash.h"
#include "core/report/ci_forms.h"
#include "core/report/json.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr const char* kSarifSchema =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
// Viewers show only a few; the total number is in the properties.
constexpr std::size_t kMaxLocations = 100;

const char* sarif_level(Severity severity) {
  if (severity == Severity::kError) return "error";
  return severity == Severity::kWarning ? "warning" : "note";
}

// A path as a URI reference (RFC 3986): percent-encoded except unreserved characters and slashes.
std::string uri_of(const std::string& path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out = path.starts_with('/') ? "file://" : "";
  for (char c : path) {
    auto byte = static_cast<unsigned char>(c);
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 std::string_view("-._~/").find(c) != std::string_view::npos;
    if (plain) {
      out += c;
      continue;
    }
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

bool is_file_of(const Checkpoint& checkpoint, const std::string& subject) {
  return std::any_of(checkpoint.files().begin(), checkpoint.files().end(),
                     [&](const FileRow& file) { return file.path == subject; });
}

// Code scanning requires a file, so findings about tensors are located at the checkpoint.
Json location_of(const Checkpoint& checkpoint, const std::string& path,
                 const std::string& subject) {
  const std::string folder = path.ends_with('/') ? path : path + "/";
  bool is_tensor = checkpoint.find(subject).has_value();
  bool is_file = !is_tensor && is_file_of(checkpoint, subject);
  Json location = {{"physicalLocation",
                    {{"artifactLocation", {{"uri", uri_of(is_file ? folder + subject : path)}}}}}};
  if (!is_file && !subject.empty()) {
    Json logical = {{"fullyQualifiedName", subject}};
    if (is_tensor) logical["kind"] = "variable";
    location["logicalLocations"] = Json::array({std::move(logical)});
  }
  return location;
}

std::string sarif_fingerprint(const Finding& finding) {
  RunningHash hash;
  auto add = [&](const std::string& text) {
    hash.add(std::as_bytes(std::span(text.c_str(), text.size() + 1)));  // with its 0
  };
  add(finding.rule);
  for (const std::string& subject : finding.subjects) add(subject);
  return hash.text();
}

Json rule_descriptor(const Rule& rule) {
  Json out = {{"id", std::string(rule.id)},
              {"shortDescription", {{"text", std::string(rule.title)}}},
              {"fullDescription", {{"text", std::string(rule.teaches)}}}};
  if (!rule.lesson.remedy.empty()) out["help"] = {{"text", std::string(rule.lesson.remedy)}};
  if (rule.lesson.link.starts_with("https://")) out["helpUri"] = std::string(rule.lesson.link);
  return out;
}

Json sarif_result(const Checkpoint& checkpoint, const Finding& finding, const CheckContext& context,
                  std::size_t rule_index) {
  std::string message = finding.cause;
  if (finding.remedy) message += " " + finding.remedy->text;
  Json locations = Json::array();
  for (std::size_t i = 0; i < std::min(finding.subjects.size(), kMaxLocations); ++i)
    locations.push_back(location_of(checkpoint, context.path, finding.subjects[i]));
  if (locations.empty()) locations.push_back(location_of(checkpoint, context.path, ""));
  // SARIF allows levels only for kind "fail" (3.27.10); a notification carries the warning.
  bool open = rule_of(finding).leaves_undecided;
  Json out = {{"ruleId", finding.rule},
              {"ruleIndex", rule_index},
              {"kind", open ? "open" : "fail"},
              {"level", open ? "none" : sarif_level(finding.severity)},
              {"message", {{"text", std::move(message)}}},
              {"locations", std::move(locations)},
              {"partialFingerprints", {{"shardwright/v1", sarif_fingerprint(finding)}}}};
  if (context.baseline != nullptr)
    out["baselineState"] = is_known(*context.baseline, finding) ? "unchanged" : "new";
  out["properties"] = {{"consequence", name(finding.consequence)},
                       {"subjects", finding.subjects.size()},
                       {"evidence", json_of(finding.evidence)}};
  return out;
}

// SARIF also represents policies that are met, as kind "pass".
Json policy_result(const Checkpoint& checkpoint, const PolicyAnswer& policy,
                   const CheckContext& context, std::size_t rule_index) {
  bool broken = policy.verdict == PolicyVerdict::kBroken;
  const char* kind = broken ? "fail" : policy.verdict == PolicyVerdict::kMet ? "pass" : "open";
  Json locations = Json::array();
  for (std::size_t i = 0; i < std::min(policy.subjects.size(), kMaxLocations); ++i)
    locations.push_back(location_of(checkpoint, context.path, policy.subjects[i]));
  if (locations.empty()) locations.push_back(location_of(checkpoint, context.path, ""));
  return {{"ruleId", "require/" + policy.require},
          {"ruleIndex", rule_index},
          {"kind", kind},
          {"level", broken ? "error" : "none"},
          {"message", {{"text", policy.why + "."}}},
          {"locations", std::move(locations)}};
}

Json notification(const std::string& id, const std::string& text) {
  return {{"descriptor", {{"id", id}}}, {"level", "warning"}, {"message", {{"text", text}}}};
}

// Undecided findings, even if in the baseline: otherwise the run would look
// clean.
Json notifications_of(const CheckReport& report, const CheckContext& context) {
  Json out = Json::array();
  for (const Finding& finding : report.findings) {
    if (rule_of(finding).leaves_undecided) out.push_back(notification(finding.rule, finding.cause));
  }
  for (const PolicyAnswer& policy : context.policies) {
    if (policy.verdict == PolicyVerdict::kUndecided)
      out.push_back(notification("require/" + policy.require, policy.why + "."));
  }
  return out;
}

// executionSuccessful is false if something is undecided.
Json invocation_of(const CheckReport& report, const CheckContext& context) {
  Json notes = notifications_of(report, context);
  Json out = {{"executionSuccessful", notes.empty()}};
  if (!context.command.empty()) out["commandLine"] = context.command;
  if (!notes.empty()) out["toolExecutionNotifications"] = std::move(notes);
  return out;
}

std::string sarif_of(Json run) {
  return pretty_json_line(
      {{"$schema", kSarifSchema}, {"version", "2.1.0"}, {"runs", Json::array({std::move(run)})}});
}

}  // namespace

std::string report_sarif(const Checkpoint& checkpoint, const CheckReport& report,
                         const CheckContext& context) {
  Json rules = Json::array(), results = Json::array();
  std::map<std::string, std::size_t> index;
  for (const Finding& finding : report.findings) {
    auto [found, is_new] = index.try_emplace(finding.rule, rules.size());
    if (is_new) rules.push_back(rule_descriptor(rule_of(finding)));
    results.push_back(sarif_result(checkpoint, finding, context, found->second));
  }
  for (const PolicyAnswer& policy : context.policies) {
    rules.push_back({{"id", "require/" + policy.require},
                     {"shortDescription", {{"text", "Required: " + policy.require}}}});
    results.push_back(policy_result(checkpoint, policy, context, rules.size() - 1));
  }
  Json unjudged = Json::array();
  for (const Unjudged& one : report.unjudged)
    unjudged.push_back({{"what", one.what}, {"needs", one.needs}});
  Json run = {{"tool", {{"driver", {{"name", "shardwright"}, {"rules", std::move(rules)}}}}},
              {"invocations", Json::array({invocation_of(report, context)})},
              {"columnKind", "utf16CodeUnits"},
              {"results", std::move(results)},
              {"properties",
               {{"verdict", name(report.verdict)},
                {"depth", name(report.depth)},
                {"unjudged", std::move(unjudged)}}}};
  return sarif_of(std::move(run));
}

std::string failed_sarif(const std::string& error, const CheckContext& context) {
  Json note = {
      {"descriptor", {{"id", "failed"}}}, {"level", "error"}, {"message", {{"text", error}}}};
  Json invocation = {{"executionSuccessful", false},
                     {"toolExecutionNotifications", Json::array({std::move(note)})}};
  if (!context.command.empty()) invocation["commandLine"] = context.command;
  return sarif_of({{"tool", {{"driver", {{"name", "shardwright"}, {"rules", Json::array()}}}}},
                   {"invocations", Json::array({std::move(invocation)})},
                   {"columnKind", "utf16CodeUnits"},
                   {"results", Json::array()},
                   {"properties", {{"verdict", "undecided"}}}});
}

}  // namespace shw

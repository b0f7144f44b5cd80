#include "core/report/baseline.h"

#include <algorithm>

#include "core/report/json.h"

namespace shw {
namespace {

std::optional<Severity> severity_of(const Json& finding) {
  const std::string word = finding.value("severity", "");
  if (word == "error") return Severity::kError;
  if (word == "warning") return Severity::kWarning;
  return word == "info" ? std::optional(Severity::kInfo) : std::nullopt;
}

void keep_gravest(Baseline& baseline, std::string rule, std::string subject, Severity severity) {
  auto [found, is_new] =
      baseline.known.try_emplace({std::move(rule), std::move(subject)}, severity);
  if (!is_new) found->second = std::max(found->second, severity);
}

std::vector<std::string> keys_of(const Finding& finding) {
  return finding.subjects.empty() ? std::vector<std::string>{""} : finding.subjects;
}

bool is_list_of_text(const Json& json) {
  return json.is_array() &&
         std::all_of(json.begin(), json.end(), [](const Json& one) { return one.is_string(); });
}

}  // namespace

Result<Baseline> baseline_from_json(std::string_view text, const std::string& source) {
  auto refuse = [&] {
    return fail(ErrorKind::kUsage, "is no answer of `check --json`", {source},
                "make one: shardwright check CHECKPOINT --json > baseline.json");
  };
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("findings") || !json["findings"].is_array())
    return refuse();
  Baseline baseline;
  for (const Json& finding : json["findings"]) {
    bool readable = finding.is_object() && finding.contains("rule") &&
                    finding["rule"].is_string() && finding.contains("severity") &&
                    finding["severity"].is_string() && finding.contains("subjects") &&
                    is_list_of_text(finding["subjects"]);
    auto severity = readable ? severity_of(finding) : std::nullopt;
    if (!severity) return refuse();
    const std::string rule = finding["rule"].get<std::string>();
    if (finding["subjects"].empty()) keep_gravest(baseline, rule, "", *severity);
    for (const Json& subject : finding["subjects"])
      keep_gravest(baseline, rule, subject.get<std::string>(), *severity);
  }
  return baseline;
}

bool is_known(const Baseline& baseline, const Finding& finding) {
  const std::vector<std::string> keys = keys_of(finding);
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& subject) {
    auto found = baseline.known.find({finding.rule, subject});
    return found != baseline.known.end() && found->second >= finding.severity;
  });
}

std::vector<std::string> gone_since(const Baseline& baseline,
                                    const std::vector<Finding>& findings) {
  auto left = baseline.known;
  for (const Finding& finding : findings) {
    for (const std::string& subject : keys_of(finding)) left.erase({finding.rule, subject});
  }
  std::vector<std::string> gone;
  for (const auto& [key, severity] : left)
    gone.push_back(key.second.empty() ? key.first : key.first + ": " + key.second);
  return gone;
}

}  // namespace shw

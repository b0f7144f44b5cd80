#include "core/verbs/check_context.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/spelling.h"
#include "core/io/read_whole.h"

namespace shw::verbs {
namespace {

// Limit for baselines and policies, which are text files in repositories.
constexpr std::uint64_t kMostText = std::uint64_t{256} << 20;

// Splits at commas, blanks and brackets.
void add_words(std::string_view text, std::vector<std::string>& words) {
  constexpr std::string_view kBetween = " \t\r,[]\"'";
  while (true) {
    std::size_t begin = text.find_first_not_of(kBetween);
    if (begin == text.npos) return;
    std::size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

tl::unexpected<Error> no_policies(const std::string& source, const std::string& why) {
  return fail(ErrorKind::kUsage, why, {source},
              "write {\"require\": [\"coverage\", \"finite\", \"optimizer-complete\"]}");
}

Result<std::vector<std::string>> requirements_from_json(std::string_view text,
                                                        const std::string& source) {
  auto json = parse_json<nlohmann::json>(text).tree;
  if (!json.is_object() || !json.contains("require"))
    return no_policies(source, "is not an object with \"require\"");
  const auto& list = json["require"];
  bool is_list = list.is_array() && std::all_of(list.begin(), list.end(),
                                                [](const auto& one) { return one.is_string(); });
  if (!is_list) return no_policies(source, "\"require\" is not a list of names");
  return list.get<std::vector<std::string>>();
}

Result<std::vector<std::string>> policies_from_require_lines(std::string_view text,
                                                             const std::string& source) {
  constexpr std::string_view kWord = "require:";
  std::vector<std::string> words;
  while (!text.empty()) {
    std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == line.npos) continue;
    line.remove_prefix(begin);
    if (!line.starts_with(kWord))
      return no_policies(source, "has a line that does not begin with \"require:\"");
    add_words(line.substr(kWord.size()), words);
  }
  return words;
}

}  // namespace

Result<std::vector<std::string>> policies_from_text(std::string_view text,
                                                    const std::string& source) {
  std::size_t begin = text.find_first_not_of(" \t\r\n");
  bool is_json = begin != text.npos && text[begin] == '{';
  SHW_TRY(std::vector<std::string> words, is_json ? requirements_from_json(text, source)
                                                  : policies_from_require_lines(text, source));
  if (words.empty()) return no_policies(source, "requires nothing");
  for (const std::string& word : words) {
    if (std::find(std::begin(kPolicies), std::end(kPolicies), word) != std::end(kPolicies))
      continue;
    std::string meant = did_you_mean_text(did_you_mean(word, kPolicies, 2));
    return fail(ErrorKind::kUsage, "unknown policy \"" + word + "\"", {source},
                meant.empty() ? "use coverage, finite or optimizer-complete" : meant);
  }
  return words;
}

Result<CheckRequest> read_check_request(const std::string& baseline_file,
                                        const std::string& policy_file) {
  CheckRequest asked;
  if (!baseline_file.empty()) {
    SHW_TRY(std::string text, read_whole_text(baseline_file, kMostText));
    SHW_TRY(asked.baseline, baseline_from_json(text, baseline_file));
    asked.baseline_file = baseline_file;
  }
  if (!policy_file.empty()) {
    SHW_TRY(std::string text, read_whole_text(policy_file, kMostText));
    SHW_TRY(asked.required, policies_from_text(text, policy_file));
  }
  return asked;
}

Status judge(CheckRequest& asked, const Opened& opened, bool data, Progress* progress, Team* team) {
  SHW_TRY(asked.policies,
          evaluate_policies(*opened.checkpoint, asked.required, data, progress, team));
  return {};
}

bool must_fail_check(const CheckReport& report, const CheckRequest& asked,
                     std::optional<Severity> from) {
  bool broken =
      std::any_of(asked.policies.begin(), asked.policies.end(),
                  [](const PolicyAnswer& one) { return one.verdict == PolicyVerdict::kBroken; });
  if (broken) return true;
  return std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& finding) {
    bool known = asked.baseline && is_known(*asked.baseline, finding);
    return from && finding.severity >= *from && !known;
  });
}

bool is_open(const CheckReport& report, const CheckRequest& asked) {
  return has_unexamined_parts(report) ||
         std::any_of(asked.policies.begin(), asked.policies.end(), [](const PolicyAnswer& one) {
           return one.verdict == PolicyVerdict::kUndecided;
         });
}

}  // namespace shw::verbs

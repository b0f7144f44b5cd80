#include "core/report/baseline.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/base/version.h"
#include "core/report/check_members.h"

namespace shw {
namespace {

using Counts = std::vector<std::int64_t>;

Depth depth_in(const Json& answer) {
  for (Depth depth : {Depth::kMetadata, Depth::kHeaders}) {
    if (answer.contains("depth") && answer["depth"] == name(depth)) return depth;
  }
  return Depth::kData;  // unknown: the deepest, so that nothing is reported as gone too early
}

bool is_list_of_text(const Json& json) {
  return json.is_array() &&
         std::all_of(json.begin(), json.end(), [](const Json& one) { return one.is_string(); });
}

std::optional<std::int64_t> whole_number(const Json& json) {
  if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
  if (json.is_number_unsigned()) return narrow<std::int64_t>(json.get<std::uint64_t>());
  return json.is_number_integer() ? std::optional(json.get<std::int64_t>()) : std::nullopt;
}

// Empty if the evidence is neither a number nor a list of numbers.
std::optional<Counts> counts_in(const Json& evidence) {
  if (!evidence.is_array()) {
    auto one = whole_number(evidence);
    return one ? std::optional(Counts{*one}) : std::nullopt;
  }
  Counts counts;
  for (const Json& entry : evidence) {
    auto one = whole_number(entry);
    if (!one) return std::nullopt;
    counts.push_back(*one);
  }
  return counts;
}

struct CountsOfEvidence {
  std::optional<Counts> operator()(bool value) const { return Counts{value ? 1 : 0}; }
  std::optional<Counts> operator()(std::int64_t value) const { return Counts{value}; }
  std::optional<Counts> operator()(const Extents& value) const {
    return Counts(value.begin(), value.end());
  }
  template <class Other>
  std::optional<Counts> operator()(const Other&) const {
    return std::nullopt;
  }
};

// True for evidence where larger values are not worse: "total_kept_elements", "pairs_looked_at".
bool higher_is_better(std::string_view key) {
  constexpr std::string_view kWords[] = {"kept", "looked_at", "compared", "agree"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return key.find(word) != key.npos; });
}

// Compares number by number if both lists have the same length, else their sums.
bool has_no_higher_counts(const Counts& now, const Counts& before) {
  if (now.size() == before.size())
    return std::equal(now.begin(), now.end(), before.begin(), std::less_equal<>());
  auto sum = [](const Counts& counts) {
    return std::accumulate(counts.begin(), counts.end(), 0.0L);  // cannot overflow
  };
  return now.size() < before.size() && sum(now) <= sum(before);
}

bool is_inside(const Box& box, const Box& other) {
  if (box.sizes.size() != other.sizes.size()) return false;
  for (std::size_t d = 0; d < box.sizes.size(); ++d) {
    const bool fits = box.offsets[d] >= other.offsets[d] &&
                      box.offsets[d] + box.sizes[d] <= other.offsets[d] + other.sizes[d];
    if (!fits) return false;
  }
  return true;
}

// Splits "fc.weight: 8 of 32 elements" into the text without numbers, and the numbers.
std::pair<std::string, Counts> parted(std::string_view text) {
  std::pair<std::string, Counts> out;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] < '0' || text[i] > '9') {
      if (text[i] != ',') out.first += text[i];  // 1,024
      ++i;
      continue;
    }
    std::int64_t number = 0;
    for (; i < text.size() && ((text[i] >= '0' && text[i] <= '9') || text[i] == ','); ++i) {
      if (text[i] == ',') continue;
      number = checked_mul(number, std::int64_t{10}).value_or(INT64_MAX / 16);
      number = checked_add(number, std::int64_t{text[i] - '0'}).value_or(INT64_MAX / 16);
    }
    out.first += '#';
    out.second.push_back(number);
  }
  return out;
}

// Counts may be smaller than before. Places, in brackets, must have equal
// numbers.
bool has_no_new_counts(const std::string& now, const std::set<std::string>& before) {
  if (before.contains(now)) return true;
  const std::size_t colon = now.find(": ");
  if (colon == now.npos || now.find('[') != now.npos) return false;
  const auto said = parted(std::string_view(now).substr(colon));
  return std::any_of(before.begin(), before.end(), [&](const std::string& one) {
    if (one.compare(0, colon, now, 0, colon) != 0 || one.find('[') != one.npos) return false;
    const auto said_before = parted(std::string_view(one).substr(colon));
    return said.first == said_before.first && said.second.size() == said_before.second.size() &&
           has_no_higher_counts(said.second, said_before.second);
  });
}

// Checks that lost or wrong elements are within the boxes of the accepted finding.
struct IsWithinAcceptedBoxes {
  const AcceptedFinding& accepted;
  const std::string& key;

  bool operator()(const std::vector<Box>& boxes) const {
    auto before = accepted.boxes.find(key);
    return boxes.empty() ||
           (before != accepted.boxes.end() &&
            std::all_of(boxes.begin(), boxes.end(), [&](const Box& box) {
              return std::any_of(before->second.begin(), before->second.end(),
                                 [&](const Box& one) { return is_inside(box, one); });
            }));
  }
  bool operator()(const std::vector<std::string>& texts) const {
    auto before = accepted.texts.find(key);
    return texts.empty() || (before != accepted.texts.end() &&
                             std::all_of(texts.begin(), texts.end(), [&](const std::string& text) {
                               return has_no_new_counts(text, before->second);
                             }));
  }
  template <class Other>
  bool operator()(const Other&) const {
    return true;
  }
};

bool covers(const AcceptedFinding& accepted, const Finding& finding) {
  if (accepted.severity < finding.severity || accepted.consequence < finding.consequence)
    return false;
  bool about_all =
      std::all_of(finding.subjects.begin(), finding.subjects.end(),
                  [&](const std::string& subject) { return accepted.subjects.contains(subject); });
  if (!about_all || finding.subjects.empty() != accepted.subjects.empty()) return false;
  return std::all_of(finding.evidence.begin(), finding.evidence.end(), [&](const auto& evidence) {
    if (higher_is_better(evidence.first)) return true;
    if (!std::visit(IsWithinAcceptedBoxes{accepted, evidence.first}, evidence.second)) return false;
    auto now = std::visit(CountsOfEvidence{}, evidence.second);
    if (!now) return true;
    auto before = accepted.counts.find(evidence.first);
    if (before == accepted.counts.end()) return false;
    // "complete": an incomplete list is a lower bound.
    if (std::holds_alternative<bool>(evidence.second)) return *now == before->second;
    return has_no_higher_counts(*now, before->second);
  });
}

std::optional<AcceptedFinding> accepted_finding_from_json(const Json& finding) {
  bool readable = finding.is_object() && finding.contains("rule") && finding["rule"].is_string() &&
                  finding.contains("severity") && finding["severity"].is_string() &&
                  finding.contains("subjects") && is_list_of_text(finding["subjects"]) &&
                  finding.contains("evidence") && finding["evidence"].is_object();
  auto word = [&](const char* key) {
    return readable && finding.contains(key) && finding[key].is_string()
               ? finding[key].get<std::string>()
               : std::string();
  };
  auto severity = from_name<Severity>(word("severity"));
  auto consequence = from_name<Consequence>(word("consequence"));
  if (!severity || !consequence) return std::nullopt;
  AcceptedFinding out{*severity, *consequence, {}, {}, {}, {}};
  for (const Json& subject : finding["subjects"]) out.subjects.insert(subject.get<std::string>());
  for (const auto& [key, value] : finding["evidence"].items()) {
    if (auto counts = counts_in(value)) out.counts.emplace(key, std::move(*counts));
    if (auto boxes = boxes_from_json(value); boxes && !boxes->empty())
      out.boxes.emplace(key, std::move(*boxes));
    if (is_list_of_text(value)) out.texts.emplace(key, value.get<std::set<std::string>>());
  }
  return out;
}

// True if the same checks ran at the same depth or deeper.
bool is_at_least_as_thorough(const CheckReport& report, const Baseline& baseline) {
  if (report.depth < baseline.depth) return false;
  return std::all_of(report.unjudged.begin(), report.unjudged.end(),
                     [&](const Unjudged& one) { return baseline.needs.contains(one.needs); });
}

std::string place_key(const std::string& rule, const std::string& subject) {
  return rule + "\n" + subject;
}

void accept(Baseline& baseline, const std::string& rule, AcceptedFinding accepted) {
  auto& of_rule = baseline.accepted[rule];
  for (const std::string& subject : accepted.subjects)
    baseline.places[place_key(rule, subject)].push_back(of_rule.size());
  if (accepted.subjects.empty()) baseline.places[place_key(rule, "")].push_back(of_rule.size());
  of_rule.push_back(std::move(accepted));
}

// Accepted findings that contain the rarest of the finding's subjects; no others can contain all.
std::span<const std::size_t> candidates(const Baseline& baseline, const Finding& finding) {
  static const std::vector<std::string> kNoSubject{""};
  std::span<const std::size_t> fewest;
  bool is_first = true;
  for (const std::string& subject : finding.subjects.empty() ? kNoSubject : finding.subjects) {
    auto found = baseline.places.find(place_key(finding.rule, subject));
    if (found == baseline.places.end()) return {};
    if (is_first || found->second.size() < fewest.size()) fewest = found->second;
    is_first = false;
  }
  return fewest;
}

std::set<std::string> subjects_or_none(const std::set<std::string>& subjects) {
  return subjects.empty() ? std::set<std::string>{""} : subjects;
}

}  // namespace

Result<Baseline> baseline_from_json(std::string_view text, const std::string& source) {
  auto refuse = [&] {
    return fail(ErrorKind::kUsage, "is not an answer of `check --json`", {source},
                "make one: shardwright check CHECKPOINT --json > baseline.json");
  };
  Json json = parse_json<Json>(text).tree;
  if (!json.is_object() || !json.contains("findings") || !json["findings"].is_array())
    return refuse();
  if (json.contains("schema") && json["schema"] != kJsonSchema)
    return fail(ErrorKind::kUsage, "is of another version, which names what was found otherwise",
                {source}, "make it again: shardwright check CHECKPOINT --json > baseline.json");
  Baseline baseline;
  baseline.depth = depth_in(json);
  for (const Json& finding : json["findings"]) {
    auto accepted = accepted_finding_from_json(finding);
    if (!accepted) return refuse();
    accept(baseline, finding["rule"].get<std::string>(), std::move(*accepted));
  }
  if (!json.contains("unjudged") || !json["unjudged"].is_array()) return baseline;
  for (const Json& one : json["unjudged"]) {
    if (one.is_object() && one.contains("needs") && one["needs"].is_string())
      baseline.needs.insert(one["needs"].get<std::string>());
  }
  return baseline;
}

bool is_known(const Baseline& baseline, const Finding& finding) {
  auto of_rule = baseline.accepted.find(finding.rule);
  if (of_rule == baseline.accepted.end()) return false;
  const auto places = candidates(baseline, finding);
  return std::any_of(places.begin(), places.end(),
                     [&](std::size_t at) { return covers(of_rule->second[at], finding); });
}

std::size_t count_known_findings(const Baseline& baseline, const std::vector<Finding>& findings) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const Finding& finding) { return is_known(baseline, finding); }));
}

std::vector<std::string> fixed_since(const Baseline& baseline, const CheckReport& report) {
  if (!is_at_least_as_thorough(report, baseline)) return {};
  std::map<std::string, std::set<std::string>> left;
  for (const auto& [rule, findings] : baseline.accepted) {
    for (const AcceptedFinding& accepted : findings)
      left[rule].merge(subjects_or_none(accepted.subjects));
  }
  for (const Finding& finding : report.findings) {
    auto of_rule = left.find(finding.rule);
    if (of_rule == left.end()) continue;
    if (finding.subjects.empty()) of_rule->second.erase("");
    for (const std::string& subject : finding.subjects) of_rule->second.erase(subject);
  }
  std::vector<std::string> gone;
  for (const auto& [rule, subjects] : left) {
    for (const std::string& subject : subjects)
      gone.push_back(subject.empty() ? rule : rule + ": " + subject);
  }
  return gone;
}

}  // namespace shw

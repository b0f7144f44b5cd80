#include "core/verbs/ignored_rules.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/parse_text.h"
#include "core/base/spelling.h"
#include "core/base/words.h"
#include "core/io/source.h"
#include "core/io/store.h"

namespace shw::verbs {
namespace {

constexpr std::uint64_t kMaxToml = std::uint64_t{1} << 20;
constexpr std::string_view kBlanks = " \t\r\n";

// Removes a comment; "#" inside quotes does not begin one.
std::string_view without_comment(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote != 0) {
      if (line[i] == quote) quote = 0;
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    } else if (line[i] == '#') {
      return line.substr(0, i);
    }
  }
  return line;
}

// Adds the strings of a list in this line. True if the list ends.
bool parse_strings_of_list_line(std::string_view line, std::vector<std::string>& strings) {
  while (!line.empty()) {
    const std::size_t at = line.find_first_of("\"']");
    if (at == line.npos) return false;
    if (line[at] == ']') return true;
    const std::size_t end = line.find(line[at], at + 1);
    if (end == line.npos) return false;
    strings.emplace_back(line.substr(at + 1, end - at - 1));
    line.remove_prefix(end + 1);
  }
  return false;
}

// The text after "ignore ="; empty for other lines.
std::string_view value_after_ignore_key(std::string_view line) {
  constexpr std::string_view kKey = "ignore";
  if (!line.starts_with(kKey)) return {};
  line = trim(line.substr(kKey.size()));
  return line.starts_with("=") ? trim(line.substr(1)) : std::string_view{};
}

Result<std::vector<std::string>> ignored_in_file(const std::string& path,
                                                 std::string_view section) {
  if (!posix_store().exists(path)) return std::vector<std::string>{};
  SHW_TRY(auto source, open_file(path, path));
  if (source->size() > kMaxToml)
    return fail(ErrorKind::kUsage, "is larger than 1 MiB, too large for a configuration", {path},
                "Run from another folder, or shorten the file.");
  SHW_TRY(Bytes bytes, read_bytes(*source, 0, source->size()));
  return ignored_in_toml({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, section,
                         path);
}

Status check_rule(const std::string& id) {
  if (find_rule(id) != nullptr) return {};
  std::vector<std::string_view> known;
  for (const Rule& rule : all_rules()) known.push_back(rule.id);
  std::string advice = did_you_mean_text(did_you_mean(id, known));
  if (advice.empty()) advice = "`shardwright explain` lists the rules.";
  return fail(ErrorKind::kUsage, "unknown rule \"" + id + "\" to ignore", {}, advice);
}

}  // namespace

Result<std::vector<std::string>> ignored_in_toml(std::string_view text, std::string_view section,
                                                 const std::string& source) {
  std::vector<std::string> ignored;
  std::string here;
  bool in_list = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(without_comment(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (in_list) {
      in_list = !parse_strings_of_list_line(line, ignored);
    } else if (line.starts_with("[")) {
      here = trim(line.substr(1, line.find(']') - 1));
    } else if (here == section) {
      const std::string_view value = value_after_ignore_key(line);
      if (value.starts_with("[")) in_list = !parse_strings_of_list_line(value.substr(1), ignored);
    }
  }
  if (in_list)
    return fail(ErrorKind::kUsage, "the list `ignore` has no closing bracket", {source},
                "write ignore = [\"value-statistics\"]");
  return ignored;
}

Result<std::vector<std::string>> ignored_rules(const std::vector<std::string>& typed,
                                               const std::string& folder) {
  std::vector<std::string> all = typed;
  if (!folder.empty()) {
    SHW_TRY(auto own, ignored_in_file(folder + "/shardwright.toml", ""));
    SHW_TRY(auto project, ignored_in_file(folder + "/pyproject.toml", "tool.shardwright"));
    all.insert(all.end(), own.begin(), own.end());
    all.insert(all.end(), project.begin(), project.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (const std::string& id : all) SHW_CHECK(check_rule(id));
  return all;
}

void ignore_findings(CheckReport& report, const std::vector<std::string>& rules) {
  for (const std::string& id : rules) {
    auto kept = std::remove_if(report.findings.begin(), report.findings.end(),
                               [&](const Finding& finding) { return finding.rule == id; });
    const auto count = static_cast<std::size_t>(report.findings.end() - kept);
    if (count == 0) continue;
    report.findings.erase(kept, report.findings.end());
    report.unjudged.push_back(
        {fmt::format("{} of {}, ignored", plural(count, "finding"), id), "without --ignore"});
  }
  const bool is_calm =
      std::all_of(report.findings.begin(), report.findings.end(),
                  [](const Finding& finding) { return finding.severity == Severity::kInfo; });
  if (report.verdict == Verdict::kFindings && is_calm) report.verdict = Verdict::kClean;
}

}  // namespace shw::verbs

#include "core/report/text.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/model/evidence.h"
#include "core/model/index_only_tensors.h"
#include "core/model/repair_format.h"
#include "core/report/text_words.h"
#include "core/rules/consequence.h"
#include "core/rules/damage.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"
#include "core/rules/unjudged.h"
#include "core/rules/unreadable.h"

namespace shw {
namespace {

constexpr std::size_t kShownSubjects = 8;
constexpr std::size_t kHanging = 4;  // indent of list items

struct Style {
  bool colour = false;
  std::string operator()(std::string_view code, const std::string& text) const {
    return colour && !text.empty() ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
  }
};
constexpr std::string_view kRed = "1;31", kYellow = "1;33", kQuiet = "2", kBold = "1",
                           kWrong = "31", kGreen = "1;32";

struct Word {
  std::string_view text, colour;
};
Word severity_tag(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return {"error", kRed};
    case Severity::kWarning:
      return {"warning", kYellow};
    case Severity::kInfo:
      break;
  }
  return {"info", kQuiet};
}

// "needs torch 2.15 or newer"
std::string required_version_text(const Finding& finding) {
  std::string needs;
  for (auto [key, who] :
       {std::pair{"python_at_least", "Python "}, std::pair{"torch_at_least", "torch "}}) {
    const auto* version = find_evidence<std::string>(finding, key);
    if (version != nullptr)
      needs += (needs.empty() ? "" : " and ") + (who + *version) + " or newer";
  }
  return needs.empty() ? needs : "needs " + needs;
}

// Consequence for loading, in three words next to the count.
std::string outcome_text(const Finding& finding) {
  if (const auto* cause = find_evidence<std::string>(finding, "explained_by"))
    return "by " + *cause;
  // Entries of an index without their tensor: the bytes of the files may be sound.
  if (finding.rule == kBadRecord.id && finding.severity == Severity::kError &&
      find_evidence<std::string>(finding, "index") != nullptr)
    return "in no file here";
  const RuleWords& words = rule_of(finding).words;
  // Without a file that a resumed run reads, nothing resumes, wrong or not.
  if (finding.rule == kSideFile.id && finding.severity > Severity::kInfo &&
      find_evidence<std::vector<std::string>>(finding, "files_not_here") != nullptr)
    return std::string(words.text);
  if (words.names_versions) return required_version_text(finding);
  // Infos do not break anything, so only words for infos fit.
  if (finding.severity == Severity::kInfo && !words.as_info) return "";
  if (finding.severity == Severity::kWarning && !words.as_warning.empty())
    return std::string(words.as_warning);
  if (!words.text.empty()) return std::string(words.text);
  if (finding.consequence == Consequence::kNone) return "";
  std::string title = title_of(finding);
  title[0] = static_cast<char>(title[0] - 'A' + 'a');
  return title;
}

// "saved" or "expected" shape of subject `i` as text; empty if the finding has none.
std::string shape_of(const Finding& finding, const std::string& key, std::size_t i) {
  if (const auto* all = find_evidence<std::vector<std::string>>(finding, key + "_shapes")) {
    return i < all->size() ? (*all)[i] : "";
  }
  if (const auto* shape = find_evidence<Extents>(finding, key); shape != nullptr && i == 0)
    return to_text(ExtentsView(*shape));
  if (const auto* word = find_evidence<std::string>(finding, key)) return *word;
  return "";
}

// True for entries of an index whose tensors no file holds.
bool are_lost_entries(const Checkpoint& checkpoint, const Finding& finding) {
  const auto* index = find_evidence<std::string>(finding, "index");
  const std::string& first = finding.subjects.front();
  return index != nullptr && finding.rule == kBadRecord.id && first != *index &&
         !std::any_of(checkpoint.files().begin(), checkpoint.files().end(),
                      [&](const FileRow& file) { return file.path == first; });
}

std::string noun_of(const Checkpoint& checkpoint, const Finding& finding) {
  if (rule_of(finding).subjects == SubjectKind::kAbsentTensors || finding.subjects.empty() ||
      are_lost_entries(checkpoint, finding))
    return "tensor";
  const std::string& first = finding.subjects.front();
  if (checkpoint.find(first)) return "tensor";
  for (const NonTensorEntry& object : checkpoint.objects()) {
    if (object.fqn == first) return "object";
  }
  return "file";
}

// Columns by which such lines may exceed the wrap width before they are broken.
constexpr std::size_t kOverhang = 8;

struct SubjectRow {
  std::string name, saved, expected;
  bool same = false;
};

// Subjects with equal shapes fold into "the same"; names lose their common prefix.
std::vector<SubjectRow> subject_rows(const Finding& finding, std::size_t shown) {
  std::vector<SubjectRow> rows;
  std::string saved, expected;
  std::size_t shared = common_prefix_length_to_dot(std::span(finding.subjects).first(shown));
  for (std::size_t i = 0; i < shown; ++i) {
    SubjectRow row{finding.subjects[i], shape_of(finding, "saved", i),
                   shape_of(finding, "expected", i)};
    if (i > 0 && shared > 0) row.name = "\u2026" + row.name.substr(shared);
    // A transposed square matrix has the expected shape: nothing to show.
    if (row.saved == row.expected) row.saved.clear();
    row.same = i > 0 && !row.saved.empty() && row.saved == saved && row.expected == expected;
    saved = row.saved;
    expected = row.expected;
    if (row.same && rows.back().same && display_width(rows.back().name + row.name) < 48) {
      rows.back().name += ", " + row.name;
    } else {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

void append_subjects(std::string& out, const Finding& finding, std::size_t indent,
                     const TextOptions& options, const Style& style) {
  std::size_t shown = options.all_subjects ? finding.subjects.size()
                                           : std::min(finding.subjects.size(), kShownSubjects);
  std::vector<SubjectRow> rows = subject_rows(finding, shown);
  std::size_t names = 0, saves = 0, expects = 0;
  for (SubjectRow& row : rows) {
    row.name = printable(row.name);
    names = std::max(names, display_width(row.name));
    if (row.same) continue;
    saves = std::max(saves, display_width(row.saved));
    expects = std::max(expects, display_width(row.expected));
  }
  std::string margin(indent, ' ');
  // "name   saved [..]   expected [..]" on one line if it fits, else shapes below the name.
  bool fits = indent + names + saves + expects + 21 <= options.width + kOverhang;
  for (const SubjectRow& row : rows) {
    out += margin;
    if (row.saved.empty()) {
      out += row.name + "\n";
      continue;
    }
    if (row.same) {
      out += (fits ? padded(row.name, names + 3) : row.name + "   ") + "the same\n";
      continue;
    }
    out += fits ? padded(row.name, names + 3) : row.name + "\n" + margin + "  ";
    out += "saved " + style(kWrong, row.saved);
    if (!row.expected.empty())
      out += std::string(saves - display_width(row.saved), ' ') + "   expected " + row.expected;
    out += "\n";
  }
  if (shown < finding.subjects.size())
    out += margin + "\u2026 and " + human_count(finding.subjects.size() - shown) + " more\n";
}

// The command repeats --data if the finding needed it.
std::string command_for(const Finding& finding, bool is_whole, const TextOptions& options) {
  if (finding.severity == Severity::kInfo) return "";
  const bool gives_up = options.can_fill && can_abandon_missing_files(finding);
  const auto* format = find_evidence<std::string>(finding, "convert_to");
  if (format != nullptr && !finding.remedy && !gives_up && !options.checkpoint.empty())
    return "shardwright convert " + shell_word(options.checkpoint) + " --to " + *format;
  const auto* step = find_evidence<std::string>(finding, "suggested_step");
  if (step != nullptr && !finding.remedy && !options.checkpoint.empty())
    return "shardwright repair " + shell_word(options.checkpoint) + " --then " + shell_word(*step);
  // Repair refuses while files are missing, but shows its plan.
  std::string verb = finding.remedy && is_whole   ? "repair"
                     : finding.remedy || gives_up ? "plan"
                                                  : "";
  if (verb.empty() || options.checkpoint.empty()) return "";
  return "shardwright " + verb + " " + shell_word(options.checkpoint) +
         (options.spec.empty() ? "" : " --spec " + shell_word(options.spec)) +
         (options.against.empty() ? "" : " --against " + shell_word(options.against)) +
         (options.mesh.empty() ? "" : " --mesh " + shell_word(options.mesh)) +
         (options.depth ? depth_option(*options.depth) : "") + (gives_up ? " --fill zero" : "") +
         (verb == "repair" && !options.then.empty() ? " --then " + options.then : "");
}

void append_remedy(std::string& out, const Finding& finding, bool is_whole, std::size_t indent,
                   const TextOptions& options, const Style& style) {
  if (!finding.remedy && finding.severity == Severity::kInfo) return;
  const auto* where = find_evidence<std::string>(finding, "where");
  const auto* undecided = find_evidence<std::string>(finding, "undecided");
  const bool is_converted = find_evidence<std::string>(finding, "convert_to") != nullptr;
  std::string text =
      finding.remedy                            ? finding.remedy->text
      : where != nullptr && *where == "request" ? "Nothing to repair on disk."
      : undecided != nullptr                    ? "Undecided: " + *undecided + "."
      : can_abandon_missing_files(finding)
          ? std::string(
                "No safe remedy but the file itself: copy it here from where it was written.") +
                (options.can_fill ? " What is left without it:" : "")
      : find_evidence<std::string>(finding, "suggested_step") != nullptr
          ? "Nothing in this checkpoint proves a repair; --against a sound copy would. This step "
            "does it without proof, into a new folder, and changes no element:"
      : is_converted ? "Convert it into a folder that every loader finds. No element changes."
      // `explain bad-record` is only about checksums, so it is not recommended for records without
      // an offset.
      : finding.rule == kBadRecord.id && find_evidence<std::int64_t>(finding, "offset") == nullptr
          ? "No safe remedy in the files here."
          : "No safe remedy. `shardwright explain " + finding.rule + "` says what can be done.";
  std::string command = command_for(finding, is_whole, options);
  std::string lines = wrapped(printable(text), indent, options.width);
  std::size_t last = lines.rfind('\n');
  std::size_t used =
      display_width(std::string_view(lines).substr(last == std::string::npos ? 0 : last + 1));
  out += lines;
  if (!command.empty()) {
    // Commands may be a few columns longer than sentences, because they are copied whole.
    bool fits = used + 3 + display_width(command) <= options.width + kOverhang;
    out += (fits ? "   " : "\n" + std::string(indent, ' ')) + style(kBold, command);
  }
  out += "\n";
}

std::set<std::string_view> index_only_fqns(const Checkpoint& checkpoint) {
  std::set<std::string_view> names;
  for (const UnclaimedStorageRecord& tensor : index_only_tensors(checkpoint))
    names.insert(tensor.fqn);
  return names;
}

// Subjects that are files and not tensors.
std::uint64_t count_of_files(const Checkpoint& checkpoint, const Finding& finding) {
  if (finding.subjects.size() < 2 || rule_of(finding).subjects == SubjectKind::kAbsentTensors)
    return 0;
  std::set<std::string_view> paths;
  for (const FileRow& file : checkpoint.files()) paths.insert(file.path);
  std::uint64_t count = 0;
  for (const std::string& subject : finding.subjects)
    count += paths.contains(subject) && !checkpoint.find(subject) ? 1 : 0;
  return count;
}

// "1 file, 14 tensors": of tensors in a missing file only names may be known.
std::string count_of_subjects(const Checkpoint& checkpoint, const Finding& finding) {
  std::uint64_t named = 0;
  if (rule_of(finding).subjects == SubjectKind::kFilesAndTheirTensors ||
      find_evidence<std::string>(finding, "unread_file") != nullptr) {
    auto names = index_only_fqns(checkpoint);
    for (const std::string& subject : finding.subjects) named += names.contains(subject);
  }
  const std::string noun = noun_of(checkpoint, finding);
  // A tensor and the file that holds it: "1 tensor, 1 file".
  const std::uint64_t files = noun == "tensor" ? count_of_files(checkpoint, finding) : 0;
  std::string text = plural(finding.subjects.size() - named - files, noun);
  if (files != 0) text += ", " + plural(files, "file");
  return named == 0 ? text : text + ", " + plural(named, "tensor");
}

void append_finding(std::string& out, const Checkpoint& checkpoint, const Finding& finding,
                    bool is_whole, std::size_t indent, const TextOptions& options,
                    const Style& style) {
  Word severity = severity_tag(finding.severity);
  out += style(severity.colour, std::string(severity.text)) +
         std::string(indent - severity.text.size(), ' ') + style(kBold, finding.rule);
  if (!finding.subjects.empty()) out += "   " + count_of_subjects(checkpoint, finding);
  const auto* where = find_evidence<std::string>(finding, "where");
  bool request = where != nullptr && *where == "request";
  std::string words = request ? "the request is wrong" : outcome_text(finding);
  out += (words.empty() ? "" : ": " + words) + "\n";
  append_subjects(out, finding, indent, options, style);
  out += wrapped(printable(finding.cause), indent, options.width) + "\n";
  append_remedy(out, finding, is_whole, indent, options, style);
  out += "\n";
}

// Reservations about tiles and bytes, by their place in the line.
std::map<int, std::string_view> coverage_reservations(const CheckReport& report) {
  std::map<int, std::string_view> found;
  for (const Finding& finding : report.findings) {
    if (find_evidence<std::string>(finding, "unread_file") != nullptr)
      found.emplace(8, "files cannot be read");
    const CoverageWords& words = rule_of(finding).coverage;
    bool counts = words.applies_at_any_severity || finding.severity == Severity::kError;
    if (words.text.empty() || !counts) continue;
    if (words.instead) return {{words.place, words.text}};
    found.emplace(words.place, words.text);
  }
  return found;
}

std::string coverage(const CheckReport& report) {
  if (std::string text = unchecked_coverage_text(report); !text.empty()) return text;
  // One rank's shard saved as the whole tensor has full coverage too, and so has a model without
  // its last layer.
  const bool lacks_tensors =
      std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& one) {
        return one.severity == Severity::kError &&
               (one.rule == kConfigCount.id || one.rule == kKeysetHole.id ||
                one.rule == kConfigNames.id);
      });
  return lacks_tensors || worst_consequence(report.findings) == Consequence::kDataLost
             ? "coverage complete as recorded"
             : "coverage complete";
}

std::string closing(const Checkpoint& checkpoint, const CheckReport& report,
                    const TextOptions& options, const Style& style) {
  std::string depth = " (depth " + std::string(name(report.depth)) + ")";
  std::vector<std::string> hints = rules_with_hints(report.unjudged);
  std::string causes =
                  affected_counts_text(count_affected_by_findings(checkpoint, report.findings)),
              out;
  if (!causes.empty()) {
    out = style(kBold, causes) + depth;
    const std::string gone = unreadable_text(unreadable_in(checkpoint, report.findings));
    if (!gone.empty()) out += "\n" + style(kRed, gone);
  } else if (report.verdict == Verdict::kUndecided) {
    out = style(kYellow, "undecided") + ": not everything could be checked" + depth;
  } else if (!hints.empty()) {
    out = style(kYellow, "no finding, but a hint") + ": " + short_list_text(hints) + depth;
  } else {
    out = style(kGreen, "no finding") + depth;
  }
  out += "\n";
  if (!report.unjudged.empty())
    out += style(kQuiet, not_checked_text(report.unjudged, options.width)) + "\n";
  return out;
}

}  // namespace

std::string not_checked_text(std::span<const Unjudged> unjudged, std::size_t width) {
  std::string text = "not checked:";
  for (const UnjudgedGroup& group : group_by_need(unjudged)) {
    std::string line;
    for (const std::string& what : group.whats) line += (line.empty() ? "" : ", ") + what;
    std::string item = wrapped(printable(line + ": needs " + group.needs), kHanging, width);
    item[kHanging - 2] = '-';
    text += "\n" + item;
  }
  return text;
}

std::string unchecked_coverage_text(const CheckReport& report) {
  std::string text;
  for (const auto& [place, words] : coverage_reservations(report))
    text += (text.empty() ? "" : ", ") + std::string(words);
  return text;
}

std::string headline(const Checkpoint& checkpoint) {
  std::string out(checkpoint.format().title);
  if (!checkpoint.provenance().torch.empty()) out += ", torch " + checkpoint.provenance().torch;
  out += " \u00b7 " + plural(checkpoint.tensor_count(), "tensor");
  if (checkpoint.rank_count() != 0) out += " \u00b7 " + plural(checkpoint.rank_count(), "rank");
  return printable(out + " \u00b7 " + human_bytes(checkpoint.tensor_bytes()));
}

namespace {

// Versions that cannot read an intact checkpoint are noted after the answer, not above it.
bool is_note(const CheckReport& report, const Finding& finding) {
  return report.verdict == Verdict::kClean && rule_of(finding).words.names_versions &&
         !outcome_text(finding).empty();
}

}  // namespace

std::string check_to_text(const Checkpoint& checkpoint, const CheckReport& report,
                          const TextOptions& requested) {
  TextOptions options = requested;
  options.then = conversion_after_repair(checkpoint);
  options.can_fill = index_only_tensors(checkpoint).empty();
  Style style{options.colour};
  std::string out = headline(checkpoint) + " \u00b7 " + coverage(report) + "\n\n";
  std::size_t indent = 0;
  for (const Finding& finding : report.findings) {
    if (finding.severity >= options.least)
      indent = std::max(indent, severity_tag(finding.severity).text.size() + 2);
  }
  std::string notes;
  const bool is_whole =
      std::none_of(report.findings.begin(), report.findings.end(),
                   [](const Finding& one) { return can_abandon_missing_files(one); });
  for (const Finding& finding : report.findings) {
    if (finding.severity < options.least) continue;
    if (is_note(report, finding))
      notes += style(kQuiet, "note: " + outcome_text(finding) + " (`shardwright explain " +
                                 finding.rule + "`)") +
               "\n";
    else
      append_finding(out, checkpoint, finding, is_whole, indent, options, style);
  }
  return out + closing(checkpoint, report, options, style) + notes;
}

namespace {

bool is_message_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == ',' ||
         c == '-' || c == '/';
}

// True if the message contains it as a separate word. Letters-only words could mean something else,
// so those must be in quotes.
bool has_quoted_word(const std::string& message, const std::string& word) {
  const bool may_be_plain = std::any_of(word.begin(), word.end(), [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) == 0;
  });
  for (std::size_t at = message.find(word); at != std::string::npos;
       at = message.find(word, at + 1)) {
    const char before = at == 0 ? ' ' : message[at - 1];
    std::size_t end = at + word.size();
    const char after = end == message.size() ? ' ' : message[end];
    const bool is_quoted = (before == '"' || before == '\'') && after == before;
    // Punctuation ends a word unless the name continues.
    const bool ends_here =
        !is_message_name_character(after) ||
        ((after == '.' || after == ',') && (end + 1 == message.size() || message[end + 1] == ' '));
    if (is_quoted || (may_be_plain && !is_message_name_character(before) && ends_here)) return true;
  }
  return false;
}

}  // namespace

std::string error_to_text(const Error& error, const TextOptions& options) {
  std::string text = error.place.file;
  if (!error.place.tensor.empty() && !has_quoted_word(error.message, error.place.tensor))
    text += (text.empty() ? "" : ", ") + error.place.tensor;
  if (!text.empty()) text += ": ";
  if (error.place.offset) {
    // Messages often state the offset themselves.
    std::string byte = "byte " + human_count(*error.place.offset);
    if (!has_quoted_word(error.message, byte)) text += "at " + byte + ": ";
  }
  text += error.message;
  if (!text.empty() && std::string_view(".?:").find(text.back()) == std::string_view::npos)
    text += ".";
  std::string out = wrapped(printable(text), 0, options.width);
  if (!error.advice.empty()) out += "\n" + wrapped(printable(error.advice), 0, options.width);
  return out + "\n";
}

std::string rule_to_text(const Rule& rule, const TextOptions& options) {
  Style style{options.colour};
  std::string out = style(kBold, std::string(rule.id)) + "   " + std::string(rule.title) + "\n\n" +
                    wrapped(std::string(rule.teaches), 0, options.width) + "\n";
  out += std::string(rule.lesson.drawing) + "\n" +
         wrapped("What can be done: " + std::string(rule.lesson.remedy), 0, options.width) + "\n";
  if (!rule.lesson.link.empty()) out += "Upstream: " + std::string(rule.lesson.link) + "\n";
  return out;
}

}  // namespace shw

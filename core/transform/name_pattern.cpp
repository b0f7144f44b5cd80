#include "core/transform/name_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/letter_case.h"
#include "core/base/words.h"

namespace shw {
namespace {

// A name takes a few hundred steps; this limit is some ten milliseconds. PCRE2 counts memory in
// KiB.
constexpr std::uint32_t kMaxTries = 1'000'000, kMaxKiB = 32 << 10;

constexpr std::uint32_t kEcmaScript =
    PCRE2_ALT_BSUX | PCRE2_ALLOW_EMPTY_CLASS | PCRE2_MATCH_UNSET_BACKREF | PCRE2_DOLLAR_ENDONLY;

PCRE2_SPTR pcre2_text(const std::string& text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

std::string words_of(int error) {
  std::array<PCRE2_UCHAR, 256> words{};
  pcre2_get_error_message(error, words.data(), words.size());
  return reinterpret_cast<const char*>(words.data());
}

// Part of a replacement: text, or the number of a group (0: the whole name).
using Piece = std::variant<std::string, std::uint32_t>;

// The group after a dollar, as in ECMAScript: two digits if such a group exists, otherwise one.
std::optional<std::pair<std::uint32_t, std::size_t>> parse_group_reference(std::string_view to,
                                                                           std::uint32_t groups) {
  if (to.empty() || !is_digit(to[0])) return std::nullopt;
  const auto one = static_cast<std::uint32_t>(to[0] - '0');
  if (to.size() > 1 && is_digit(to[1])) {
    const std::uint32_t two = one * 10 + static_cast<std::uint32_t>(to[1] - '0');
    if (two >= 1 && two <= groups) return std::pair{two, std::size_t{2}};
  }
  return std::pair{one, std::size_t{1}};
}

Result<std::vector<Piece>> pieces_of(std::string_view to, std::uint32_t groups) {
  std::vector<Piece> pieces;
  std::string words;
  auto put_group = [&](std::uint32_t group) {
    if (!words.empty()) pieces.emplace_back(std::exchange(words, {}));
    pieces.emplace_back(group);
  };
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::string_view rest = to.substr(i + 1);
    const auto group = parse_group_reference(rest, groups);
    if (to[i] != '$' || rest.empty() || (rest[0] != '$' && rest[0] != '&' && !group)) {
      words += to[i];
    } else if (rest[0] == '$') {
      words += '$';
      ++i;
    } else if (rest[0] == '&') {
      put_group(0);
      ++i;
    } else if (group->first == 0 || group->first > groups) {
      return fail(ErrorKind::kUsage, "\"" + std::string(to) + "\" asks for group " +
                                         std::to_string(group->first) +
                                         ", and the regular expression has " +
                                         (groups == 0 ? "none" : plural(groups, "group")));
    } else {
      put_group(group->first);
      i += group->second;
    }
  }
  if (!words.empty()) pieces.emplace_back(std::move(words));
  return pieces;
}

}  // namespace

struct NamePattern::Compiled {
  std::string from;
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code{nullptr, &pcre2_code_free};
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> matched{
      nullptr, &pcre2_match_data_free};
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> limits{
      nullptr, &pcre2_match_context_free};
  std::vector<Piece> to;
};

NamePattern::NamePattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
NamePattern::~NamePattern() = default;
NamePattern::NamePattern(NamePattern&&) noexcept = default;

Result<NamePattern> NamePattern::from(const std::string& from, const std::string& to) {
  int error = 0;
  PCRE2_SIZE at = 0;
  auto made = std::make_unique<Compiled>();
  made->from = from;
  made->code.reset(pcre2_compile(pcre2_text(from), from.size(),
                                 kEcmaScript | PCRE2_ANCHORED | PCRE2_ENDANCHORED, &error, &at,
                                 nullptr));
  if (made->code == nullptr)
    return fail(ErrorKind::kUsage, "\"" + from +
                                       "\" is not a regular expression: " + words_of(error) +
                                       ", at character " + std::to_string(at + 1));
  std::uint32_t groups = 0;
  pcre2_pattern_info(made->code.get(), PCRE2_INFO_CAPTURECOUNT, &groups);
  SHW_TRY(made->to, pieces_of(to, groups));
  made->matched.reset(pcre2_match_data_create_from_pattern(made->code.get(), nullptr));
  made->limits.reset(pcre2_match_context_create(nullptr));
  if (made->matched == nullptr || made->limits == nullptr)
    return fail(ErrorKind::kIo, "there is no memory for a regular expression");
  pcre2_set_match_limit(made->limits.get(), kMaxTries);
  pcre2_set_heap_limit(made->limits.get(), kMaxKiB);
  return NamePattern(std::move(made));
}

Result<std::optional<std::string>> NamePattern::renamed(const std::string& name) const {
  using Name = std::optional<std::string>;
  const int found = pcre2_match(compiled_->code.get(), pcre2_text(name), name.size(), 0, 0,
                                compiled_->matched.get(), compiled_->limits.get());
  if (found == PCRE2_ERROR_NOMATCH) return Name();
  if (found < 0)
    return fail(ErrorKind::kUsage,
                "\"" + compiled_->from + "\" cannot be matched: " + words_of(found),
                Place{.file = {}, .tensor = name}, "a simpler expression takes fewer steps");
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(compiled_->matched.get());
  std::string out;
  for (const Piece& piece : compiled_->to) {
    if (const auto* words = std::get_if<std::string>(&piece)) {
      out += *words;
      continue;
    }
    const std::size_t group = std::get<std::uint32_t>(piece);
    const bool took_part =
        group < static_cast<std::size_t>(found) && ends[2 * group] != PCRE2_UNSET;
    if (took_part) out.append(name, ends[2 * group], ends[2 * group + 1] - ends[2 * group]);
  }
  return Name(std::move(out));
}

}  // namespace shw

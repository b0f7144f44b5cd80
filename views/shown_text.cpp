#include "views/shown_text.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/utf8.h"
#include "core/report/text_words.h"
#include "views/imgui_versions.h"

namespace shw {
namespace {

constexpr std::size_t kMaxLetters = 8'192;  // rasterised at eight sizes: 40 MB of atlas at most

// Not thread-safe: drawing happens on one thread.
struct MissingLetters {
  std::set<ImWchar> known;  // reported once, whether a font was found or not
  std::vector<ImWchar> fresh;
};
MissingLetters& missing_letters() {
  thread_local MissingLetters missing;
  return missing;
}

bool is_plain(std::string_view text, bool keeps_lines) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return (c >= 0x20 && c < 0x7F) || (keeps_lines && c == '\n'); });
}

bool has_glyph(const ImFont* font, std::uint32_t code) {
  if (code > IM_UNICODE_CODEPOINT_MAX) return false;
#if IMGUI_VERSION_NUM < 19200
  return font->FindGlyphNoFallback(static_cast<ImWchar>(code)) != nullptr;
#else
  return face(font)->IsGlyphInFont(static_cast<ImWchar>(code));
#endif
}

void remember_missing(std::uint32_t code) {
  MissingLetters& missing = missing_letters();
  if (code > IM_UNICODE_CODEPOINT_MAX || missing.known.size() >= kMaxLetters) return;
  if (missing.known.insert(static_cast<ImWchar>(code)).second)
    missing.fresh.push_back(static_cast<ImWchar>(code));
}

std::string escape_of(std::uint32_t code) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string digits;
  for (int shift = code > 0xFFFF ? 28 : 12; shift >= 0; shift -= 4)
    digits += kDigits[(code >> static_cast<unsigned>(shift)) & 15u];
  return (code > 0xFFFF ? "\\U" : "\\u") + digits;
}

// ASCII replacements for symbols in the desktop's own texts, for machines without fonts.
std::string_view ascii_replacement(std::uint32_t code) {
  // Drawings in explanations of rules use lines, corners and blocks.
  if (code == 0x2500 || code == 0x2501) return "-";
  if (code == 0x2502 || code == 0x2503) return "|";
  if (code > 0x2503 && code < 0x2580) return "+";
  if (code >= 0x2580 && code < 0x25A0) return "#";
  if (code >= 0x25A0 && code < 0x2600) return "*";
  switch (code) {
    case 0x2013:
    case 0x2014:
      return "-";
    case 0x2018:
    case 0x2019:
      return "'";
    case 0x201C:
    case 0x201D:
      return "\"";
    case 0x2026:
      return "...";
    case 0x2190:
      return "<-";
    case 0x2192:
      return "->";
    case 0x2264:
      return "<=";
    case 0x2265:
      return ">=";
    default:
      return "";
  }
}

std::string_view short_escape(char c) {
  return c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : "";
}

}  // namespace

std::string_view shown_text(const ImFont* font, std::string_view text, std::string& buffer,
                            bool keeps_lines) {
  if (is_plain(text, keeps_lines)) return text;
  buffer.clear();
  while (!text.empty()) {
    const char c = text.front();
    std::size_t used = 1;
    if (keeps_lines && c == '\n') {
      buffer += c;
    } else if (!short_escape(c).empty()) {
      buffer += short_escape(c);
    } else {
      std::string printed;
      used = add_printable(printed, text);
      const bool is_shown = printed == text.substr(0, used);
      const std::uint32_t code = is_shown ? decode_code_point(text).code : 0;
      if (is_shown && !has_glyph(font, code)) {
        remember_missing(code);
        printed = ascii_replacement(code).empty() ? escape_of(code)
                                                  : std::string(ascii_replacement(code));
      }
      buffer += printed;
    }
    text.remove_prefix(used);
  }
  return buffer;
}

std::string_view shown_name(std::string_view name) {
  return name.empty() ? "(empty name)" : name;
}

std::vector<ImWchar> collect_missing_letters() {
  return std::exchange(missing_letters().fresh, {});
}

bool has_missing_letters() {
  return !missing_letters().fresh.empty();
}

}  // namespace shw

#include "core/base/xml_entities.h"

#include <charconv>

namespace shw {
namespace {

void append_utf8(unsigned long code, std::string& out) {
  auto add = [&](unsigned long byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    add(0x80 | (code & 63));
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 63));
    add(0x80 | (code & 63));
  } else if (code < 0x110000) {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 63));
    add(0x80 | (code >> 6 & 63));
    add(0x80 | (code & 63));
  }
}

void append_entity(std::string_view name, std::string& out) {
  if (name == "amp") out += '&';
  if (name == "lt") out += '<';
  if (name == "gt") out += '>';
  if (name == "quot") out += '"';
  if (name == "apos") out += '\'';
  if (!name.starts_with('#')) return;
  name.remove_prefix(1);
  const int base = name.starts_with('x') ? 16 : 10;
  if (base == 16) name.remove_prefix(1);
  unsigned long code = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), code, base);
  if (failed == std::errc() && end == name.data() + name.size()) append_utf8(code, out);
}

}  // namespace

std::string without_xml_entities(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t mark = text.find('&');
    out += text.substr(0, mark);
    if (mark == text.npos) break;
    text.remove_prefix(mark + 1);
    const std::size_t end = text.find(';');
    if (end == text.npos || end > 8) {
      out += '&';
      continue;
    }
    append_entity(text.substr(0, end), out);
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace shw

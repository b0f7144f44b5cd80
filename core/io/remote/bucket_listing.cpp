#include "core/io/remote/bucket_listing.h"

#include <charconv>
#include <optional>

#include "core/io/remote/remote_path.h"

namespace shw {
namespace {

// Returns the text of the first element <name> and removes everything up to its end from `xml`.
std::optional<std::string_view> consume_element(std::string_view& xml, std::string_view name) {
  const std::string open = "<" + std::string(name) + ">", close = "</" + std::string(name) + ">";
  const std::size_t begin = xml.find(open);
  if (begin == xml.npos) return std::nullopt;
  const std::size_t end = xml.find(close, begin + open.size());
  if (end == xml.npos) return std::nullopt;
  const std::string_view inside = xml.substr(begin + open.size(), end - begin - open.size());
  xml.remove_prefix(end + close.size());
  return inside;
}

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

std::string xml_text(std::string_view xml, std::string_view name) {
  const auto inside = consume_element(xml, name);
  return inside ? without_xml_entities(*inside) : std::string();
}

Result<BucketPage> parse_bucket_page(std::string_view xml, bool keys_are_encoded) {
  if (xml.find("<ListBucketResult") == xml.npos || xml.find("</ListBucketResult>") == xml.npos)
    return fail(ErrorKind::kDamaged, "the server's answer does not list a bucket");
  BucketPage page;
  page.is_truncated = xml_text(xml, "IsTruncated") == "true";
  page.next = xml_text(xml, "NextContinuationToken");
  while (const auto contents = consume_element(xml, "Contents")) {
    BucketObject object;
    object.key = xml_text(*contents, "Key");
    if (keys_are_encoded) object.key = percent_decoded(object.key);
    object.etag = xml_text(*contents, "ETag");
    const std::string size = xml_text(*contents, "Size");
    const auto [end, code] = std::from_chars(size.data(), size.data() + size.size(), object.size);
    if (code != std::errc() || end != size.data() + size.size() || size.empty())
      return fail(ErrorKind::kDamaged, "the listing has an object without a size");
    page.objects.push_back(std::move(object));
  }
  return page;
}

}  // namespace shw

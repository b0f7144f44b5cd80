#include "core/formats/weight_list/xml_tags.h"

#include "core/base/xml_entities.h"

namespace shw {
namespace {

// OpenVINO's bodies of loops are nested in their layers: 6 levels each.
constexpr std::size_t kDeepestXml = 256;
constexpr std::size_t kMaxAttributes = 256;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == ':' || c == '.';
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

}  // namespace

const std::string* XmlTag::attribute(std::string_view key) const {
  for (const auto& [known, value] : attributes) {
    if (known == key) return &value;
  }
  return nullptr;
}

tl::unexpected<Error> XmlTags::damaged(std::string what) const {
  return fail(ErrorKind::kDamaged, "is not XML: " + std::move(what), {file_, at_});
}

bool XmlTags::skip_past(std::string_view end) {
  const std::size_t found = text_.find(end, at_);
  if (found == text_.npos) return false;
  at_ = found + end.size();
  return true;
}

void XmlTags::skip_spaces() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
}

std::string_view XmlTags::consume_name() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

Result<std::string> XmlTags::consume_quoted() {
  const char quote = at_ < text_.size() ? text_[at_] : '\0';
  if (quote != '"' && quote != '\'') return damaged("an attribute has no value in quotes");
  const std::size_t end = text_.find(quote, ++at_);
  if (end == text_.npos) return damaged("a value in quotes does not end");
  const std::string_view raw = text_.substr(at_, end - at_);
  if (raw.find('<') != raw.npos) return damaged("a value in quotes holds \"<\"");
  at_ = end + 1;
  return without_xml_entities(raw);
}

Status XmlTags::read_attributes(XmlTag& tag) {
  for (;;) {
    skip_spaces();
    const std::string_view name = consume_name();
    if (name.empty()) return {};
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != '=') return damaged("an attribute has no value");
    ++at_;
    skip_spaces();
    SHW_TRY(std::string value, consume_quoted());
    if (tag.attribute(name) != nullptr) return damaged("an attribute occurs twice");
    if (tag.attributes.size() == kMaxAttributes) return damaged("a tag has too many attributes");
    tag.attributes.emplace_back(name, std::move(value));
  }
}

Result<std::optional<XmlTag>> XmlTags::read_tag() {
  XmlTag tag;
  const bool is_end = text_.substr(at_).starts_with('/');
  if (is_end) ++at_;
  tag.name = consume_name();
  if (tag.name.empty()) return damaged("\"<\" is followed by no name");
  if (is_end) {
    skip_spaces();
    if (open_.empty() || open_.back() != tag.name) return damaged("an end tag has no start tag");
    open_.pop_back();
    tag.ends = true;
  } else {
    tag.begins = true;
    SHW_CHECK(read_attributes(tag));
    tag.ends = text_.substr(at_).starts_with('/');
    if (tag.ends) ++at_;
    if (!tag.ends && open_.size() == kDeepestXml) return damaged("tags are nested too deep");
    if (!tag.ends) open_.push_back(tag.name);
  }
  if (!text_.substr(at_).starts_with('>')) return damaged("a tag does not end with \">\"");
  ++at_;
  return tag;
}

Result<std::optional<XmlTag>> XmlTags::next() {
  for (;;) {
    if (!skip_past("<")) break;
    const std::string_view rest = text_.substr(at_);
    const std::string_view end = rest.starts_with("?")          ? "?>"
                                 : rest.starts_with("!--")      ? "-->"
                                 : rest.starts_with("![CDATA[") ? "]]>"
                                                                : "";
    if (end.empty() && rest.starts_with("!")) return damaged("it has a document type");
    if (end.empty()) return read_tag();
    if (!skip_past(end)) return damaged("a comment does not end");
  }
  at_ = text_.size();
  if (!open_.empty()) return damaged("it is cut short");
  return std::nullopt;
}

}  // namespace shw

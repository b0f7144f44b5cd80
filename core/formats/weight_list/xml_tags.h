// The tags of an XML file, one after the other. Texts between them are skipped; the file is UTF-8.
//
//   file = (tag | text | "<?" ... "?>" | "<!--" ... "-->" | "<![CDATA[" ... "]]>")*
//   tag  = "<" name (name "=" quoted)* ["/"] ">" | "</" name ">"
//
// A document type (<!DOCTYPE>) is refused, because it can define texts that others refer to.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace shw {

struct XmlTag {
  std::string_view name;
  bool begins = false, ends = false;  // both for "<name/>"
  std::vector<std::pair<std::string_view, std::string>> attributes = {};

  // Null if there is no such attribute.
  const std::string* attribute(std::string_view key) const;
};

class XmlTags {
 public:
  // `file`: for errors. The tags refer to `text`.
  XmlTags(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  // nullopt at the end of the file. kDamaged where the text is not of the grammar, where an end
  // does not match its begin, or where tags are nested too deep.
  Result<std::optional<XmlTag>> next();

 private:
  tl::unexpected<Error> damaged(std::string what) const;
  // Moves behind the next `end`; false if there is none.
  bool skip_past(std::string_view end);
  void skip_spaces();
  std::string_view consume_name();
  Result<std::string> consume_quoted();
  Status read_attributes(XmlTag& tag);
  Result<std::optional<XmlTag>> read_tag();

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  std::vector<std::string_view> open_;  // names of the tags that have not ended
};

}  // namespace shw

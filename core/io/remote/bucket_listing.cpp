#include "core/io/remote/bucket_listing.h"

#include <optional>

#include "core/base/parse_text.h"
#include "core/base/xml_entities.h"
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

}  // namespace

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
    const auto size = parse_number<decltype(object.size)>(xml_text(*contents, "Size"));
    if (!size) return fail(ErrorKind::kDamaged, "the listing has an object without a size");
    object.size = *size;
    page.objects.push_back(std::move(object));
  }
  return page;
}

}  // namespace shw

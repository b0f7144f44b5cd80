// Parses the XML that lists a bucket, as S3 and compatible servers send it:
//
//   <ListBucketResult> <IsTruncated>true</IsTruncated> <NextContinuationToken>T</...>
//     <Contents> <Key>K</Key> <Size>N</Size> <ETag>"E"</ETag> </Contents> ... </ListBucketResult>
//
// Other elements are ignored. No other nesting occurs, and no entities except the five of XML and
// numeric ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace shw {

struct BucketObject {
  std::string key, etag;
  std::uint64_t size = 0;
};

struct BucketPage {
  std::vector<BucketObject> objects;
  bool is_truncated = false;
  std::string next;  // the token of the next page
};

// `keys_are_encoded`: the request had encoding-type=url. kDamaged if the text is not such a
// listing.
Result<BucketPage> parse_bucket_page(std::string_view xml, bool keys_are_encoded);

// The content of the first <name> element with entities decoded; empty if there is none.
std::string xml_text(std::string_view xml, std::string_view name);

}  // namespace shw

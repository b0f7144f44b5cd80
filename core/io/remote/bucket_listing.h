// The XML with which S3, and what speaks as it does, lists a bucket:
//
//   <ListBucketResult> <IsTruncated>true</IsTruncated> <NextContinuationToken>T</...>
//     <Contents> <Key>K</Key> <Size>N</Size> <ETag>"E"</ETag> </Contents> ... </ListBucketResult>
//
// Other elements are passed over. There is no nesting but this, and no entity but the five of XML
// and numbers.
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

// `keys_are_encoded`: as with encoding-type=url. kDamaged where it is not such a listing.
Result<BucketPage> parse_bucket_page(std::string_view xml, bool keys_are_encoded);

// What the first <name> holds, without its entities; empty where there is none.
std::string xml_text(std::string_view xml, std::string_view name);

}  // namespace shw

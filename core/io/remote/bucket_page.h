// Requests the listing of a bucket, page by page.
#pragma once

#include <string>

#include "core/io/remote/bucket_access.h"
#include "core/io/remote/bucket_listing.h"

namespace shw {

struct PageRequest {
  std::string prefix;
  std::string token = {};  // continuation token from the previous page; empty: the first page
  bool is_deep = true;     // false: omits objects in subfolders of the prefix
};
// If the bucket is in another region, repeats the request there and records the region in `access`.
Result<BucketPage> list_page(BucketAccess& access, const RemotePlace& place,
                             const PageRequest& asked);

}  // namespace shw

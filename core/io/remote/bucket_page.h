// Asks for the listing of a bucket, page by page.
#pragma once

#include <string>

#include "core/io/remote/bucket_access.h"
#include "core/io/remote/bucket_listing.h"

namespace shw {

struct PageAsked {
  std::string prefix;
  std::string token = {};  // of the page before; empty: the first one
  bool is_deep = true;     // false: what lies below a folder of the prefix is left out
};
// A bucket of another region is asked there; `access` then knows the region.
Result<BucketPage> list_page(BucketAccess& access, const RemotePlace& place,
                             const PageAsked& asked);

}  // namespace shw

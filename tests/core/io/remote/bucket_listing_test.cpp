#include "core/io/remote/bucket_listing.h"

#include <doctest/doctest.h>

using namespace shw;

TEST_CASE("bucket listing: keys, sizes and the next page") {
  auto page = parse_bucket_page(
      "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><Name>b</Name><Prefix>run/</Prefix>"
      "<IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b</NextContinuationToken>"
      "<Contents><Key>run/a%20b.json</Key><Size>7</Size><ETag>&quot;e1&quot;</ETag></Contents>"
      "<Contents><Key>run/&#x41;&lt;</Key><Size>18446744073709551615</Size></Contents>"
      "</ListBucketResult>",
      true);
  REQUIRE(page);
  CHECK(page->is_truncated);
  CHECK(page->next == "a&b");
  REQUIRE(page->objects.size() == 2);
  CHECK(page->objects[0].key == "run/a b.json");
  CHECK(page->objects[0].etag == "\"e1\"");
  CHECK(page->objects[0].size == 7);
  CHECK(page->objects[1].key == "run/A<");
  CHECK(page->objects[1].size == UINT64_MAX);
}

TEST_CASE("bucket listing: what is not a listing is refused") {
  CHECK(!parse_bucket_page("", false));
  CHECK(!parse_bucket_page("<html>hello</html>", false));
  CHECK(!parse_bucket_page("<ListBucketResult>", false));
  CHECK(!parse_bucket_page("<ListBucketResult><Contents><Key>k</Key></Contents></ListBucketResult>",
                           false));
  CHECK(!parse_bucket_page(
      "<ListBucketResult><Contents><Key>k</Key><Size>-1</Size></Contents></ListBucketResult>",
      false));
  CHECK(
      !parse_bucket_page("<ListBucketResult><Contents><Key>k</Key><Size>18446744073709551616"
                         "</Size></Contents></ListBucketResult>",
                         false));
}

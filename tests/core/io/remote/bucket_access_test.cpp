#include "core/io/remote/bucket_access.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

using namespace shw;

namespace {

// The headers of a signed request to the endpoint.
std::vector<std::string> signed_headers(const char* endpoint) {
  ::setenv("AWS_ENDPOINT_URL", endpoint, 1);
  const BucketAccess access(*parse_remote("s3://models/run"));
  HttpRequest request = access.request("GET", "run/x", {});
  REQUIRE(request.sign);
  request.sign(request);
  return request.headers;
}

bool are_signed_alike(const char* a, const char* b) {
  // The time is signed too: of several tries one is within a second.
  for (int i = 0; i < 5; ++i) {
    if (signed_headers(a) == signed_headers(b)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("bucket access: the signed host has no default port, as curl sends it") {
  ::setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  CHECK(are_signed_alike("https://minio.corp:443", "https://minio.corp"));
  CHECK(are_signed_alike("http://minio.corp:80/behind", "http://minio.corp/behind"));
  CHECK_FALSE(are_signed_alike("https://minio.corp:80", "https://minio.corp"));
  CHECK_FALSE(are_signed_alike("http://minio.corp:9000", "http://minio.corp"));
  for (const char* variable : {"AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"})
    ::unsetenv(variable);
}

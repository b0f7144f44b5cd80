// AWS Signature Version 4 as S3 uses it, over the request line, some headers and the time.
#pragma once

#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.h"

namespace shw {

struct AwsKeys {
  std::string id, secret, token;  // token: only for temporary credentials
  bool empty() const { return id.empty() || secret.empty(); }
};

struct SignedRequest {
  std::string method, host, path;                            // path: as in the URL
  std::vector<std::pair<std::string, std::string>> query;    // not encoded
  std::vector<std::pair<std::string, std::string>> headers;  // further signed headers, lower case
  BytesView body = {};
  std::string region, service = "s3";
};

// Encodes and sorts the query as "name=value&...", the form that is signed and used in the URL.
std::string canonical_query(std::vector<std::pair<std::string, std::string>> query);

// The headers "Name: value" that sign the request: Authorization, X-Amz-Date and others.
std::vector<std::string> sign_v4(const SignedRequest& request, const AwsKeys& keys,
                                 std::time_t now);

}  // namespace shw

// AWS Signature Version 4, as S3 takes it: of the request line, some headers and the time of day.
#pragma once

#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.h"

namespace shw {

struct AwsKeys {
  std::string id, secret, token;  // the token of a session may be empty
  bool empty() const { return id.empty() || secret.empty(); }
};

struct SignedRequest {
  std::string method, host, path;                            // the path as it stands in the URL
  std::vector<std::pair<std::string, std::string>> query;    // not encoded
  std::vector<std::pair<std::string, std::string>> headers;  // more that are signed, lower case
  BytesView body = {};
  std::string region, service = "s3";
};

// "name=value&...", encoded and sorted: what is signed, and what the URL must hold.
std::string canonical_query(std::vector<std::pair<std::string, std::string>> query);

// The headers "Name: value" that sign it: Authorization, X-Amz-Date and the like.
std::vector<std::string> sign_v4(const SignedRequest& request, const AwsKeys& keys,
                                 std::time_t now);

}  // namespace shw

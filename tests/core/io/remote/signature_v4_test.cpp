#include "core/io/remote/signature_v4.h"

#include <doctest/doctest.h>

using namespace shw;

namespace {

const AwsKeys kExampleKeys{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
constexpr std::time_t kExampleTime = 1369353600;  // 2013-05-24, midnight

SignedRequest example_request() {
  SignedRequest request;
  request.method = "GET";
  request.host = "examplebucket.s3.amazonaws.com";
  request.path = "/";
  request.region = "us-east-1";
  return request;
}

}  // namespace

// Examples of "Signature Calculations for the Authorization Header" in the S3 API reference.
TEST_CASE("signature version 4: a range of an object, as in AWS' example") {
  SignedRequest request = example_request();
  request.path = "/test.txt";
  request.headers = {{"range", "bytes=0-9"}};
  const auto headers = sign_v4(request, kExampleKeys, kExampleTime);
  CHECK(headers.back() ==
        "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"
        "aws4_request, SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature="
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST_CASE("signature version 4: a listing, as in AWS' example") {
  SignedRequest request = example_request();
  request.query = {{"prefix", "J"}, {"max-keys", "2"}};
  const auto headers = sign_v4(request, kExampleKeys, kExampleTime);
  CHECK(headers.back().ends_with(
      "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST_CASE("signature version 4: the token of a session is signed and sent") {
  AwsKeys keys = kExampleKeys;
  keys.token = "session";
  const auto headers = sign_v4(example_request(), keys, kExampleTime);
  bool sent = false;
  for (const std::string& header : headers)
    sent = sent || header == "x-amz-security-token: session";
  CHECK(sent);
  CHECK(headers.back().find("x-amz-security-token,") != std::string::npos);
}

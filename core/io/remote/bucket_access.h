// Who asks for a bucket, and where it is: from the usual variables and files.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/io/remote/http_client.h"
#include "core/io/remote/remote_path.h"
#include "core/io/remote/signature_v4.h"

namespace shw {

using QueryPairs = std::vector<std::pair<std::string, std::string>>;

class BucketAccess {
 public:
  // Of s3: AWS_ENDPOINT_URL(_S3), AWS_REGION, AWS_ACCESS_KEY_ID, ..., or ~/.aws of AWS_PROFILE. Of
  // gs: STORAGE_EMULATOR_HOST, GOOGLE_OAUTH_ACCESS_TOKEN, or interoperability keys in
  // GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY. Without any of these: anonymous.
  explicit BucketAccess(const RemotePlace& place);

  // `key`: of an object; empty: the bucket.
  HttpRequest request(const std::string& method, const std::string& key, QueryPairs query) const;
  // A bucket of another region says so once.
  void move_to(const std::string& region);
  std::string region() const;
  bool is_anonymous() const { return keys_.empty() && bearer_.empty(); }
  std::string advice() const;

 private:
  RemotePlace place_;
  AwsKeys keys_;
  std::string bearer_, endpoint_;  // the endpoint is empty where AWS' own is meant
  mutable std::mutex guard_;
  std::string region_;
};

}  // namespace shw

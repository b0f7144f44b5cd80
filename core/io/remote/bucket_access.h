// Credentials, endpoint and region for a bucket, from the usual environment variables and files.
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
  // Reads for s3: AWS_ENDPOINT_URL(_S3), AWS_REGION, AWS_ACCESS_KEY_ID, ..., or ~/.aws of
  // AWS_PROFILE; for gs: STORAGE_EMULATOR_HOST, GOOGLE_OAUTH_ACCESS_TOKEN, or interoperability keys
  // in GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY. Without any of these, access is anonymous.
  explicit BucketAccess(const RemotePlace& place);

  // A request for the object `key`, or for the bucket if `key` is empty.
  HttpRequest request(const std::string& method, const std::string& key, QueryPairs query) const;
  // Sets the region, after the server has answered that the bucket is in another one.
  void move_to(const std::string& region);
  std::string region() const;
  bool is_anonymous() const { return keys_.empty() && bearer_.empty(); }
  std::string advice() const;

 private:
  RemotePlace place_;
  AwsKeys keys_;
  std::string bearer_, endpoint_;  // an empty endpoint means AWS
  mutable std::mutex guard_;
  std::string region_;
};

}  // namespace shw

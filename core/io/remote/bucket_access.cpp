#include "core/io/remote/bucket_access.h"

#include <algorithm>
#include <ctime>
#include <map>

#include "core/io/remote/remote_environment.h"

namespace shw {
namespace {

std::string first_set_variable(std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    std::string text = environment_text(variable);
    if (!text.empty()) return text;
  }
  return {};
}

std::string aws_profile() {
  const std::string profile = first_set_variable({"AWS_PROFILE", "AWS_DEFAULT_PROFILE"});
  return profile.empty() ? "default" : profile;
}

// ~/.aws/config names the section of a profile "profile NAME", except for the default one.
std::map<std::string, std::string> aws_config() {
  std::string path = environment_text("AWS_CONFIG_FILE");
  if (path.empty()) path = home_folder() + "/.aws/config";
  const std::string profile = aws_profile();
  return ini_section(path, profile == "default" ? profile : "profile " + profile);
}

AwsKeys aws_keys_from_values(const std::map<std::string, std::string>& values) {
  auto value = [&](const char* name) {
    auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
  return {value("aws_access_key_id"), value("aws_secret_access_key"), value("aws_session_token")};
}

AwsKeys aws_keys() {
  if (!environment_text("AWS_NO_SIGN_REQUEST").empty()) return {};
  AwsKeys keys{environment_text("AWS_ACCESS_KEY_ID"), environment_text("AWS_SECRET_ACCESS_KEY"),
               environment_text("AWS_SESSION_TOKEN")};
  if (!keys.empty()) return keys;
  std::string path = environment_text("AWS_SHARED_CREDENTIALS_FILE");
  if (path.empty()) path = home_folder() + "/.aws/credentials";
  keys = aws_keys_from_values(ini_section(path, aws_profile()));
  return keys.empty() ? aws_keys_from_values(aws_config()) : keys;
}

std::string with_scheme(std::string endpoint) {
  if (!endpoint.empty() && endpoint.find("://") == endpoint.npos) endpoint = "http://" + endpoint;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint;
}

// Host as curl names it to the server: without the port that the scheme implies.
std::string without_default_port(std::string host, const std::string& url) {
  const std::string_view port = url.starts_with("https://")  ? ":443"
                                : url.starts_with("http://") ? ":80"
                                                             : "";
  if (host.ends_with(port)) host.resize(host.size() - port.size());
  return host;
}

// Only such a name can be a subdomain of the host: the server's certificate covers no further dot.
bool is_host_name(const std::string& bucket) {
  return std::all_of(bucket.begin(), bucket.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

BucketAccess::BucketAccess(const RemotePlace& place) : place_(place) {
  if (place.kind == RemoteKind::kGs) {
    bearer_ = first_set_variable({"GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"});
    keys_ = {environment_text("GS_ACCESS_KEY_ID"), environment_text("GS_SECRET_ACCESS_KEY"), {}};
    endpoint_ = with_scheme(environment_text("STORAGE_EMULATOR_HOST"));
    if (endpoint_.empty()) endpoint_ = "https://storage.googleapis.com";
    region_ = "auto";
    return;
  }
  const auto config = aws_config();
  keys_ = aws_keys();
  endpoint_ = first_set_variable({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (auto found = config.find("endpoint_url"); endpoint_.empty() && found != config.end())
    endpoint_ = found->second;
  endpoint_ = with_scheme(endpoint_);
  region_ = first_set_variable({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (auto found = config.find("region"); region_.empty() && found != config.end())
    region_ = found->second;
  if (region_.empty()) region_ = "us-east-1";
}

void BucketAccess::move_to(const std::string& region) {
  std::lock_guard lock(guard_);
  region_ = region;
}

std::string BucketAccess::region() const {
  std::lock_guard lock(guard_);
  return region_;
}

HttpRequest BucketAccess::request(const std::string& method, const std::string& key,
                                  QueryPairs query) const {
  SignedRequest to_sign;
  to_sign.method = method;
  to_sign.region = region();
  std::string base = endpoint_;
  const bool names_host = base.empty() && is_host_name(place_.host);
  if (base.empty())
    base = "https://" + (names_host ? place_.host + "." : std::string()) + "s3." + to_sign.region +
           ".amazonaws.com";
  to_sign.path = (names_host ? std::string() : "/" + percent_encoded(place_.host)) + "/" +
                 percent_encoded(key);
  to_sign.host = base.substr(base.find("://") + 3);
  // An endpoint may have a path of its own: http://host/minio.
  if (const std::size_t slash = to_sign.host.find('/'); slash != std::string::npos) {
    to_sign.path = to_sign.host.substr(slash) + to_sign.path;
    base.resize(base.size() - (to_sign.host.size() - slash));
    to_sign.host.resize(slash);
  }
  to_sign.host = without_default_port(std::move(to_sign.host), base);
  to_sign.query = std::move(query);
  HttpRequest request;
  request.method = method;
  const std::string words = canonical_query(to_sign.query);
  request.url = base + to_sign.path + (words.empty() ? "" : "?" + words);
  request.shown = key.empty() ? place_.shown : key;
  if (!bearer_.empty()) {
    request.headers.push_back("Authorization: Bearer " + bearer_);
  } else if (!keys_.empty()) {
    request.sign = [to_sign, keys = keys_](HttpRequest& one) mutable {
      // Keeps headers added since the last try, but removes the signature of an earlier try.
      std::erase_if(one.headers, [](const std::string& header) {
        return header.starts_with("x-amz-") || header.starts_with("Authorization:");
      });
      to_sign.body = one.upload;
      for (std::string& header : sign_v4(to_sign, keys, std::time(nullptr)))
        one.headers.push_back(std::move(header));
    };
  }
  return request;
}

std::string BucketAccess::advice() const {
  const bool is_gs = place_.kind == RemoteKind::kGs;
  if (is_anonymous() && is_gs)
    return "It was read without signing in: set GOOGLE_OAUTH_ACCESS_TOKEN to what `gcloud auth "
           "print-access-token` prints.";
  if (is_anonymous())
    return "It was read without signing in: no keys are in AWS_ACCESS_KEY_ID, nor in "
           "~/.aws/credentials.";
  return is_gs ? "Check that the token is valid and may read this bucket."
               : "Check the keys for this bucket, and AWS_REGION and AWS_ENDPOINT_URL.";
}

}  // namespace shw

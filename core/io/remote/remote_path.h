// Paths of checkpoints on other machines:
//
//   https://HOST/PATH   http://HOST/PATH      one file, or a folder that has an index
//   hf://OWNER/REPO[@REVISION][/PATH]         a repository of the Hugging Face hub
//   s3://BUCKET[/PREFIX]   gs://BUCKET[/PREFIX]
//   ssh://[USER@]HOST[:PORT]/PATH   [USER@]HOST:/PATH
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace shw {

enum class RemoteKind : std::uint8_t { kHttp, kHub, kS3, kGs, kSsh };

struct RemotePlace {
  RemoteKind kind = RemoteKind::kHttp;
  std::string scheme;    // "https", "ssh", ...
  std::string userinfo;  // user of ssh or of a URL; in a URL possibly with a password
  std::string host;      // the bucket of s3 and gs, OWNER/REPO of hf, HOST[:PORT] of a URL
  std::string port;      // only for ssh; may be empty
  std::string path;      // without surrounding slashes; for ssh with the leading one
  std::string revision;  // only for hf; empty: main
  std::string query;     // only for a URL, which may carry a signature here
  std::string shown;     // without password and query; the name in every message
};

// A local file of the same name takes precedence over HOST:/PATH.
bool is_remote(std::string_view path);
Result<RemotePlace> parse_remote(const std::string& path);

// Removes password and query from URLs of HTTP, also within "base/@merged=URL". This process
// remembers them: parse_remote() of the result restores them. In other remote paths, which
// parse_remote() refuses with a password or a query, dots replace them. Other paths are returned
// unchanged.
std::string without_secrets(const std::string& path);
// Replaces user, password and query of each URL in a pasted text by dots.
std::string text_without_secrets(std::string text);

// Encodes text for the path of a URL: all except letters, digits, "-._~" and "/" becomes %XX.
std::string percent_encoded(std::string_view text, bool keeps_slash = true);
std::string percent_decoded(std::string_view text);

// Joins two paths with "/" unless one is empty.
std::string joined_remote(const std::string& folder, const std::string& below);

}  // namespace shw

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
  std::string userinfo;  // of a URL or of ssh: "me"; may hold a password in a URL
  std::string host;      // the bucket of s3 and gs, OWNER/REPO of hf, HOST[:PORT] of a URL
  std::string port;      // of ssh; may be empty
  std::string path;      // without slashes around it; of ssh with the leading one
  std::string revision;  // of hf; empty: main
  std::string query;     // of a URL: what signs it
  std::string shown;     // without password and query; the name in every message
};

// A local file of the same name wins over HOST:/PATH.
bool is_remote(std::string_view path);
Result<RemotePlace> parse_remote(const std::string& path);

// The path without password and query, which stay known to this process: parse_remote of what this
// returns has them again. Other paths are returned as they are.
std::string without_secrets(const std::string& path);

// A file name for the path of a URL: all but letters, digits, "-._~" and "/" becomes %XX.
std::string percent_encoded(std::string_view text, bool keeps_slash = true);
std::string percent_decoded(std::string_view text);

// "/" between two parts where both have letters.
std::string joined_remote(const std::string& folder, const std::string& below);

}  // namespace shw

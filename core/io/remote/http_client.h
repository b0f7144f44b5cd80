// Requests over HTTP that travel side by side, with retries. What comes back is hostile: lengths
// are held against what was asked, bodies have a limit, redirects are bounded and never leave
// HTTPS.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"

namespace shw {

struct HttpRequest {
  std::string method = "GET";  // GET or HEAD to read, PUT, POST or DELETE
  std::string url;
  std::string shown;    // the file in messages, without anything secret
  std::string userpwd;  // "user:password" of a URL
  std::vector<std::string> headers = {};
  // Called before each try: what signs a request holds the time of day.
  std::function<void(HttpRequest&)> sign = nullptr;
  // A range of a file, which must come back whole; or a body of at most `most` bytes.
  std::optional<std::uint64_t> offset = {};
  std::span<std::byte> out = {};
  std::uint64_t most = 0;
  // With `most`: only the first `most` bytes of a file are asked for.
  bool head_only = false;
  BytesView upload = {};
};

struct HttpAnswer {
  long status = 0;
  std::string etag, modified, link, region, retry_after, type;
  std::optional<std::uint64_t> length = {};             // of the body
  std::optional<std::uint64_t> first = {}, total = {};  // of Content-Range
  Bytes body = {};  // of what is no range; of an error its first 64 KiB
  long redirects = 0;
};

// Sends all of them, some at once. An Error where one cannot be had at all; a status that refuses
// (403, 404, 412) is an answer. Busy servers (429, 5xx), cuts and stalls are tried again.
Status http_fetch(std::span<HttpRequest> requests, std::span<HttpAnswer> answers);
Result<HttpAnswer> http_fetch(HttpRequest request);

// What a refusing status means, with the code that S3 puts into its body.
Error http_error(const HttpRequest& request, const HttpAnswer& answer, const std::string& advice);

}  // namespace shw

// A request to an HTTP server, and its answer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"

namespace shw {

struct HttpRequest {
  std::string method = "GET";  // GET or HEAD to read, PUT, POST or DELETE
  std::string url;
  std::string shown;    // the file in messages, without anything secret
  std::string userpwd;  // "user:password" of a URL
  std::vector<std::string> headers = {};
  // Signs the request; called before each try, because a signature contains the current time.
  std::function<void(HttpRequest&)> sign = nullptr;
  // If `out` is not empty: reads exactly this range of a file. Otherwise: reads a body of at most
  // `most` bytes.
  std::optional<std::uint64_t> offset = {};
  std::span<std::byte> out = {};
  std::uint64_t most = 0;
  // Requests only the first `most` bytes of a file.
  bool head_only = false;
  BytesView upload = {};
  // Sends it on a connection of its own. On a kept one that is closed without an answer libcurl
  // repeats a request unseen: HttpAnswer::tries would be too small.
  bool needs_exact_try_count = false;
  // How many times as long as usual the server may take to answer.
  long patience = 1;
};

struct HttpAnswer {
  long status = 0;
  std::string etag, modified, link, region, retry_after, type;
  std::optional<std::uint64_t> length = {};             // of the body
  std::optional<std::uint64_t> first = {}, total = {};  // from Content-Range
  Bytes body = {};                 // if the request has no range; on errors at most 64 KiB
  std::string redirected_to = {};  // the URL that answered; empty without a redirect
  int tries = 1;                   // how often it was asked until it answered
};

inline std::string_view body_text(const HttpAnswer& answer) {
  return {reinterpret_cast<const char*>(answer.body.data()), answer.body.size()};
}

}  // namespace shw

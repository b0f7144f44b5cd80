// What is asked of a server over HTTP, and what it answered.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.h"

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

}  // namespace shw

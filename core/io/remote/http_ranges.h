// Reads ranges of files over HTTP, and holds every answer against the file that was listed.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "core/io/remote/http_client.h"
#include "core/io/remote/remote_files.h"

namespace shw {

class HttpRanges {
 public:
  // What asks for a file, without a range.
  using RequestOf = std::function<HttpRequest(const RemoteFile&)>;
  HttpRanges(RequestOf request_of, std::string advice)
      : request_of_(std::move(request_of)), advice_(std::move(advice)) {}

  // An answer of another version of the file is kDamaged: bytes of two versions are never mixed.
  Status read(std::span<const RemoteRange> ranges);
  // What the first answer for a file said of its version.
  Status remember(const RemoteFile& file, const HttpAnswer& answer);

 private:
  struct Version {
    std::string etag, modified;
  };
  Status judge(const HttpRequest& request, const RemoteFile& file, const HttpAnswer& answer);

  RequestOf request_of_;
  std::string advice_;  // for an answer that refuses
  std::mutex guard_;
  std::map<std::string, Version> versions_;  // by path
};

}  // namespace shw

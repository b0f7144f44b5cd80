// Reads ranges of files over HTTP and checks every answer against the listed file.
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
  // Makes the request for a file, without a range.
  using MakeRequest = std::function<HttpRequest(const RemoteFile&)>;
  HttpRanges(MakeRequest request_of, std::string advice)
      : request_of_(std::move(request_of)), advice_(std::move(advice)) {}

  // Fails with kDamaged if the file has changed since it was listed: bytes of two versions are
  // never mixed.
  Status read(std::span<const RemoteRange> ranges);
  // Records the file's version (ETag, time) from the first answer, to compare with later ones.
  Status remember(const RemoteFile& file, const HttpAnswer& answer);

 private:
  struct Version {
    std::string etag, modified;
  };
  HttpRequest request_for(const RemoteRange& range);
  bool forget_expired(const RemoteFile& file, const HttpRequest& request, const HttpAnswer& answer);
  Status judge(const HttpRequest& request, const RemoteFile& file, const HttpAnswer& answer);

  MakeRequest request_of_;
  std::string advice_;  // added to the error if the server refuses
  std::mutex guard_;
  std::map<std::string, Version> versions_;  // by path
  // By path: where the server led, a signed URL of its store. Asking it directly saves one request
  // per range, which the hub counts and limits. It may expire.
  std::map<std::string, std::string> redirects_;
};

}  // namespace shw

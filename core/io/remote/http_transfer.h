// One request in progress in libcurl, with checks of the answer against the request. Part of
// http_client.cpp.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/io/remote/curl_library.h"
#include "core/io/remote/http_request.h"

namespace shw {

class HttpTransfer {
 public:
  HttpTransfer(HttpRequest& asked, HttpAnswer& to) : request(&asked), answer(&to) {}

  void begin(const CurlLibrary& curl);  // sets up `easy`
  void end(const CurlLibrary& curl);
  void read_status(const CurlLibrary& curl);
  // An error if the server's answer does not match the request: another range, too short or too
  // long.
  Status lie() const;
  // True if fewer bytes arrived than were requested.
  bool is_short() const;
  std::string why(const CurlLibrary& curl, int code, bool cut) const;
  std::string advice(int code) const;

  HttpRequest* request;
  HttpAnswer* answer;
  void* easy = nullptr;
  int tries = 0;

 private:
  static std::size_t receive_body(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t receive_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t send_body(char* data, std::size_t size, std::size_t count, void* self);
  bool keep(BytesView bytes);
  bool store_range_bytes(BytesView bytes);
  void read_header(std::string_view line);

  const CurlLibrary* curl_ = nullptr;
  void* list_ = nullptr;
  std::uint64_t received_ = 0, sent_ = 0;
  bool ignored_range_ = false, other_range_ = false, too_long_ = false;
};

}  // namespace shw

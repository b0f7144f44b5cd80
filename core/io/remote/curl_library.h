// libcurl, loaded when the first URL is opened: without URLs its thirty dependent libraries cost
// nothing and may be missing. The option numbers belong to curl's ABI, which never changes;
// curl_library_test.cpp compares them with curl's header if it is installed.
#pragma once

#include "core/base/result.h"

namespace shw {

// Layout of CURLMsg in curl/multi.h.
struct CurlMessage {
  int kind = 0;  // kCurlDone
  void* easy = nullptr;
  union {
    void* whatever;
    int result;
  } data = {nullptr};
};
inline constexpr int kCurlDone = 1;

// Option numbers, named as in curl/curl.h.
namespace curl_option {
inline constexpr int kWriteData = 10001, kUrl = 10002, kReadData = 10009, kUserAgent = 10018;
inline constexpr int kHttpHeader = 10023, kHeaderData = 10029, kCustomRequest = 10036;
inline constexpr int kUserPwd = 10005, kCaInfo = 10065;
inline constexpr int kWriteFunction = 20011, kReadFunction = 20012, kHeaderFunction = 20079;
inline constexpr int kInFileSize = 30115;
inline constexpr int kLowSpeedLimit = 19, kLowSpeedTime = 20, kNoBody = 44, kUpload = 46;
inline constexpr int kNetrc = 51, kFollowLocation = 52, kMaxRedirs = 68, kConnectTimeout = 78;
inline constexpr int kFreshConnect = 74, kNoSignal = 99, kProtocols = 181, kRedirProtocols = 182;
inline constexpr int kPipeWait = 237;
}  // namespace curl_option
inline constexpr long kCurlProtocolHttp = 1, kCurlProtocolHttps = 2, kCurlNetrcOptional = 1;
inline constexpr long kCurlGlobalAll = 3;
inline constexpr int kCurlInfoResponse = 0x200000 + 2;
inline constexpr int kCurlInfoRedirects = 0x200000 + 20;
inline constexpr int kCurlInfoEffectiveUrl = 0x100000 + 1;

struct CurlLibrary {
  int (*global_init)(long flags) = nullptr;
  void* (*easy_init)() = nullptr;
  void (*easy_reset)(void*) = nullptr;
  void (*easy_cleanup)(void*) = nullptr;
  int (*easy_setopt)(void*, int, ...) = nullptr;
  int (*easy_getinfo)(void*, int, ...) = nullptr;
  const char* (*easy_strerror)(int) = nullptr;
  void* (*slist_append)(void*, const char*) = nullptr;
  void (*slist_free)(void*) = nullptr;
  void* (*multi_init)() = nullptr;
  int (*multi_cleanup)(void*) = nullptr;
  int (*multi_add)(void*, void*) = nullptr;
  int (*multi_remove)(void*, void*) = nullptr;
  int (*multi_perform)(void*, int*) = nullptr;
  int (*multi_poll)(void*, void*, unsigned, int, int*) = nullptr;
  CurlMessage* (*multi_read)(void*, int*) = nullptr;
};

// kUnsupported if libcurl is not installed.
Result<const CurlLibrary*> curl_library();

}  // namespace shw

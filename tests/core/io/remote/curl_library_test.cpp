#include "core/io/remote/curl_library.h"

#include <doctest/doctest.h>

#if __has_include(<curl/curl.h>)
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

namespace option = shw::curl_option;

TEST_CASE("libcurl: the numbers of its ABI are those of its header") {
  CHECK(option::kWriteData == CURLOPT_WRITEDATA);
  CHECK(option::kUrl == CURLOPT_URL);
  CHECK(option::kReadData == CURLOPT_READDATA);
  CHECK(option::kUserAgent == CURLOPT_USERAGENT);
  CHECK(option::kHttpHeader == CURLOPT_HTTPHEADER);
  CHECK(option::kHeaderData == CURLOPT_HEADERDATA);
  CHECK(option::kCustomRequest == CURLOPT_CUSTOMREQUEST);
  CHECK(option::kUserPwd == CURLOPT_USERPWD);
  CHECK(option::kCaInfo == CURLOPT_CAINFO);
  CHECK(option::kWriteFunction == CURLOPT_WRITEFUNCTION);
  CHECK(option::kReadFunction == CURLOPT_READFUNCTION);
  CHECK(option::kHeaderFunction == CURLOPT_HEADERFUNCTION);
  CHECK(option::kInFileSize == CURLOPT_INFILESIZE_LARGE);
  CHECK(option::kLowSpeedLimit == CURLOPT_LOW_SPEED_LIMIT);
  CHECK(option::kLowSpeedTime == CURLOPT_LOW_SPEED_TIME);
  CHECK(option::kNoBody == CURLOPT_NOBODY);
  CHECK(option::kUpload == CURLOPT_UPLOAD);
  CHECK(option::kNetrc == CURLOPT_NETRC);
  CHECK(option::kFollowLocation == CURLOPT_FOLLOWLOCATION);
  CHECK(option::kMaxRedirs == CURLOPT_MAXREDIRS);
  CHECK(option::kConnectTimeout == CURLOPT_CONNECTTIMEOUT);
  CHECK(option::kFreshConnect == CURLOPT_FRESH_CONNECT);
  CHECK(option::kNoSignal == CURLOPT_NOSIGNAL);
  CHECK(option::kProtocols == 181);
  CHECK(option::kRedirProtocols == 182);
  CHECK(option::kPipeWait == CURLOPT_PIPEWAIT);
  CHECK(shw::kCurlInfoResponse == CURLINFO_RESPONSE_CODE);
  CHECK(shw::kCurlInfoRedirects == CURLINFO_REDIRECT_COUNT);
  CHECK(shw::kCurlDone == CURLMSG_DONE);
}
#endif

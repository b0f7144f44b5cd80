#include "core/io/remote/http_transfer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/base/letter_case.h"
#include "core/base/parse_text.h"
#include "core/base/version.h"
#include "core/io/remote/remote_environment.h"
#include "core/io/remote/remote_traffic.h"

namespace shw {
namespace {

namespace option = curl_option;

constexpr std::uint64_t kMaxErrorBody = std::uint64_t{64} << 10;
constexpr long kMaxRedirects = 5;

constexpr int kHttpStallSeconds = 20;

std::string host_of_url(const std::string& url) {
  const std::size_t begin = url.find("://");
  if (begin == url.npos) return "the server";
  std::string host = url.substr(begin + 3, url.find_first_of("/?#", begin + 3) - begin - 3);
  return host.substr(host.rfind('@') + 1);
}

}  // namespace

void HttpTransfer::begin(const CurlLibrary& curl) {
  curl_ = &curl;
  *answer = HttpAnswer{};
  received_ = sent_ = 0;
  ignored_range_ = other_range_ = too_long_ = false;
  if (request->sign) request->sign(*request);
  std::vector<std::string> headers = request->headers;
  if (request->offset)
    headers.push_back(fmt::format("Range: bytes={}-{}", *request->offset,
                                  *request->offset + request->out.size() - 1));
  else if (request->head_only)
    headers.push_back(fmt::format("Range: bytes=0-{}", request->most - 1));
  headers.push_back("Accept-Encoding: identity");
  headers.push_back("Expect:");
  for (const std::string& header : headers) list_ = curl.slist_append(list_, header.c_str());
  const std::string agent = std::string("shardwright/") + kProgramVersion;
  const bool secure = lowered(request->url).starts_with("https:");
  const long protocols = kCurlProtocolHttp | kCurlProtocolHttps;
  curl.easy_reset(easy);
  curl.easy_setopt(easy, option::kUrl, request->url.c_str());
  curl.easy_setopt(easy, option::kUserAgent, agent.c_str());
  curl.easy_setopt(easy, option::kHttpHeader, list_);
  curl.easy_setopt(easy, option::kNoSignal, 1L);
  curl.easy_setopt(easy, option::kFreshConnect, request->needs_exact_try_count ? 1L : 0L);
  curl.easy_setopt(easy, option::kNetrc, kCurlNetrcOptional);
  curl.easy_setopt(easy, option::kProtocols, protocols);
  curl.easy_setopt(easy, option::kRedirProtocols, secure ? kCurlProtocolHttps : protocols);
  curl.easy_setopt(easy, option::kMaxRedirs, kMaxRedirects);
  const long stall = stall_seconds(kHttpStallSeconds);
  curl.easy_setopt(easy, option::kConnectTimeout, std::min(10L, stall));
  curl.easy_setopt(easy, option::kLowSpeedLimit, 1L);
  curl.easy_setopt(easy, option::kLowSpeedTime, stall * request->patience);
  curl.easy_setopt(easy, option::kPipeWait, 0L);
  curl.easy_setopt(easy, option::kWriteFunction, &HttpTransfer::receive_body);
  curl.easy_setopt(easy, option::kWriteData, static_cast<void*>(this));
  curl.easy_setopt(easy, option::kHeaderFunction, &HttpTransfer::receive_header);
  curl.easy_setopt(easy, option::kHeaderData, static_cast<void*>(this));
  for (const char* variable : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* file = std::getenv(variable);
    if (file == nullptr || *file == '\0') continue;
    curl.easy_setopt(easy, option::kCaInfo, file);
    break;
  }
  if (!request->userpwd.empty()) curl.easy_setopt(easy, option::kUserPwd, request->userpwd.c_str());
  // Data is never sent to another host than the named one: only reads follow redirects.
  const bool reads = request->method == "GET" || request->method == "HEAD";
  curl.easy_setopt(easy, option::kFollowLocation, reads ? 1L : 0L);
  if (request->method == "HEAD") curl.easy_setopt(easy, option::kNoBody, 1L);
  if (reads) return;
  curl.easy_setopt(easy, option::kUpload, 1L);
  curl.easy_setopt(easy, option::kReadFunction, &HttpTransfer::send_body);
  curl.easy_setopt(easy, option::kReadData, static_cast<void*>(this));
  curl.easy_setopt(easy, option::kInFileSize, static_cast<std::int64_t>(request->upload.size()));
  curl.easy_setopt(easy, option::kCustomRequest, request->method.c_str());
}

void HttpTransfer::end(const CurlLibrary& curl) {
  if (list_ != nullptr) curl.slist_free(list_);
  list_ = nullptr;
}

void HttpTransfer::read_status(const CurlLibrary& curl) {
  curl.easy_getinfo(easy, kCurlInfoResponse, &answer->status);
  long redirects = 0;
  const char* url = nullptr;
  curl.easy_getinfo(easy, kCurlInfoRedirects, &redirects);
  curl.easy_getinfo(easy, kCurlInfoEffectiveUrl, &url);
  if (redirects > 0 && url != nullptr) answer->redirected_to = url;
}

std::size_t HttpTransfer::receive_header(char* data, std::size_t size, std::size_t count,
                                         void* self) {
  static_cast<HttpTransfer*>(self)->read_header({data, size * count});
  return size * count;
}

void HttpTransfer::read_header(std::string_view line) {
  // A status line begins a new answer: after a redirect or "100 Continue" another one follows.
  if (line.starts_with("HTTP/")) {
    *answer = HttpAnswer{};
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == line.npos || line.size() > 16384) return;
  const std::string name = lowered(line.substr(0, colon));
  const std::string_view value = trim(line.substr(colon + 1));
  if (name == "etag") answer->etag = value;
  if (name == "last-modified") answer->modified = value;
  if (name == "content-type") answer->type = lowered(value);
  if (name == "link") answer->link = value;
  if (name == "x-amz-bucket-region") answer->region = value;
  if (name == "retry-after") answer->retry_after = value;
  if (name == "content-length") answer->length = parse_number<std::uint64_t>(value);
  if (name != "content-range" || !lowered(value).starts_with("bytes ")) return;
  const std::string_view range = value.substr(6);
  const std::size_t slash = range.find('/');
  if (slash == range.npos) return;
  answer->total = parse_number<std::uint64_t>(range.substr(slash + 1));
  answer->first = parse_number<std::uint64_t>(range.substr(0, std::min(range.find('-'), slash)));
}

std::size_t HttpTransfer::receive_body(char* data, std::size_t size, std::size_t count,
                                       void* self) {
  auto& transfer = *static_cast<HttpTransfer*>(self);
  const BytesView bytes(reinterpret_cast<const std::byte*>(data), size * count);
  count_received_bytes(bytes.size());
  return transfer.keep(bytes) ? bytes.size() : 0;
}

bool HttpTransfer::keep(BytesView bytes) {
  if (answer->status == 0) curl_->easy_getinfo(easy, kCurlInfoResponse, &answer->status);
  const bool good = answer->status >= 200 && answer->status < 300;
  if (good && request->offset) return store_range_bytes(bytes);
  if (good && request->head_only && answer->status != 206 &&
      answer->length.value_or(UINT64_MAX) > request->most) {
    ignored_range_ = true;
    return false;
  }
  const std::uint64_t room = (good ? request->most : kMaxErrorBody) - answer->body.size();
  too_long_ = good && bytes.size() > room;
  if (too_long_) return false;
  if (bytes.size() > room) bytes = bytes.first(room);
  answer->body.insert(answer->body.end(), bytes.begin(), bytes.end());
  return true;
}

bool HttpTransfer::store_range_bytes(BytesView bytes) {
  const bool is_whole_file = *request->offset == 0 && answer->length == request->out.size();
  ignored_range_ = answer->status != 206 && !is_whole_file;
  other_range_ = answer->status == 206 && answer->first != *request->offset;
  too_long_ = bytes.size() > request->out.size() - received_;
  if (ignored_range_ || other_range_ || too_long_) return false;
  std::copy(bytes.begin(), bytes.end(),
            request->out.begin() + static_cast<std::ptrdiff_t>(received_));
  received_ += bytes.size();
  return true;
}

std::size_t HttpTransfer::send_body(char* data, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<HttpTransfer*>(self);
  const BytesView left = transfer.request->upload.subspan(transfer.sent_);
  const std::size_t length = std::min(left.size(), size * count);
  if (length != 0) std::memcpy(data, left.data(), length);
  transfer.sent_ += length;
  count_received_bytes(length);
  return length;
}

Status HttpTransfer::lie() const {
  const Place place{request->shown, request->offset};
  if (ignored_range_)
    return fail(
        ErrorKind::kUnsupported,
        "the server sends whole files only: it ignores which range is asked for", place,
        "Copy the checkpoint to a disk, or put it on a server that supports range requests.");
  if (other_range_)
    return fail(ErrorKind::kDamaged, "the server sends another range than the one asked for",
                place);
  if (too_long_)
    return fail(ErrorKind::kDamaged,
                fmt::format("the server sends more than the {} bytes that fit",
                            request->offset ? request->out.size() : request->most),
                place);
  return {};
}

bool HttpTransfer::is_short() const {
  if (answer->status < 200 || answer->status >= 300) return false;
  if (request->offset) return received_ != request->out.size();
  return request->method != "HEAD" && answer->length && answer->body.size() != *answer->length;
}

std::string HttpTransfer::why(const CurlLibrary& curl, int code, bool cut) const {
  const std::string host = host_of_url(request->url);
  if (cut)
    return fmt::format("{} sent {} of {} bytes, {} times in a row", host,
                       request->offset ? received_ : answer->body.size(),
                       request->offset ? request->out.size() : answer->length.value_or(0), tries);
  return fmt::format("{} cannot be read: {}{}", host, lowered(curl.easy_strerror(code)),
                     tries > 1 ? fmt::format(", {} times in a row", tries) : "");
}

std::string HttpTransfer::advice(int code) const {
  if (code == 60) return "Name the file of the authority that signed it in CURL_CA_BUNDLE.";
  if (code == 6) return "Check the spelling of the host, and http_proxy and https_proxy.";
  return {};
}

}  // namespace shw

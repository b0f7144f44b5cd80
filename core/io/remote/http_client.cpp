#include "core/io/remote/http_client.h"

#include <fmt/core.h>

#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/letter_case.h"
#include "core/base/progress.h"
#include "core/base/stop_requests.h"
#include "core/base/version.h"
#include "core/io/remote/curl_library.h"
#include "core/io/remote/http_transfer.h"
#include "core/io/remote/remote_traffic.h"

namespace shw {
namespace {

// Concurrent requests per call: 16 requests of 4 MiB saturate 10 Gbit/s at 50 ms latency.
constexpr std::size_t kTransfersAtOnce = 16;
constexpr int kMaxTries = 5;

// A curl multi handle, reused because it keeps its connections open.
struct CurlSession {
  explicit CurlSession(const CurlLibrary& library) : curl(library), multi(library.multi_init()) {}
  CurlSession(const CurlSession&) = delete;
  CurlSession& operator=(const CurlSession&) = delete;
  ~CurlSession() {
    for (void* easy : idle) curl.easy_cleanup(easy);
    curl.multi_cleanup(multi);
  }
  void* lease_handle() {
    if (idle.empty()) return curl.easy_init();
    void* easy = idle.back();
    idle.pop_back();
    return easy;
  }
  const CurlLibrary& curl;
  void* multi;
  std::vector<void*> idle = {};
};

class CurlSessions {
 public:
  std::unique_ptr<CurlSession> take(const CurlLibrary& curl) {
    std::lock_guard lock(guard_);
    release_connections_of_parent();
    if (idle_.empty()) return std::make_unique<CurlSession>(curl);
    auto session = std::move(idle_.back());
    idle_.pop_back();
    return session;
  }
  void give_back(std::unique_ptr<CurlSession> session) {
    std::lock_guard lock(guard_);
    idle_.push_back(std::move(session));
  }

 private:
  // In a process that was forked since, the connections are the parent's: closing them would end
  // them there.
  void release_connections_of_parent() {
    if (std::exchange(owner_, ::getpid()) == ::getpid()) return;
    for (auto& session : idle_) static_cast<void>(session.release());
    idle_.clear();
  }

  std::mutex guard_;
  std::vector<std::unique_ptr<CurlSession>> idle_;
  pid_t owner_ = ::getpid();
};

// Never destroyed, because a thread may still be reading when the program ends.
CurlSessions& curl_sessions() {
  static auto* sessions = new CurlSessions;
  return *sessions;
}

using Clock = std::chrono::steady_clock;

bool is_transient_error(int curl_code) {
  // 65: the server closed a kept connection while a body was sent. The next try sends it anew.
  constexpr int kTransientErrors[] = {6, 7, 16, 18, 28, 35, 52, 55, 56, 65, 92};
  return std::find(std::begin(kTransientErrors), std::end(kTransientErrors), curl_code) !=
         std::end(kTransientErrors);
}

bool is_retryable_status(long status) {
  return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

// Waits 0.2 s, 0.4 s, 0.8 s, 1.6 s, or as long as the server asks, at most 30 s.
std::chrono::milliseconds pause_before(int tries, const HttpAnswer& answer) {
  std::chrono::milliseconds pause(200 << (tries - 1));
  unsigned seconds = 0;
  const std::string& said = answer.retry_after;
  const auto [end, code] = std::from_chars(said.data(), said.data() + said.size(), seconds);
  if (code == std::errc() && end != said.data())
    pause = std::max(pause, std::chrono::milliseconds(1000 * std::min(seconds, 30U)));
  return pause;
}

// Runs all requests of one call in one session.
class HttpBatch {
 public:
  HttpBatch(CurlSession& session, std::span<HttpRequest> requests, std::span<HttpAnswer> answers)
      : session_(session) {
    for (std::size_t i = 0; i < requests.size(); ++i)
      transfers_.push_back(std::make_unique<HttpTransfer>(requests[i], answers[i]));
    for (auto& transfer : transfers_) waiting_.push_back({transfer.get(), Clock::now()});
    std::reverse(waiting_.begin(), waiting_.end());
  }
  HttpBatch(const HttpBatch&) = delete;
  HttpBatch& operator=(const HttpBatch&) = delete;
  ~HttpBatch() {
    while (!running_.empty()) leave(*running_.back());
  }

  Status run() {
    const StopSignal stop;
    while (!waiting_.empty() || !running_.empty()) {
      if (stop.is_set()) return cancelled_error();
      SHW_CHECK(begin_waiting());
      int left = 0;
      session_.curl.multi_perform(session_.multi, &left);
      SHW_CHECK(finish_done());
      if (!running_.empty())
        session_.curl.multi_poll(session_.multi, nullptr, 0, 100, nullptr);
      else if (!waiting_.empty())
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return {};
  }

 private:
  struct Waiting {
    HttpTransfer* transfer;
    Clock::time_point from;
  };

  Status begin_waiting() {
    const auto now = Clock::now();
    for (std::size_t i = waiting_.size(); i-- > 0 && running_.size() < kTransfersAtOnce;) {
      if (waiting_[i].from > now) continue;
      HttpTransfer& transfer = *waiting_[i].transfer;
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      transfer.easy = session_.lease_handle();
      if (transfer.easy == nullptr) return fail(ErrorKind::kIo, "libcurl has no memory left");
      transfer.begin(session_.curl);
      count_request();
      session_.curl.multi_add(session_.multi, transfer.easy);
      running_.push_back(&transfer);
    }
    return {};
  }

  void leave(HttpTransfer& transfer) {
    session_.curl.multi_remove(session_.multi, transfer.easy);
    transfer.end(session_.curl);
    session_.idle.push_back(transfer.easy);
    running_.erase(std::find(running_.begin(), running_.end(), &transfer));
  }

  Status finish_done() {
    int left = 0;
    while (CurlMessage* message = session_.curl.multi_read(session_.multi, &left)) {
      if (message->kind != kCurlDone) continue;
      void* easy = message->easy;
      const int code = message->data.result;
      auto found = std::find_if(running_.begin(), running_.end(),
                                [&](const HttpTransfer* one) { return one->easy == easy; });
      if (found == running_.end()) continue;
      HttpTransfer& transfer = **found;
      transfer.read_status(session_.curl);
      leave(transfer);
      SHW_CHECK(finish_or_retry(transfer, code));
    }
    return {};
  }

  // Finishes the transfer, schedules another try, or returns an error.
  Status finish_or_retry(HttpTransfer& transfer, int code) {
    HttpAnswer& answer = *transfer.answer;
    answer.tries = transfer.tries + 1;
    if (auto lie = transfer.lie(); !lie) return lie;
    const bool cut = code == 0 && transfer.is_short();
    if (code == 0 && !cut && !is_retryable_status(answer.status)) return {};
    const bool again = cut || is_retryable_status(answer.status) || is_transient_error(code);
    if (again && ++transfer.tries < kMaxTries) {
      waiting_.push_back({&transfer, Clock::now() + pause_before(transfer.tries, answer)});
      return {};
    }
    if (code == 0 && !cut) return {};  // tries are used up: returns the busy status
    return fail(ErrorKind::kIo, transfer.why(session_.curl, code, cut), {transfer.request->shown},
                transfer.advice(code));
  }

  CurlSession& session_;
  std::vector<std::unique_ptr<HttpTransfer>> transfers_;
  std::vector<Waiting> waiting_;
  std::vector<HttpTransfer*> running_;
};

// Extracts "NoSuchKey" from <Code>NoSuchKey</Code> in an error body of S3.
std::string s3_error_code(BytesView body) {
  const std::string text(reinterpret_cast<const char*>(body.data()), body.size());
  const std::size_t begin = text.find("<Code>");
  const std::size_t end = text.find("</Code>", begin);
  if (begin == text.npos || end == text.npos || end - begin > 70) return {};
  std::string code = text.substr(begin + 6, end - begin - 6);
  const bool plain = std::all_of(code.begin(), code.end(), [](char c) {
    const char small = lower(c);
    return small >= 'a' && small <= 'z';
  });
  return plain ? code : std::string();
}

std::string http_status_text(long status) {
  switch (status) {
    case 400:
      return "400, a bad request";
    case 401:
      return "401, not signed in";
    case 403:
      return "403, access denied";
    case 404:
      return "404, not found";
    case 412:
      return "412, the file has changed";
    case 416:
      return "416, no such range";
    case 429:
      return "429, too many requests";
    default:
      return std::to_string(status);
  }
}

}  // namespace

Status http_fetch(std::span<HttpRequest> requests, std::span<HttpAnswer> answers) {
  if (requests.empty()) return {};
  SHW_TRY(const CurlLibrary* curl, curl_library());
  auto session = curl_sessions().take(*curl);
  if (session->multi == nullptr) return fail(ErrorKind::kIo, "libcurl has no memory left");
  Status done = [&] {
    HttpBatch batch(*session, requests, answers);
    return batch.run();
  }();
  curl_sessions().give_back(std::move(session));
  return done;
}

Result<HttpAnswer> http_fetch(HttpRequest request) {
  HttpAnswer answer;
  SHW_CHECK(http_fetch({&request, 1}, {&answer, 1}));
  return answer;
}

Error http_error(const HttpRequest& request, const HttpAnswer& answer, const std::string& advice) {
  const std::string code = s3_error_code(answer.body);
  const std::string tried = is_retryable_status(answer.status)
                                ? fmt::format(", {} times in a row", kMaxTries)
                                : std::string();
  return {ErrorKind::kIo,
          fmt::format("the server answers {}{}{}", http_status_text(answer.status),
                      code.empty() ? "" : " (" + code + ")", tried),
          {request.shown, request.offset},
          advice};
}

}  // namespace shw

#include "core/base/team.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include "core/base/hash.h"
#include "core/base/in_runs.h"
#include "core/base/packed.h"
#include "core/base/parallel.h"
#include "core/base/stop_wishes.h"
#include "core/base/threads.h"
#include "core/base/words.h"
#include "core/base/worker_error.h"

namespace shw {
namespace {

// Of one member in a round: seconds of work, against which the words of a round are nothing.
constexpr std::uint64_t kRoundBytes = std::uint64_t{1} << 30;
constexpr std::size_t kRoundThings = 1 << 14;

// Often enough that nobody who works is taken for dead, seldom enough to cost nothing.
constexpr std::chrono::seconds kBeat(2);
constexpr std::chrono::seconds kStill(120);

// When each of the others was last seen to move something.
class Movement {
 public:
  explicit Movement(std::size_t members) : seen_(members) {}

  // What was heard last, where somebody is not heard any more.
  std::string words() const {
    constexpr std::size_t kMostTold = 8;
    std::string told;
    for (std::size_t i = 0; i < std::min(seen_.size(), kMostTold); ++i) {
      if (!seen_[i].moved) return {};
      told += fmt::format("{}worker {} had moved {}", i == 0 ? "" : ", ", i,
                          human_bytes(*seen_[i].moved));
    }
    return told + (seen_.size() > kMostTold ? ", and so on" : "");
  }

  Status note(std::size_t member, bool is_done, std::uint64_t moved, const std::string& step) {
    const auto now = std::chrono::steady_clock::now();
    Seen& seen = seen_[member];
    if (is_done || !seen.moved || *seen.moved != moved) seen = {moved, now};
    if (now - seen.at < kStill) return {};
    return fail(ErrorKind::kIo, fmt::format("in `{}` worker {} has moved no byte for {} s: its "
                                            "disk may hang",
                                            step, member, kStill.count()));
  }

 private:
  struct Seen {
    std::optional<std::uint64_t> moved;
    std::chrono::steady_clock::time_point at{};
  };
  std::vector<Seen> seen_;
};

// What it does besides, what it has done of it, and why it goes on no more.
Bytes beat_of(const std::optional<Status>& done, const BesideWork& beside) {
  auto add = [](Packer& words, const Bytes& bytes) {
    words.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  };
  Packer words;
  words.add(std::uint64_t{done.has_value()});
  words.add(beside.progress == nullptr ? 0 : beside.progress->done.load());
  add(words, beside.news ? beside.news() : Bytes{});
  add(words, done && !*done ? packed_error(done->error()) : Bytes{});
  return words.take();
}

struct Heard {
  bool all_done = true;               // nobody works any more
  std::optional<Error> stopped = {};  // of the first that cannot go on
  Status took_news = {};
};
Result<Heard> hear_beats(const std::vector<Bytes>& told, const BesideWork& beside,
                         Movement& movement) {
  Heard heard;
  for (std::size_t member = 0; member < told.size(); ++member) {
    Unpacker words(told[member]);
    SHW_TRY(std::uint64_t is_done, words.number());
    SHW_TRY(std::uint64_t moved, words.number());
    SHW_TRY(std::string news, words.text());
    SHW_TRY(std::string error, words.text());
    heard.all_done = heard.all_done && is_done != 0;
    if (!error.empty() && !heard.stopped)
      heard.stopped =
          error_of_worker(static_cast<int>(member), std::as_bytes(std::span(std::as_const(error))));
    if (beside.progress != nullptr)
      SHW_CHECK(movement.note(member, is_done != 0, moved, beside.step));
    if (beside.hear && !news.empty() && heard.took_news)
      heard.took_news = beside.hear(member, std::as_bytes(std::span(std::as_const(news))));
  }
  return heard;
}

// The others have stopped: nothing more of it is needed. A Ctrl-C that comes meanwhile sets the
// same flag, and is not to be lost when the flag goes back.
void stop_waiting(std::future<Status>& work, Progress* progress) {
  if (progress == nullptr || is_cancelled(progress)) return work.wait();
  const unsigned before = stop_wishes.load();
  progress->cancel();
  work.wait();
  progress->cancelled = false;
  if (stop_wishes.load() != before) progress->cancel();
}

// What becomes of work that is not to go on because of `why`: what it met itself counts for more.
Status stopped_work(std::future<Status>& work, Progress* progress, const Error& why) {
  const bool was_cancelled = is_cancelled(progress);
  stop_waiting(work, progress);
  Status done = work.get();
  if (!done && (was_cancelled || done.error().kind != ErrorKind::kCancelled)) return done;
  return tl::unexpected<Error>(why);
}

Status not_heard(Error error, const Movement& movement) {
  // Where it was told why, how far each had come explains nothing.
  const bool was_told =
      error.kind == ErrorKind::kCancelled || error.message.find(" stopped: ") != std::string::npos;
  if (const std::string words = movement.words(); !was_told && !words.empty())
    error.message += " (when last heard, " + words + ")";
  return tl::unexpected<Error>(std::move(error));
}

// Where one cannot go on, all stop their work and return together: whoever clears away what they
// made knows that nobody writes into it any more.
Status beat_until_done(Team& team, const BesideWork& beside, std::future<Status>& work) {
  Movement movement(team.size());
  std::optional<Status> own;
  while (true) {
    if (!own && work.wait_for(kBeat) == std::future_status::ready) own = work.get();
    // Whoever stops a process waits for no other, and may end it soon.
    if (own && !*own && is_cancelled(beside.progress)) return *own;
    auto told = team.tell_all(beat_of(own, beside), beside.step);
    // Who has heard it may have left before all have.
    if (!told && own && !*own) return *own;
    if (!told) return not_heard(std::move(told).error(), movement);
    SHW_TRY(Heard heard, hear_beats(*told, beside, movement));
    const Error* why = heard.stopped ? &*heard.stopped : nullptr;
    if (!heard.took_news) why = &heard.took_news.error();
    if (why != nullptr && !own)
      own = stopped_work(work, beside.progress, *why);
    else if (why != nullptr && *own && (heard.all_done || !heard.took_news))
      own = tl::unexpected<Error>(*why);
    if (heard.all_done) return *own;
  }
}

// As many at once as fit, of those from `first` on; runs of neighbours where nobody counts.
Status each_held(const Held& held, std::span<const std::uint64_t> costs, std::size_t first,
                 const std::function<Status(std::size_t)>& work) {
  if (held.bytes.empty()) return each_in_runs(costs, work);
  return each_within(held.most, held.bytes.subspan(first, costs.size()), work);
}

// Where the round ends that begins here.
std::size_t end_of_round(std::span<const std::uint64_t> costs, std::size_t first,
                         std::size_t members) {
  const std::uint64_t most = kRoundBytes * members;
  std::uint64_t bytes = 0;
  std::size_t end = first;
  while (end < costs.size() && end - first < kRoundThings * members &&
         (end == first || costs[end] <= most - bytes)) {
    bytes += std::min(costs[end++], most - bytes);
  }
  return end;
}

Result<Bytes> find_share(const TeamWork& work, std::size_t first, Share own,
                         const std::string& agreed) {
  std::vector<Bytes> found(own.last - own.first);
  const auto costs = work.costs.subspan(first + own.first, found.size());
  SHW_CHECK(each_held(work.held, costs, first + own.first, [&](std::size_t i) -> Status {
    SHW_TRY(found[i], work.find(first + own.first + i));
    return {};
  }));
  Packer message;
  message.add(agreed);
  for (const Bytes& one : found)
    message.add(std::string_view(reinterpret_cast<const char*>(one.data()), one.size()));
  return message.take();
}

Status hear_share(const TeamWork& work, std::size_t first, Share share, std::size_t member,
                  const std::string& agreed, BytesView message) {
  Unpacker words(message);
  SHW_TRY(std::string theirs, words.text());
  if (theirs != agreed) {
    return fail(ErrorKind::kIo,
                fmt::format("in `{}` worker {} looks at other things: not all see the same "
                            "checkpoint, or were asked the same",
                            work.step, member));
  }
  for (std::size_t i = share.first; i < share.last; ++i) {
    SHW_TRY(std::string found, words.text());
    SHW_CHECK(work.hear(first + i, std::as_bytes(std::span(found))));
  }
  return {};
}

Status do_round(Team& team, const TeamWork& work, std::size_t first, std::size_t end,
                const std::string& agreed) {
  auto shares = deal(work.costs.subspan(first, end - first), team.size());
  Bytes own;
  BesideWork beside{work.step, {}, work.progress};
  beside.work = [&]() -> Status {
    SHW_TRY(own, find_share(work, first, shares[team.rank()], agreed));
    return {};
  };
  SHW_CHECK(work_beside(team, beside));
  SHW_TRY(auto told, team.tell_all(std::move(own), work.step));
  for (std::size_t member = 0; member < team.size(); ++member)
    SHW_CHECK(hear_share(work, first, shares[member], member, agreed, told[member]));
  return {};
}

}  // namespace

Result<TeamTraffic> traffic_of_all(Team& team) {
  TeamTraffic traffic = team.traffic();
  Packer own;
  own.add(traffic.bytes);
  SHW_TRY(auto told, team.tell_all(own.take(), "count what was sent"));
  traffic.bytes = 0;
  for (const Bytes& message : told) {
    Unpacker words(message);
    SHW_TRY(const std::uint64_t bytes, words.number());
    traffic.bytes += bytes;
  }
  return traffic;
}

Result<std::vector<std::uint32_t>> machines_of(Team& team) {
  const std::string own = team.machine();
  const BytesView bytes = std::as_bytes(std::span(own));
  SHW_TRY(auto told, team.tell_all(Bytes(bytes.begin(), bytes.end()), "machines"));
  std::vector<std::uint32_t> machines;
  for (const Bytes& one : told)
    machines.push_back(
        static_cast<std::uint32_t>(std::find(told.begin(), told.end(), one) - told.begin()));
  return machines;
}

Status meet(Team& team, const std::string& step) {
  SHW_TRY([[maybe_unused]] auto told, team.tell_all({}, step));
  return {};
}

Status work_beside(Team& team, const BesideWork& beside) {
  auto work = run_beside(beside.work);
  Status done = beat_until_done(team, beside, work);
  if (done) return done;
  team.stop(done.error());
  if (work.valid()) stop_waiting(work, beside.progress);
  return done;
}

std::vector<Share> deal(std::span<const std::uint64_t> costs, std::size_t members) {
  double all = 0;
  for (std::uint64_t cost : costs) all += static_cast<double>(cost) + 1;
  std::vector<Share> shares(members);
  double dealt = 0;
  std::size_t at = 0;
  for (std::size_t member = 0; member < members; ++member) {
    const double until = all * static_cast<double>(member + 1) / static_cast<double>(members);
    shares[member].first = at;
    // A thing belongs to whoever has its middle.
    while (at < costs.size() &&
           (member + 1 == members || dealt + (static_cast<double>(costs[at]) + 1) / 2 < until))
      dealt += static_cast<double>(costs[at++]) + 1;
    shares[member].last = at;
  }
  return shares;
}

Result<std::vector<std::string>> find_each(Team* team, const EachWork& work) {
  std::vector<std::string> found(work.costs.size());
  if (team == nullptr) {
    SHW_CHECK(each_held(work.held, work.costs, 0, [&](std::size_t i) -> Status {
      if (is_cancelled(work.progress)) return cancelled_error();
      SHW_TRY(found[i], work.find(i));
      return {};
    }));
    return found;
  }
  TeamWork dealt{work.step, work.costs, {}, {}, work.progress, work.held};
  dealt.find = [&](std::size_t i) -> Result<Bytes> {
    if (is_cancelled(work.progress)) return cancelled_error();
    SHW_TRY(std::string words, work.find(i));
    auto bytes = std::as_bytes(std::span(words));
    return Bytes(bytes.begin(), bytes.end());
  };
  dealt.hear = [&](std::size_t i, BytesView words) -> Status {
    found[i].assign(reinterpret_cast<const char*>(words.data()), words.size());
    return {};
  };
  SHW_CHECK(each_in_team(*team, dealt));
  return found;
}

Result<Bytes> by_first(Team* team, const std::string& step,
                       const std::function<Result<Bytes>()>& work, Progress* progress) {
  if (team == nullptr) return work();
  Bytes found;
  BesideWork beside{step, {}, progress};
  beside.work = [&]() -> Status {
    if (team->rank() != 0) return {};
    SHW_TRY(found, work());
    return {};
  };
  SHW_CHECK(work_beside(*team, beside));
  SHW_TRY(auto told, team->tell_all(std::move(found), step));
  return std::move(told.front());
}

Status each_in_team(Team& team, const TeamWork& work) {
  const std::string agreed = to_hex(hash_of(std::as_bytes(work.costs)));
  std::size_t first = 0;
  do {
    std::size_t end = end_of_round(work.costs, first, team.size());
    if (Status done = do_round(team, work, first, end, agreed); !done) {
      team.stop(done.error());
      return done;
    }
    first = end;
  } while (first < work.costs.size());
  return {};
}

}  // namespace shw

// Processes that do the same work on the same things at the same time: what costs is dealt out
// among them, and each learns what the others found, so that all of them go on alike. What carries
// their words is core/cluster's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/progress.h"
#include "core/base/result.h"

namespace shw {

// What the messages of Team::exchange() travelled by, and how much was sent.
struct TeamTraffic {
  std::string by = {};   // "mpi", "nccl"; empty: nobody says
  std::string why = {};  // it was that
  std::uint64_t bytes = 0;
};

class Team {
 public:
  virtual ~Team() = default;
  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;
  // Where this one runs: members that say the same share one page cache, and see the same files.
  virtual std::string machine() const = 0;
  // What each has to say in a step, by rank: the same for all of them. None goes on before all have
  // spoken; an error where one is silent for too long.
  virtual Result<std::vector<Bytes>> tell_all(Bytes own, const std::string& step) = 0;
  // A message for each, by rank, becomes a message of each; the one to itself stays as it is.
  virtual Result<std::vector<Bytes>> exchange(std::vector<Bytes> to_each,
                                              const std::string& step) = 0;
  // The others are told that this one stops, and why.
  virtual void stop(const Error& why) = 0;
  // Of this member alone.
  virtual TeamTraffic traffic() const { return {}; }
};

// The same with the bytes of all members.
Result<TeamTraffic> traffic_of_all(Team& team);
// By member: the first one that runs where it does.
Result<std::vector<std::uint32_t>> machines_of(Team& team);

// None goes on before all have come here.
Status meet(Team& team, const std::string& step);

// Work that each does for itself and that may take longer than the others would wait in silence.
struct BesideWork {
  std::string step;
  std::function<Status()> work;  // on a thread of its own
  // What shows that it moves; null: nobody looks. It is cancelled where the others have stopped.
  Progress* progress = nullptr;
  // What is new since it was last asked, and what another one said was. May be empty.
  std::function<Bytes()> news = {};
  std::function<Status(std::size_t member, BytesView news)> hear = {};
};
// Until all members have done theirs. A member that works and moves nothing for two minutes is an
// error that names it.
Status work_beside(Team& team, const BesideWork& beside);

// [first, last) of things that are dealt out.
struct Share {
  std::size_t first = 0, last = 0;
};
// Things of these costs, in shares of neighbours that cost about the same, one a member.
std::vector<Share> deal(std::span<const std::uint64_t> costs, std::size_t members);

// What a member holds in memory while it finds things, in bytes, one a thing: those that it works
// on at once hold no more than `most` together. Empty: nobody counts.
struct Held {
  std::span<const std::uint64_t> bytes = {};
  std::uint64_t most = UINT64_MAX;
};

struct TeamWork {
  std::string step;                      // what it is called where somebody waits in vain
  std::span<const std::uint64_t> costs;  // in bytes, one a thing; at most 256 MiB are best
  // What is found of a thing, from several threads. An error ends the work of all.
  std::function<Result<Bytes>(std::size_t thing)> find;
  // Everything that was found, in order, on every member, whoever found it.
  std::function<Status(std::size_t thing, BytesView found)> hear;
  Progress* progress = nullptr;  // as in BesideWork
  Held held = {};
};
// Each thing is found by exactly one member. In rounds, so that a member that hangs is missed soon.
Status each_in_team(Team& team, const TeamWork& work);

// What is found of each thing, in order, by threads; the members of a team share the things out,
// and all of them get all of it. `team` and `progress` may be null.
struct EachWork {
  std::string step;
  std::span<const std::uint64_t> costs;  // as in TeamWork
  std::function<Result<std::string>(std::size_t thing)> find;
  Progress* progress = nullptr;
  Held held = {};
};
Result<std::vector<std::string>> find_each(Team* team, const EachWork& work);

// What the first member alone finds, heard by all; without a team it is this one. `progress` as in
// BesideWork.
Result<Bytes> by_first(Team* team, const std::string& step,
                       const std::function<Result<Bytes>()>& work, Progress* progress = nullptr);

}  // namespace shw

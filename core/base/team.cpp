#include "core/base/team.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/hash.h"
#include "core/base/packed.h"
#include "core/base/parallel.h"

namespace shw {
namespace {

// Of one member in a round: seconds of work, against which the words of a round are nothing.
constexpr std::uint64_t kRoundBytes = std::uint64_t{1} << 30;
constexpr std::size_t kRoundThings = 1 << 14;

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
  SHW_CHECK(each_in_parallel(found.size(), [&](std::size_t i) -> Status {
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
  SHW_TRY(Bytes own, find_share(work, first, shares[team.rank()], agreed));
  SHW_TRY(auto told, team.tell_all(std::move(own), work.step));
  for (std::size_t member = 0; member < team.size(); ++member)
    SHW_CHECK(hear_share(work, first, shares[member], member, agreed, told[member]));
  return {};
}

}  // namespace

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

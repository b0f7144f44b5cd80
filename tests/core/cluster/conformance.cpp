#include "core/cluster/conformance.h"

#include <random>
#include <string>
#include <thread>

#include "core/cluster/collectives.h"

namespace shw::test {
namespace {

using namespace std::chrono_literals;

const WaitStep kStep{"conformance", 30s};
// Timeout of the waiting ranks; the silent rank is silent for longer.
const WaitStep kShort{"patience", 300ms};
constexpr auto kSilence = 900ms;

Status expect(bool holds, const std::string& what) {
  if (holds) return {};
  return fail(ErrorKind::kDamaged, what);
}

// Bytes that are unique to this pair of ranks.
Bytes bytes_from(int from, int to, std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(from * 1000 + to));
  Bytes bytes(size);
  for (std::byte& one : bytes) one = static_cast<std::byte>(random());
  return bytes;
}

std::vector<int> peers_of(const Transport& transport) {
  std::vector<int> peers;
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (peer != transport.rank()) peers.push_back(peer);
  }
  return peers;
}

bool says(const Status& status, const std::string& part) {
  return !status && status.error().message.find(part) != std::string::npos;
}

// Checks that the transport failed as expected and cannot be used any more.
Status expect_dead(Transport& transport, const Status& ended, const std::string& part) {
  SHW_CHECK(expect(!ended, "no error where `" + part + "` was expected"));
  SHW_CHECK(expect(says(ended, part), "instead of `" + part + "`: " + ended.error().message));
  Bytes byte(1);
  for (int peer : peers_of(transport)) {
    SHW_CHECK(expect(!transport.send(peer, Tag::kBytes, byte), "sends after an error"));
    SHW_CHECK(expect(!transport.receive(peer, Tag::kBytes, byte), "receives after an error"));
  }
  return expect(!transport.wait(kStep), "waits after an error");
}

Status every_size(Transport& transport) {
  SHW_CHECK(expect(transport.rank() >= 0 && transport.rank() < transport.size(), "rank and size"));
  for (std::size_t size : {0u, 1u, 7u, 4096u, (1u << 20) - 1, (1u << 20) + 1}) {
    std::vector<Bytes> out, in;
    for (int peer : peers_of(transport)) {
      out.push_back(bytes_from(transport.rank(), peer, size));
      in.emplace_back(size);
    }
    std::size_t at = 0;
    for (int peer : peers_of(transport)) {
      SHW_CHECK(transport.receive(peer, Tag::kBytes, in[at]));
      SHW_CHECK(transport.send(peer, Tag::kBytes, out[at++]));
    }
    SHW_CHECK(transport.wait(kStep));
    at = 0;
    for (int peer : peers_of(transport)) {
      SHW_CHECK(expect(in[at++] == bytes_from(peer, transport.rank(), size),
                       "other bytes than were sent, of " + std::to_string(size)));
    }
  }
  return {};
}

// Sizes around the largest message that is sent at once: 1,000 bytes in these suites.
Status around_a_piece(Transport& transport) {
  for (std::size_t size : {999u, 1000u, 1001u, 1999u, 2000u, 2001u, 5000u}) {
    std::vector<Bytes> to_each;
    for (int peer = 0; peer < transport.size(); ++peer)
      to_each.push_back(bytes_from(transport.rank(), peer, size));
    SHW_TRY(auto come, exchange(transport, std::move(to_each), 1 << 20, kStep));
    for (int peer = 0; peer < transport.size(); ++peer) {
      SHW_CHECK(
          expect(come[static_cast<std::size_t>(peer)] == bytes_from(peer, transport.rank(), size),
                 "other bytes than were sent, of " + std::to_string(size)));
    }
  }
  return {};
}

// Ten messages of each tag to the next worker, which receives one tag first.
Status in_order(Transport& transport) {
  if (transport.size() == 1) return {};
  const int next = (transport.rank() + 1) % transport.size();
  const int last = (transport.rank() + transport.size() - 1) % transport.size();
  std::vector<Bytes> out, first(10, Bytes(3)), second(10, Bytes(3));
  for (int i = 0; i < 10; ++i) out.push_back(Bytes(3, static_cast<std::byte>(i)));
  for (const Bytes& bytes : out) {
    SHW_CHECK(transport.send(next, Tag::kBytes, bytes));
    SHW_CHECK(transport.send(next, Tag::kSizes, bytes));
  }
  for (Bytes& bytes : first) SHW_CHECK(transport.receive(last, Tag::kSizes, bytes));
  for (Bytes& bytes : second) SHW_CHECK(transport.receive(last, Tag::kBytes, bytes));
  SHW_CHECK(transport.wait(kStep));
  return expect(first == out && second == out, "messages came in another order");
}

// A hundred rounds of messages of any size, many of them empty.
Status many_rounds(Transport& transport) {
  for (int round = 0; round < 100; ++round) {
    auto size_of = [&](int from, int to) -> std::size_t {
      std::mt19937 random(static_cast<unsigned>((round * 64 + from) * 64 + to));
      return random() % 3 == 0 ? 0 : random() % 3000;
    };
    std::vector<Bytes> to_each;
    for (int peer = 0; peer < transport.size(); ++peer)
      to_each.push_back(bytes_from(transport.rank(), peer, size_of(transport.rank(), peer)));
    SHW_TRY(auto come, exchange(transport, std::move(to_each), 1 << 20, kStep));
    for (int peer = 0; peer < transport.size(); ++peer) {
      SHW_CHECK(expect(come[static_cast<std::size_t>(peer)] ==
                           bytes_from(peer, transport.rank(), size_of(peer, transport.rank())),
                       "other bytes in round " + std::to_string(round)));
    }
  }
  return {};
}

Status together(Transport& transport) {
  const auto rank = static_cast<std::uint64_t>(transport.rank());
  for (int root = 0; root < transport.size(); ++root) {
    Bytes own = transport.rank() == root ? bytes_from(root, root, 5000) : Bytes();
    SHW_TRY(Bytes all, broadcast(transport, root, own, 1 << 20, kStep));
    SHW_CHECK(expect(all == bytes_from(root, root, 5000), "broadcast"));
  }
  SHW_TRY(auto nothing, broadcast(transport, 0, {}, 0, kStep));
  SHW_CHECK(expect(nothing.empty(), "broadcast of nothing"));
  SHW_CHECK(barrier(transport, kStep));
  SHW_TRY(auto gathered,
          all_gather(transport, bytes_from(transport.rank(), 0, 10 * rank), 1 << 20, kStep));
  for (int peer = 0; peer < transport.size(); ++peer) {
    auto at = static_cast<std::size_t>(peer);
    SHW_CHECK(expect(gathered[at] == bytes_from(peer, 0, 10 * at), "gathered bytes"));
  }
  return {};
}

Status wrong_peers(Transport& transport) {
  Bytes byte(1);
  for (int peer : {-1, transport.size(), transport.rank()}) {
    SHW_CHECK(expect(!transport.send(peer, Tag::kBytes, byte), "sends to nobody"));
    SHW_CHECK(expect(!transport.receive(peer, Tag::kBytes, byte), "receives from nobody"));
  }
  return barrier(transport, kStep);  // and goes on
}

// Worker 0 sends `sent` bytes while worker 1 expects another number.
Status sizes_differ(Transport& transport, std::size_t sent, std::size_t agreed) {
  if (transport.size() == 1) return {};
  Bytes bytes(transport.rank() == 0 ? sent : agreed);
  if (transport.rank() == 0) SHW_CHECK(transport.send(1, Tag::kBytes, bytes));
  if (transport.rank() == 1) SHW_CHECK(transport.receive(0, Tag::kBytes, bytes));
  Status ended = transport.wait(kStep);
  // A sender may notice only in its next operation.
  if (transport.rank() != 1 && ended) ended = barrier(transport, kStep);
  return expect_dead(transport, ended,
                     transport.rank() == 1 ? "worker 0 sent" : "worker 1 stopped");
}

Status too_long(Transport& transport) {
  return sizes_differ(transport, 12, 10);
}
Status too_short(Transport& transport) {
  return sizes_differ(transport, 10, 12);
}
Status too_many_pieces(Transport& transport) {
  return sizes_differ(transport, 3000, 2000);
}
Status too_few_pieces(Transport& transport) {
  return sizes_differ(transport, 2000, 3000);
}

// The last worker is silent: the errors of all others name it, the step and the bytes.
Status silent_worker(Transport& transport) {
  if (transport.size() == 1) return {};
  const int silent = transport.size() - 1;
  if (transport.rank() == silent) {
    std::this_thread::sleep_for(kSilence);
    // Messages that others sent before their timeout may still arrive.
    Status ended = barrier(transport, kStep);
    if (ended) ended = barrier(transport, kStep);
    return expect_dead(transport, ended, "stopped: in `patience`");
  }
  std::vector<Bytes> to_each(static_cast<std::size_t>(transport.size()), Bytes(100));
  auto come = exchange(transport, std::move(to_each), 1 << 20, kShort);
  Status ended;
  if (!come) ended = tl::unexpected<Error>(std::move(come).error());
  SHW_CHECK(expect(says(ended, "`patience`"), "the step is not named"));
  SHW_CHECK(expect(says(ended, "8 bytes were to come"), "the bytes are not named"));
  return expect_dead(transport, ended, "worker " + std::to_string(silent) + " sent nothing");
}

// One worker stops and gives the reason.
Status stopping_worker(Transport& transport) {
  const std::string why = "the disk is full";
  const int stopping = transport.size() / 2;
  if (transport.rank() == stopping) {
    transport.abort({ErrorKind::kIo, why, {"out/model.bin"}});
    return expect_dead(transport, transport.wait(kStep), "");
  }
  return expect_dead(transport, barrier(transport, kStep),
                     "worker " + std::to_string(stopping) + " stopped: out/model.bin: " + why);
}

// More bytes are announced than anyone accepts.
Status too_much_announced(Transport& transport) {
  if (transport.size() == 1) return {};
  std::vector<Bytes> to_each(static_cast<std::size_t>(transport.size()));
  if (transport.rank() == 0) to_each[1].resize(5000);
  auto come = exchange(transport, std::move(to_each), transport.rank() == 1 ? 4999 : 6000, kStep);
  Status ended;
  if (!come) ended = tl::unexpected<Error>(std::move(come).error());
  if (transport.rank() != 1 && ended) ended = barrier(transport, kStep);
  return expect_dead(transport, ended,
                     transport.rank() == 1 ? "worker 0 announced 5000" : "worker 1 stopped");
}

constexpr ConformanceCase kCases[] = {
    {"messages of every size, each way", every_size},
    {"messages around the largest piece", around_a_piece},
    {"messages of one pair and tag keep their order", in_order},
    {"a hundred rounds of any sizes", many_rounds},
    {"broadcast, reduction, barrier", together},
    {"a worker that is not there is refused", wrong_peers},
    {"a message that is too long ends all", too_long},
    {"a message that is too short ends all", too_short},
    {"a message of too many pieces ends all", too_many_pieces},
    {"a message of too few pieces ends all", too_few_pieces},
    {"a silent worker ends all, and is named", silent_worker},
    {"a worker that stops says why to all", stopping_worker},
    {"more than is taken ends all", too_much_announced},
};

}  // namespace

std::span<const ConformanceCase> conformance_cases() {
  return kCases;
}

}  // namespace shw::test

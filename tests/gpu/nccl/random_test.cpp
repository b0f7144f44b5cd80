// Ranks that start and wait in any order that messages of their own size allow: transports must not
// deadlock.
#include <doctest/doctest.h>

#include <random>
#include <string>

#include "core/cluster/loopback.h"
#include "on_double.h"

using namespace shw;
using namespace shw::test;

namespace {

struct Message {
  int from = 0, to = 0;
  Tag tag{};
  std::size_t bytes = 0;
};

// The messages of each rank in a common order: the first unfinished message is always started by
// both ranks, so that it can finish.
std::vector<Message> random_messages(unsigned seed, int workers) {
  std::mt19937 random(seed);
  std::vector<Message> messages(40);
  for (Message& one : messages) {
    one.from = static_cast<int>(random() % static_cast<unsigned>(workers));
    one.to = static_cast<int>(random() % static_cast<unsigned>(workers - 1));
    if (one.to >= one.from) ++one.to;
    one.tag = static_cast<Tag>(random() % 2);
    one.bytes = random() % 4 == 0 ? 0 : random() % 3500;
  }
  return messages;
}

Bytes content(const Message& message, std::size_t at) {
  std::mt19937 random(static_cast<unsigned>(at));
  Bytes bytes(message.bytes);
  for (std::byte& one : bytes) one = static_cast<std::byte>(random());
  return bytes;
}

Status run_part(Transport& transport, const std::vector<Message>& messages, unsigned seed) {
  const WaitStep step{"random", std::chrono::seconds(20)};
  std::mt19937 random(seed * 64 + static_cast<unsigned>(transport.rank()));
  std::vector<Bytes> sent(messages.size()), come(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& one = messages[i];
    sent[i] = content(one, i);
    come[i].resize(one.bytes);
    if (one.from == transport.rank()) SHW_CHECK(transport.send(one.to, one.tag, sent[i]));
    if (one.to == transport.rank()) SHW_CHECK(transport.receive(one.from, one.tag, come[i]));
    if (random() % 3 == 0) SHW_CHECK(transport.wait(step));
  }
  SHW_CHECK(transport.wait(step));
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].to == transport.rank() && come[i] != sent[i])
      return fail(ErrorKind::kDamaged, "other bytes than were sent in " + std::to_string(i));
  }
  return {};
}

}  // namespace

TEST_CASE("Workers that wait in any order never wait in a circle") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const int workers = 2 + static_cast<int>(seed % 4);
    const auto messages = random_messages(seed, workers);
    CAPTURE(seed);
    for (const Status& ended : run_on_nccl(workers, nccl_options(), [&](Transport& transport) {
           return run_part(transport, messages, seed);
         })) {
      const std::string error = ended ? "" : ended.error().message;
      CHECK(error == "");
    }
  }
}

TEST_CASE("A token goes round while who sent it waits for it to come back") {
  for (const Status& ended : run_on_nccl(4, nccl_options(), [](Transport& transport) -> Status {
         const WaitStep step{"token", std::chrono::seconds(20)};
         const int next = (transport.rank() + 1) % 4, last = (transport.rank() + 3) % 4;
         Bytes token(5000, std::byte{7}), back(5000);
         if (transport.rank() == 0) SHW_CHECK(transport.send(next, Tag::kBytes, token));
         SHW_CHECK(transport.receive(last, Tag::kBytes, back));
         SHW_CHECK(transport.wait(step));
         if (transport.rank() != 0) SHW_CHECK(transport.send(next, Tag::kBytes, back));
         SHW_CHECK(transport.wait(step));
         return back == token ? Status{} : fail(ErrorKind::kDamaged, "another token");
       })) {
    const std::string error = ended ? "" : ended.error().message;
    CHECK(error == "");
  }
}

// The test double of NCCL detects every violation of its rules; otherwise its silence would prove
// nothing.
#include <doctest/doctest.h>

#include <atomic>
#include <climits>
#include <functional>
#include <string>
#include <thread>

#include "on_double.h"

using namespace shw;
using namespace shw::test;

namespace {

const NcclLibrary& nccl() {
  return nccl_double().nccl;
}

NcclConfig not_blocking() {
  NcclConfig config;
  config.blocking = 0;
  return config;
}

NcclCode settled(NcclCommunicator* comm) {
  NcclCode state = NcclCode::kInProgress;
  while (nccl().comm_get_async_error(comm, &state) == NcclCode::kSuccess &&
         state == NcclCode::kInProgress)
    std::this_thread::yield();
  return state;
}

NcclCommunicator* alone() {
  NcclUniqueId id = {};
  NcclCommunicator* comm = nullptr;
  NcclConfig config = not_blocking();
  nccl().get_unique_id(&id);
  nccl().comm_init_rank_config(&comm, 1, id, 0, &config);
  CHECK(settled(comm) == NcclCode::kSuccess);
  return comm;
}

// Runs two ranks of one clique, each on its own thread.
void by_two(const std::function<void(int rank, NcclCommunicator*)>& work) {
  NcclUniqueId id = {};
  nccl().get_unique_id(&id);
  std::vector<std::thread> threads;
  for (int rank : {0, 1}) {
    threads.emplace_back([&, rank] {
      NcclCommunicator* comm = nullptr;
      NcclConfig config = not_blocking();
      nccl().comm_init_rank_config(&comm, 2, id, rank, &config);
      settled(comm);
      work(rank, comm);
      nccl().comm_abort(comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The violation that the double reports.
std::string violation_of(const std::function<void()>& wrong) {
  nccl_double().tolerate(1);
  wrong();
  std::string said = nccl_double().violation();
  nccl_double().tolerate(0);
  return said;
}

NcclCode begin_with(const std::function<void(NcclConfig&, NcclUniqueId&, int& rank)>& change) {
  NcclUniqueId id = {};
  NcclConfig config = not_blocking();
  int rank = 0;
  nccl().get_unique_id(&id);
  change(config, id, rank);
  NcclCommunicator* comm = nullptr;
  const NcclCode code = nccl().comm_init_rank_config(&comm, 1, id, rank, &config);
  CHECK(comm == nullptr);
  return code;
}

}  // namespace

TEST_CASE("The double refuses a configuration that NCCL would misread") {
  using Change = std::function<void(NcclConfig&, NcclUniqueId&, int&)>;
  const std::pair<const char*, Change> cases[] = {
      {"magic number", [](NcclConfig& c, NcclUniqueId&, int&) { c.magic = 0; }},
      {"of 8 bytes", [](NcclConfig& c, NcclUniqueId&, int&) { c.size = 8; }},
      {"of version 7", [](NcclConfig& c, NcclUniqueId&, int&) { c.version = 7; }},
      {"blocks", [](NcclConfig& c, NcclUniqueId&, int&) { c.blocking = 1; }},
      {"blocks", [](NcclConfig& c, NcclUniqueId&, int&) { c.blocking = INT_MIN; }},
      {"range", [](NcclConfig& c, NcclUniqueId&, int&) { c.max_ctas = -3; }},
      {"id that", [](NcclConfig&, NcclUniqueId& id, int&) { id.internal[0] = 'x'; }},
      {"rank 1 of 1", [](NcclConfig&, NcclUniqueId&, int& rank) { rank = 1; }},
  };
  for (const auto& [part, change] : cases) {
    NcclCode code = NcclCode::kSuccess;
    const std::string said = violation_of([&] { code = begin_with(change); });
    CAPTURE(said);
    CHECK(said.find(part) != std::string::npos);
    CHECK(code == NcclCode::kInvalidArgument);
  }
}

TEST_CASE("The double finds a communicator that is used at the wrong time") {
  char byte = 0;
  int one = 0, another = 0;
  CHECK(violation_of([&] {
          NcclCommunicator* comm = alone();
          nccl().comm_abort(comm);
          nccl().send(&byte, 1, kNcclUint8, 0, comm, &one);
        }) == "ncclSend of a communicator that is not there, or is no more");
  CHECK(violation_of([&] {
          NcclCommunicator* comm = alone();
          nccl().comm_abort(comm);
          nccl().comm_abort(comm);
        }) == "ncclCommAbort of a communicator that is not there, or is no more");
  CHECK(violation_of([&] {
          NcclCommunicator* comm = alone();
          nccl().comm_destroy(comm);
          nccl().comm_abort(comm);
        }) == "ncclCommDestroy before ncclCommFinalize had ended");
  CHECK(violation_of([&] {
          NcclCommunicator* comm = alone();
          nccl().comm_finalize(comm);
          settled(comm);
          nccl().receive(&byte, 1, kNcclUint8, 0, comm, &one);
          nccl().comm_destroy(comm);
        }) == "ncclRecv after ncclCommFinalize");
  CHECK(violation_of([&] { nccl().group_end(); }) == "ncclGroupEnd without ncclGroupStart");
  CHECK(violation_of([&] {
          NcclCommunicator* comm = alone();
          char to = 0;
          for (int* stream : {&one, &another}) {
            nccl().group_start();
            nccl().send(&byte, 1, kNcclUint8, 0, comm, stream);
            nccl().receive(&to, 1, kNcclUint8, 0, comm, stream);
            nccl().group_end();
            settled(comm);
            while (nccl_double().stream_idle(stream) == 0) std::this_thread::yield();
          }
          nccl().comm_abort(comm);
        }) == "ncclRecv on a second stream of one communicator");
  CHECK(violation_of([&] {
          NcclCommunicator* comm = alone();
          nccl().send(&byte, 1, kNcclUint8, 3, comm, &one);
          nccl().comm_abort(comm);
        }) == "ncclSend with rank 3");
  CHECK(violation_of([&] {
          NcclCommunicator* comm = alone();
          nccl().send(&byte, 1, kNcclUint8, 0, comm, &one);
          settled(comm);
          while (nccl_double().stream_idle(&one) == 0) std::this_thread::yield();
          nccl().comm_abort(comm);
        }) == "a send to itself without its receive in the same group");
  CHECK(violation_of([&] {
          NcclUniqueId id = {};
          nccl().get_unique_id(&id);
          for (int i = 0; i < 2; ++i) {
            NcclConfig config = not_blocking();
            NcclCommunicator* comm = nullptr;
            nccl().comm_init_rank_config(&comm, 1, id, 0, &config);
            if (comm != nullptr) nccl().comm_abort(comm);
          }
        }) == "a unique id that is used a second time");
}

TEST_CASE("The double finds a group before the last one was launched") {
  const std::string said = violation_of([] {
    NcclUniqueId id = {};
    nccl().get_unique_id(&id);
    NcclConfig config = not_blocking();
    NcclCommunicator* comm = nullptr;
    char byte = 0;
    int stream = 0;
    nccl().comm_init_rank_config(&comm, 2, id, 0, &config);  // nobody else comes
    nccl().send(&byte, 1, kNcclUint8, 1, comm, &stream);
    nccl().comm_abort(comm);
  });
  CHECK(said == "ncclSend before ncclCommGetAsyncError said that all is done");
}

TEST_CASE("The double finds peers that disagree about a message") {
  for (const int type : {kNcclUint8, 4}) {
    const std::string said = violation_of([&] {
      by_two([&](int rank, NcclCommunicator* comm) {
        char bytes[800] = {};
        int stream = 0;
        if (rank == 0)
          nccl().send(bytes, 100, kNcclUint8, 1, comm, &stream);
        else
          nccl().receive(bytes, type == 4 ? 100 : 99, type, 0, comm, &stream);
        while (settled(comm) == NcclCode::kSuccess && nccl_double().stream_idle(&stream) == 0)
          std::this_thread::yield();
      });
    });
    CHECK(said.starts_with("rank 0 sends 100 of type 1, rank 1 takes "));
  }
}

#ifndef __SANITIZE_THREAD__  // which finds the race as well
TEST_CASE("The double finds bytes that change while they are sent") {
  const std::string said = violation_of([] {
    std::atomic<int> changed = 0;
    by_two([&](int rank, NcclCommunicator* comm) {
      std::vector<char> bytes(1 << 20);
      int stream = 0;
      if (rank == 0) {
        nccl().send(bytes.data(), bytes.size(), kNcclUint8, 1, comm, &stream);
        settled(comm);
        bytes.back() = 1;
        changed = 1;
      } else {
        while (changed == 0) std::this_thread::yield();
        nccl().receive(bytes.data(), bytes.size(), kNcclUint8, 0, comm, &stream);
      }
      while (settled(comm) == NcclCode::kSuccess && nccl_double().stream_idle(&stream) == 0)
        std::this_thread::yield();
    });
  });
  CHECK(said == "the bytes of a send were changed before it had ended");
}
#endif

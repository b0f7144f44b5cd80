// Failures in NCCL are named by the rank that has them, in time, and leave nothing behind.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "core/cluster/collectives.h"
#include "core/cluster/loopback.h"
#include "on_double.h"

using namespace shw;
using namespace shw::test;
using namespace std::chrono_literals;

namespace {

class WantedFault {
 public:
  explicit WantedFault(const char* fault) { nccl_double().fault(fault); }
  ~WantedFault() { nccl_double().fault(""); }
};

Status exchange_twenty_times(Transport& transport) {
  for (int round = 0; round < 20; ++round) {
    std::vector<Bytes> to_each(static_cast<std::size_t>(transport.size()), Bytes(2500));
    SHW_TRY(auto come, exchange(transport, std::move(to_each), 1 << 20,
                                {"round " + std::to_string(round), 400ms}));
  }
  return {};
}

struct FaultCase {
  const char* fault;
  const char* says;  // error text of every worker, its own or another one's
};

std::size_t entries(const char* folder) {
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    (void)entry;
    ++found;
  }
  return found;
}

long alive() {
  NcclDoubleCounts counts{};
  nccl_double().counts(&counts);
  return counts.alive;
}

}  // namespace

TEST_CASE("Every fault of NCCL is named to all") {
  const FaultCase cases[] = {
      {"hang-init:2", "in `opening NCCL` the communicator of 4 workers was not there after 400 ms"},
      {"hang:2:1", "in `opening NCCL` a connection of 4 workers was not there after 400 ms"},
      {"hang:1:7", "thing for 400 ms: "},
      {"hang:0:12", "thing for 400 ms: "},
      {"fail:3:9:6", "NCCL: the communicator: remote process exited or there was a network error"},
      {"fail:0:9:1", "NCCL: the communicator: unhandled cuda error (as the test wanted it)"},
      {"fail:1:1:3", "in `opening NCCL` NCCL: the communicator: internal error"},
      {"lose:2:9", "(the connection to rank 2 was closed): "},
      {"call:GetUniqueId:2", "NCCL: ncclGetUniqueId: unhandled system error"},
      {"call:CommInitRankConfig:4", "NCCL: ncclCommInitRankConfig: invalid argument"},
      {"call:GroupStart:3", "NCCL: ncclGroupStart: internal error"},
      {"call:Send:5", "NCCL: ncclSend: invalid usage"},
      {"call:Recv:5", "NCCL: ncclRecv: invalid usage"},
      {"call:GroupEnd:1", "NCCL: ncclGroupEnd: unhandled cuda error"},
      {"call:CommGetAsyncError:3", "NCCL: ncclCommGetAsyncError: internal error"},
  };
  for (const FaultCase& one : cases) {
    CAPTURE(std::string(one.fault));
    const WantedFault wanted(one.fault);
    for (const Status& ended : run_on_nccl(4, nccl_options(400ms), exchange_twenty_times)) {
      const std::string error = ended ? "" : ended.error().message;
      CAPTURE(error);
      CHECK(error.find(one.says) != std::string::npos);
    }
    CHECK(alive() == 0);
  }
}

TEST_CASE("The step and the bytes of a group that hangs are named") {
  const WantedFault wanted("hang:1:4");
  int named = 0;
  for (const Status& ended : run_on_nccl(2, nccl_options(), exchange_twenty_times)) {
    REQUIRE_FALSE(ended.has_value());
    named += ended.error().message.find("in `round ") != std::string::npos &&
             ended.error().message.find("bytes were under way with worker") != std::string::npos;
  }
  CHECK(named == 2);
}

TEST_CASE("A worker that never opens NCCL is named by the others") {
  for (int missing : {0, 2}) {
    auto ended = run_on_threads(3, {}, [&](Transport& control) -> Status {
      if (control.rank() == missing) return fail(ErrorKind::kUnsupported, "no GPU was found");
      SHW_TRY(auto open, open_nccl(nccl_double().nccl, host_stage(), control, nccl_options()));
      return barrier(*open, {"never", 1s});
    });
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == missing) continue;
      REQUIRE_FALSE(ended[static_cast<std::size_t>(rank)].has_value());
      CHECK(ended[static_cast<std::size_t>(rank)].error().message.find(
                "worker " + std::to_string(missing) + " stopped: no GPU was found") !=
            std::string::npos);
    }
  }
}

TEST_CASE("A worker that has ended is missed at once, also in front of NCCL") {
  for (int ending : {0, 2}) {
    auto ended = run_on_nccl(3, nccl_options(), [&](Transport& transport) -> Status {
      if (transport.rank() == ending) return {};
      Bytes bytes(300);
      SHW_CHECK(transport.receive(ending, Tag::kBytes, bytes));
      return transport.wait({"the end", std::chrono::hours(1)});
    });
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == ending) continue;
      REQUIRE_FALSE(ended[static_cast<std::size_t>(rank)].has_value());
      const std::string& why = ended[static_cast<std::size_t>(rank)].error().message;
      CAPTURE(why);
      CHECK(why.find("in `the end` worker " + std::to_string(ending) + " had ended") !=
            std::string::npos);
    }
  }
}

TEST_CASE("Workers that are not equal refuse each other before NCCL is asked") {
  auto ended = run_on_threads(2, {}, [](Transport& control) -> Status {
    NcclOptions options = nccl_options();
    NcclLibrary nccl = nccl_double().nccl;
    if (control.rank() == 1) nccl.version = 22703;
    SHW_TRY(auto open, open_nccl(nccl, host_stage(), control, options));
    return {};
  });
  for (const Status& one : ended) {
    REQUIRE_FALSE(one.has_value());
    CHECK(one.error().message.find("2.27.3") != std::string::npos);
    CHECK(one.error().message.find("2.28.9") != std::string::npos);
  }
  ended = run_on_threads(2, {}, [](Transport& control) -> Status {
    NcclOptions options = nccl_options();
    options.piece_bytes += static_cast<std::size_t>(control.rank());
    SHW_TRY(auto open, open_nccl(nccl_double().nccl, host_stage(), control, options));
    return {};
  });
  for (const Status& one : ended) {
    REQUIRE_FALSE(one.has_value());
    CHECK(one.error().message.find("1001") != std::string::npos);
  }
}

TEST_CASE("Sizes that differ are named on both sides") {
  auto ended = run_on_nccl(2, nccl_options(), [](Transport& transport) -> Status {
    Bytes bytes(transport.rank() == 0 ? 5000 : 1234);
    if (transport.rank() == 0) SHW_CHECK(transport.send(1, Tag::kBytes, bytes));
    if (transport.rank() == 1) SHW_CHECK(transport.receive(0, Tag::kBytes, bytes));
    return transport.wait({"merge", 10s});
  });
  for (const Status& one : ended) {
    REQUIRE_FALSE(one.has_value());
    CHECK(one.error().message.find("in `merge` worker 0 sent more bytes than the 1234 that were "
                                   "agreed: 5000") != std::string::npos);
  }
}

TEST_CASE("A thousand lives of a communicator leave nothing behind") {
  auto live = [](int count) {
    for (int i = 0; i < count; ++i) {
      auto ended = run_on_nccl(2, nccl_options(), [&](Transport& transport) -> Status {
        std::vector<Bytes> to_each(2, Bytes(1500));
        SHW_TRY(auto come, exchange(transport, std::move(to_each), 1 << 20, {"life", 30s}));
        // Some end in another way.
        if (i % 5 == 1 && transport.rank() == 0) transport.abort({ErrorKind::kIo, "enough"});
        if (i % 5 == 2) return transport.receive(1 - transport.rank(), Tag::kBytes, come[0]);
        return {};
      });
      for (const Status& one : ended) REQUIRE((one.has_value() || i % 5 == 1 || i % 5 == 2));
    }
  };
  live(20);
  const std::size_t files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  const std::size_t segments = entries("/dev/shm");
  NcclDoubleCounts before{}, after{};
  nccl_double().counts(&before);
  live(1000);
  nccl_double().counts(&after);
  CHECK(after.begun == before.begun + 2000);
  CHECK(after.alive == 0);
  CHECK(entries("/proc/self/fd") == files);
  CHECK(entries("/proc/self/task") == threads);
  CHECK(entries("/dev/shm") <= segments);
}

// Results that a team computes together, compared with those of one process.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <utility>

#include "core/base/encoder.h"
#include "core/cluster/loopback.h"
#include "core/cluster/transport_team.h"
#include "core/facts/values/tensor_statistics.h"
#include "core/formats/open.h"
#include "core/repair/proof/item_hashes.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

constexpr std::chrono::seconds kPatience(30);

std::string first_error(const std::vector<Status>& ended) {
  for (const Status& one : ended) {
    if (!one) return one.error().message;
  }
  return "";
}

ScatterMapTask squares_of(std::span<const std::uint64_t> costs, std::atomic<int>& found,
                          std::vector<std::uint64_t>& heard) {
  ScatterMapTask work{"squares", costs, {}, {}};
  work.find = [&found](std::size_t thing) -> Result<Bytes> {
    ++found;
    Encoder payload;
    payload.add(std::uint64_t{thing * thing});
    return payload.take();
  };
  work.receive = [&heard](std::size_t thing, BytesView bytes) -> Status {
    SHW_TRY(std::uint64_t square, Decoder(bytes).number());
    CHECK(heard.size() == thing);
    heard.push_back(square);
    return {};
  };
  return work;
}

}  // namespace

TEST_CASE("A team finds each thing once, and all hear of all in order") {
  for (int members : {1, 2, 5}) {
    for (std::size_t count : {0u, 1u, 3u, 1000u}) {
      // Large costs make several rounds.
      std::vector<std::uint64_t> costs(count, count == 3 ? std::uint64_t{3} << 30 : 100);
      std::atomic<int> found{0};
      auto ended = run_on_threads(members, {}, [&](Transport& transport) -> Status {
        TransportTeam team(transport, kPatience);
        std::vector<std::uint64_t> heard;
        SHW_CHECK(scatter_map_allgather(team, squares_of(costs, found, heard)));
        CHECK(heard.size() == count);
        for (std::size_t i = 0; i < heard.size(); ++i) CHECK(heard[i] == i * i);
        return {};
      });
      CHECK(first_error(ended) == "");
      CHECK(found == static_cast<int>(count));
    }
  }
}

TEST_CASE("Members that look at other things end all of them") {
  auto ended = run_on_threads(3, {}, [&](Transport& transport) -> Status {
    TransportTeam team(transport, kPatience);
    std::vector<std::uint64_t> costs(10, transport.rank() == 1 ? 5 : 6), heard;
    std::atomic<int> found{0};
    return scatter_map_allgather(team, squares_of(costs, found, heard));
  });
  for (const Status& one : ended) {
    REQUIRE_FALSE(one.has_value());
    CHECK(one.error().message.find("looks at other things") != std::string::npos);
  }
}

TEST_CASE("What one member cannot do ends all, who are told why") {
  auto ended = run_on_threads(3, {}, [&](Transport& transport) -> Status {
    TransportTeam team(transport, kPatience);
    std::vector<std::uint64_t> costs(9, 1), heard;
    std::atomic<int> found{0};
    ScatterMapTask work = squares_of(costs, found, heard);
    auto find = work.find;
    work.find = [&, find](std::size_t thing) -> Result<Bytes> {
      if (thing == 4) return fail(ErrorKind::kIo, "no more room");
      return find(thing);
    };
    return scatter_map_allgather(team, work);
  });
  CHECK(ended[1].error().message == "no more room");
  CHECK(ended[0].error().message == "worker 1 stopped: no more room");
  CHECK(ended[2].error().message == "worker 1 stopped: no more room");
}

TEST_CASE("When one member cannot go on nobody works any more as soon as any has heard of it") {
  constexpr int kMembers = 4;
  for (int failing = 0; failing < kMembers; ++failing) {
    std::atomic<int> working{0};
    std::vector<std::string> news(kMembers);  // received by the first worker
    auto ended = run_on_threads(kMembers, {}, [&](Transport& transport) -> Status {
      TransportTeam team(transport, kPatience);
      Progress progress;
      HeartbeatTask beside{"work", {}, &progress};
      const auto self = static_cast<std::size_t>(team.rank());
      bool is_told = false;
      beside.work = [&, self]() -> Status {
        if (self == static_cast<std::size_t>(failing))
          return fail(ErrorKind::kIo, "no more room", {"ck"});
        ++working;
        while (!is_cancelled(&progress)) std::this_thread::yield();
        --working;
        return cancelled_error();
      };
      // The last news before the end arrives too.
      beside.news = [&] {
        const std::string_view words = std::exchange(is_told, true) ? "" : "done";
        auto bytes = std::as_bytes(std::span(words));
        return Bytes(bytes.begin(), bytes.end());
      };
      beside.receive = [&, self](std::size_t member, BytesView told) -> Status {
        if (self == 0) news[member].append(reinterpret_cast<const char*>(told.data()), told.size());
        return {};
      };
      Status done = run_with_heartbeat(team, beside);
      CHECK(working == 0);
      CHECK_FALSE(is_cancelled(&progress));
      return done;
    });
    for (int member = 0; member < kMembers; ++member) {
      const Error& error = ended[static_cast<std::size_t>(member)].error();
      CHECK(error.kind == ErrorKind::kIo);
      CHECK(error.message == (member == failing ? "no more room"
                                                : "worker " + std::to_string(failing) +
                                                      " stopped: ck: no more room"));
    }
    CHECK(news == std::vector<std::string>(kMembers, "done"));
  }
}

TEST_CASE("What the first member cannot take of the others' news ends all of them") {
  std::atomic<int> working{0};
  auto ended = run_on_threads(3, {}, [&](Transport& transport) -> Status {
    TransportTeam team(transport, kPatience);
    Progress progress;
    HeartbeatTask beside{"work", {}, &progress};
    beside.work = [&]() -> Status {
      ++working;
      while (!is_cancelled(&progress)) std::this_thread::yield();
      --working;
      return cancelled_error();
    };
    beside.news = [] { return Bytes(3); };
    beside.receive = [&](std::size_t, BytesView) -> Status {
      return team.rank() == 0 ? Status(fail(ErrorKind::kIo, "the journal is full")) : Status{};
    };
    Status done = run_with_heartbeat(team, beside);
    CHECK(working == 0);
    return done;
  });
  CHECK(ended[0].error().message == "the journal is full");
  CHECK(ended[1].error().message == "worker 0 stopped: the journal is full");
  CHECK(ended[2].error().message == "worker 0 stopped: the journal is full");
}

TEST_CASE("Who passes on why another one stopped does not put itself in front of it") {
  const Error heard = decode_error_of_rank(1, encode_error({ErrorKind::kIo, "no more room"}));
  CHECK(heard.message == "worker 1 stopped: no more room");
  CHECK(decode_error_of_rank(12, encode_error(heard)).message == heard.message);
  const Error own{ErrorKind::kIo, "worker x stopped: what is this"};
  CHECK(decode_error_of_rank(12, encode_error(own)).message == "worker 12 stopped: " + own.message);
}

TEST_CASE("The hashes of a team are those of one, and so is what cannot be read") {
  namespace fs = std::filesystem;
  TemporaryFolder folder;
  const fs::path damaged = folder / "damaged";
  fs::copy(fs::path(SHW_TEST_DATA) / "torch-2.14/healthy_moe_ep/ckpt", damaged,
           fs::copy_options::recursive);
  for (bool is_whole : {true, false}) {
    auto checkpoint = open_checkpoint(damaged.string());
    REQUIRE(checkpoint.has_value());
    if (!is_whole) fs::resize_file(damaged / "__2_0.distcp", 1000);
    auto alone = hash_all_items(**checkpoint, nullptr);
    REQUIRE(alone.has_value() == is_whole);
    auto ended = run_on_threads(3, {}, [&](Transport& transport) -> Status {
      TransportTeam team(transport, kPatience);
      SHW_TRY(auto together, hash_all_items(**checkpoint, nullptr, team));
      REQUIRE(together.has_value() == is_whole);
      if (is_whole) CHECK(*together == *alone);
      if (!is_whole) CHECK(together.error().message == alone.error().message);
      if (!is_whole) CHECK(together.error().place.file == alone.error().place.file);
      return {};
    });
    CHECK(first_error(ended) == "");
  }
}

TEST_CASE("The statistics of a team are those of one, to the bit") {
  namespace fs = std::filesystem;
  TemporaryFolder folder;
  const fs::path whole = fs::path(SHW_TEST_DATA) / "torch-2.14/healthy_moe_ep/ckpt";
  const fs::path damaged = fs::path(folder.path()) / "damaged";
  fs::copy(whole, damaged, fs::copy_options::recursive);
  fs::resize_file(damaged / "__1_0.distcp", 1000);
  for (const fs::path& path : {whole, damaged}) {
    auto checkpoint = open_checkpoint(path.string());
    REQUIRE(checkpoint.has_value());
    std::vector<TensorId> tensors;
    for (std::uint32_t t = 0; t < (*checkpoint)->tensor_count(); ++t)
      tensors.push_back(TensorId{t});
    auto alone = statistics_of(**checkpoint, tensors, nullptr);
    REQUIRE(alone.has_value());
    auto ended = run_on_threads(4, {}, [&](Transport& transport) -> Status {
      TransportTeam team(transport, kPatience);
      SHW_TRY(auto told, statistics_of(**checkpoint, tensors, nullptr, &team));
      CHECK(told.size() == alone->size());
      for (std::size_t i = 0; i < told.size(); ++i) {
        CHECK(told[i].fqn == (*alone)[i].fqn);
        CHECK(told[i].statistics == (*alone)[i].statistics);
        CHECK(told[i].unread == (*alone)[i].unread);
        CHECK(told[i].error.has_value() == (*alone)[i].error.has_value());
        if (told[i].error) CHECK(told[i].error->message == (*alone)[i].error->message);
      }
      return {};
    });
    CHECK(first_error(ended) == "");
  }
}

// All ranks decide alike whether tiles are sent over NCCL, before anything is written.
#include "gpu/tile_transport.h"

#include <doctest/doctest.h>

#include "core/cluster/collectives.h"
#include "core/cluster/loopback.h"
#include "on_double.h"

using namespace shw;
using namespace shw::test;
using namespace std::chrono_literals;

namespace {

// Options on a machine with so many cards; `rank` is the worker's number there.
TransportOptions nccl_wish(int cards, int rank) {
  TransportOptions wish{TileTransport::kNccl};
  wish.device.local_rank = rank;
  wish.device.gpus = [cards] {
    Gpus gpus;
    for (int i = 0; i < cards; ++i)
      gpus.found.push_back({i, "Card", 1 << 30, "card " + std::to_string(i)});
    if (cards == 0) gpus.none = "there is no driver";
    return gpus;
  };
  wish.options = nccl_options(2000ms);
  wish.library = []() -> Result<NcclLibrary> { return nccl_double().nccl; };
  wish.stage = [](int) -> Result<std::unique_ptr<NcclStagingBuffer>> { return host_stage(); };
  return wish;
}

using ChangeWish = std::function<void(TransportOptions& wish, int rank)>;

// The reason that each of three ranks gets; empty if NCCL is available and works.
std::vector<std::string> told(int cards, const ChangeWish& change) {
  std::vector<std::string> all;
  for (const Status& ended : run_on_threads(3, {}, [&](Transport& control) -> Status {
         TransportOptions wish = nccl_wish(cards, control.rank());
         change(wish, control.rank());
         SHW_TRY(const ChosenTileTransport chosen, choose_tile_transport(wish, control));
         if (chosen.nccl == nullptr) return fail(ErrorKind::kUnsupported, chosen.why);
         CHECK(chosen.why == "it was asked for");
         std::vector<Bytes> to_each(
             3, Bytes(5000, std::byte{static_cast<unsigned char>(control.rank() + 1)}));
         SHW_TRY(auto come, exchange(*chosen.nccl, std::move(to_each), 1 << 20, {"tiles", 2s}));
         for (int peer = 0; peer < 3; ++peer)
           CHECK(come[static_cast<std::size_t>(peer)] ==
                 Bytes(5000, std::byte{static_cast<unsigned char>(peer + 1)}));
         return {};
       }))
    all.push_back(ended ? "" : ended.error().message);
  return all;
}

void check_all_say(const std::vector<std::string>& all, const std::string& part) {
  for (const std::string& one : all) {
    CAPTURE(one);
    CHECK(one.find(part) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("tiles travel by NCCL where every worker has a card of its own") {
  for (const std::string& error : told(3, [](TransportOptions&, int) {})) CHECK(error == "");
  for (const std::string& error : told(5, [](TransportOptions&wish, int rank) {
         wish.device.kind = DeviceKind::kCuda;
         wish.device.index = 4 - rank;
       }))
    CHECK(error == "");
  // Machines with one card each.
  for (const std::string& error : told(1, [](TransportOptions&wish, int rank) {
         wish.device.local_rank = 0;
         wish.device.gpus = [rank] {
           return Gpus{{{0, "Card", 1, "machine " + std::to_string(rank)}}, "", {}};
         };
       }))
    CHECK(error == "");
}

TEST_CASE("all workers hear why tiles cannot travel by NCCL") {
  check_all_say(told(2, [](TransportOptions&, int) {}),
                "tiles cannot travel by NCCL: workers 0 and 2 would share a card");
  check_all_say(told(3, [](TransportOptions& wish,
                           int) { wish.device.index = 1, wish.device.kind = DeviceKind::kCuda; }),
                "workers 0 and 1 would share a card");
  check_all_say(told(3,
                     [](TransportOptions& wish, int rank) {
                       if (rank == 1)
                         wish.device.gpus = [] { return Gpus{{}, "there is no driver", {}}; };
                     }),
                "worker 1 cannot: no GPU can be used: there is no driver");
  check_all_say(told(3,
                     [](TransportOptions& wish, int rank) {
                       if (rank == 2)
                         wish.library = [] { return load_nccl("/nowhere/libnccl.so.2"); };
                     }),
                "worker 2 cannot: NCCL was not found");
  check_all_say(told(3, [](TransportOptions& wish, int) { wish.device.local_rank.reset(); }),
                "worker 0 cannot: the launcher does not say which");
  check_all_say(told(3,
                     [](TransportOptions& wish, int rank) {
                       if (rank != 1) return;
                       wish.stage = [](int) -> Result<std::unique_ptr<NcclStagingBuffer>> {
                         return fail(ErrorKind::kIo, "the card has no memory left");
                       };
                     }),
                "the card has no memory left");
}

TEST_CASE("without being asked tiles stay with what joins the workers") {
  check_all_say(told(3, [](TransportOptions& wish, int) { wish.kind = TileTransport::kAuto; }),
                "was never measured");
  check_all_say(told(3, [](TransportOptions& wish, int) { wish.kind = TileTransport::kMpi; }),
                "it was asked for");
}

TEST_CASE("a transport of tiles is auto, mpi or nccl and nothing else") {
  CHECK(parse_tile_transport("auto") == TileTransport::kAuto);
  CHECK(parse_tile_transport("mpi") == TileTransport::kMpi);
  CHECK(parse_tile_transport("nccl") == TileTransport::kNccl);
  for (const char* text : {"", "NCCL", "mpi ", "tcp"}) CHECK_FALSE(parse_tile_transport(text));
}

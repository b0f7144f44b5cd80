#include "core/cluster/loopback.h"

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <string>

#include "core/cluster/collectives.h"
#include "core/cluster/conformance.h"

using namespace shw;

namespace {

void conform(int workers, bool fixed_order) {
  for (const auto& one : test::conformance_cases()) {
    CAPTURE(one.title);
    CAPTURE(workers);
    for (const Status& ended : run_on_threads(workers, {fixed_order}, one.run)) {
      std::string error = ended ? "" : ended.error().message;
      CHECK(error == "");
    }
  }
}

const WaitStep kStep{"test", std::chrono::seconds(30)};

}  // namespace

TEST_CASE("Threads do what every transport does") {
  for (int workers : {2, 4}) conform(workers, false);
}

TEST_CASE("Threads in a fixed order do what every transport does") {
  for (int workers : {1, 4}) conform(workers, true);
}

TEST_CASE("Sixty-four threads hear each other") {
  auto ended = run_on_threads(64, {}, [](Transport& transport) -> Status {
    Bytes own(1, static_cast<std::byte>(transport.rank()));
    SHW_TRY(auto all, all_gather(transport, own, 64, kStep));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank] != Bytes(1, static_cast<std::byte>(rank)))
        return fail(ErrorKind::kDamaged, "another message");
    }
    return {};
  });
  for (const Status& one : ended) CHECK(one.has_value());
}

TEST_CASE("A worker that has ended is missed at once") {
  for (bool fixed_order : {false, true}) {
    auto ended = run_on_threads(3, {fixed_order}, [](Transport& transport) -> Status {
      if (transport.rank() == 1) return {};
      return barrier(transport, {"the end", std::chrono::hours(1)});
    });
    CHECK(ended[1].has_value());
    for (int rank : {0, 2}) {
      REQUIRE_FALSE(ended[static_cast<std::size_t>(rank)].has_value());
      const std::string& why = ended[static_cast<std::size_t>(rank)].error().message;
      CHECK(why.find("in `the end` worker 1 had ended") != std::string::npos);
    }
  }
}

TEST_CASE("In a fixed order workers take their turns the same way every time") {
  auto turns = [] {
    std::string order;  // one runs at a time
    run_on_threads(5, {true}, [&](Transport& transport) -> Status {
      for (int round = 0; round < 4; ++round) {
        order += static_cast<char>('0' + transport.rank());
        SHW_CHECK(barrier(transport, kStep));
      }
      return {};
    });
    return order;
  };
  std::string first = turns();
  CHECK(first.size() == 20);
  CHECK(first.substr(0, 5) == "01234");
  for (int i = 0; i < 20; ++i) CHECK(turns() == first);
}

TEST_CASE("In a fixed order workers that wait for each other are known without a clock") {
  auto ended = run_on_threads(2, {true}, [](Transport& transport) -> Status {
    Bytes byte(1);
    SHW_CHECK(transport.receive(1 - transport.rank(), Tag::kBytes, byte));
    return transport.wait({"both", std::chrono::hours(1)});
  });
  CHECK_FALSE(ended[0].has_value());
  CHECK_FALSE(ended[1].has_value());
}

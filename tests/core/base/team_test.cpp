#include "core/base/team.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/base/encoder.h"

using namespace shw;

TEST_CASE("Everything is dealt to one member, and no one has much more than its part") {
  std::mt19937 random(7);
  for (std::size_t members : {1u, 2u, 3u, 8u}) {
    for (std::size_t count : {0u, 1u, 5u, 1000u}) {
      std::vector<std::uint64_t> costs(count);
      for (auto& cost : costs) cost = random() % 1000;
      auto shares = partition_by_cost(costs, members);
      REQUIRE(shares.size() == members);
      CHECK(shares.front().first == 0);
      CHECK(shares.back().last == count);
      const std::uint64_t all = std::accumulate(costs.begin(), costs.end(), std::uint64_t{count});
      for (std::size_t i = 0; i < members; ++i) {
        if (i > 0) CHECK(shares[i].first == shares[i - 1].last);
        std::uint64_t own = 0;
        for (std::size_t t = shares[i].first; t < shares[i].last; ++t) own += costs[t] + 1;
        CHECK(own <= all / members + 1001);
      }
    }
  }
}

TEST_CASE("What was packed comes out as it was, and what is cut off is an error") {
  Encoder packer;
  packer.add(std::uint64_t{1} << 63);
  packer.add(std::string_view("a\0b", 3));
  packer.add(std::vector<std::uint64_t>{1, 2, 3});
  packer.add(Error{ErrorKind::kUnsupported, "why", {"file", 7, "tensor"}, "advice"});
  packer.add(Error{ErrorKind::kIo, "", {"", std::nullopt, ""}, ""});
  Bytes bytes = packer.take();
  auto unpack = [](BytesView view) -> Status {
    Decoder payload(view);
    SHW_TRY(auto number, payload.number());
    CHECK(number == std::uint64_t{1} << 63);
    SHW_TRY(auto text, payload.text());
    CHECK(text == std::string("a\0b", 3));
    SHW_TRY(auto numbers, payload.numbers());
    CHECK(numbers == std::vector<std::uint64_t>{1, 2, 3});
    SHW_TRY(Error error, payload.error());
    CHECK(error.kind == ErrorKind::kUnsupported);
    CHECK(error.message == "why");
    CHECK(error.place.file == "file");
    CHECK(error.place.offset == 7u);
    CHECK(error.place.tensor == "tensor");
    CHECK(error.advice == "advice");
    SHW_TRY(Error bare, payload.error());
    CHECK(bare.kind == ErrorKind::kIo);
    CHECK_FALSE(bare.place.offset.has_value());
    CHECK(payload.is_at_end());
    return {};
  };
  CHECK(unpack(bytes).has_value());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    CHECK_FALSE(unpack(BytesView(bytes).first(length)).has_value());
}

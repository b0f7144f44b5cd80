#include "core/tensor/extents.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "core/tensor/shape.h"

using shw::Extents;

namespace {

using Plain = std::vector<std::int64_t>;

bool alike(const Extents& extents, const Plain& plain) {
  return shw::same(extents, plain) && extents.empty() == plain.empty();
}

// Makes the same random change to both.
void change(std::mt19937& random, Extents& extents, Plain& plain) {
  auto value = static_cast<std::int64_t>(random() % 9) - 4;
  std::size_t at = random() % (plain.size() + 1);
  auto here = static_cast<std::ptrdiff_t>(at);
  switch (random() % 10) {
    case 0:
      extents.push_back(value);
      plain.push_back(value);
      break;
    case 1:
      extents.resize(at + 3, value);
      plain.resize(at + 3, value);
      break;
    case 2:
      extents.insert(extents.begin() + here, value);
      plain.insert(plain.begin() + here, value);
      break;
    case 3: {
      const Plain more(random() % 4, value);
      extents.insert(extents.begin() + here, more.begin(), more.end());
      plain.insert(plain.begin() + here, more.begin(), more.end());
      break;
    }
    case 4:
      if (at == plain.size()) break;
      extents.erase(extents.begin() + here);
      plain.erase(plain.begin() + here);
      break;
    case 5:
      extents.erase(extents.begin(), extents.begin() + here);
      plain.erase(plain.begin(), plain.begin() + here);
      break;
    case 6:
      extents.assign(random() % 7, value);
      plain.assign(extents.size(), value);
      break;
    case 7:
      extents.reserve(at * 2);
      break;
    case 8: {
      Extents other(extents);
      extents = other;
      Extents moved(std::move(other));
      CHECK(other.empty());
      extents = std::move(moved);
      break;
    }
    default:
      if (plain.empty()) break;
      extents.pop_back();
      plain.pop_back();
  }
}

}  // namespace

TEST_CASE("extents do what a vector does whatever is done to them") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Extents extents;
    Plain plain;
    for (int step = 0; step < 40; ++step) {
      change(random, extents, plain);
      REQUIRE(alike(extents, plain));
      if (plain.empty()) continue;
      CHECK(extents.front() == plain.front());
      CHECK(extents.back() == plain.back());
    }
  }
}

TEST_CASE("extents compare as vectors do") {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    Plain a(random() % 7), b(random() % 7);
    for (auto* plain : {&a, &b}) {
      for (std::int64_t& one : *plain) one = static_cast<std::int64_t>(random() % 2);
    }
    const Extents left(a.begin(), a.end()), right(b.begin(), b.end());
    CHECK((left == right) == (a == b));
    CHECK((left < right) == (a < b));
    CHECK((left >= right) == (a >= b));
  }
}

TEST_CASE("extents of any length can be copied over each other and taken") {
  for (std::size_t from = 0; from < 8; ++from) {
    for (std::size_t to = 0; to < 8; ++to) {
      const Extents source(from, 3);
      Extents copied(to, 5);
      copied = source;
      CHECK(copied == source);
      Extents taken(to, 5), gone(source);
      taken = std::move(gone);
      CHECK(taken == source);
      CHECK(gone.empty());
      gone.push_back(1);
      CHECK(gone == Extents{1});
      Extents& same = taken;
      taken = same;
      CHECK(taken == source);
    }
  }
}

#include "core/base/json.h"

#include <doctest/doctest.h>

#include <functional>
#include <random>

using namespace shw;

namespace {

using Json = nlohmann::ordered_json;
using Event = Json::parse_event_t;
using Keeps = std::function<bool(int, Event, Json&)>;

struct Dice {
  std::mt19937_64 engine;
  int operator()(int below) { return static_cast<int>(engine() % static_cast<unsigned>(below)); }
};

Json random_json(Dice& dice, int depth) {
  switch (depth > 4 ? dice(5) : dice(8)) {
    case 0:
      return nullptr;
    case 1:
      return dice(2) == 0;
    case 2:
      return dice(1000) - 500;
    case 3:
      return std::string("t") + std::to_string(dice(100));
    case 4:
      return dice(1000) / 8.0;
    case 5: {
      Json list = Json::array();
      for (int i = dice(5); i > 0; --i) list.push_back(random_json(dice, depth + 1));
      return list;
    }
    default: {
      Json object = Json::object();
      for (int i = dice(5); i > 0; --i)
        object["k" + std::to_string(i)] = random_json(dice, depth + 1);
      return object;
    }
  }
}

// The callbacks in order, and the resulting tree.
struct Told {
  std::string asked;
  Json tree;
};
Keeps noting(std::string& asked, const Keeps& keeps) {
  return [&asked, keeps](int depth, Event event, Json& value) {
    asked += std::to_string(depth) + "/" + std::to_string(static_cast<int>(event)) + "/" +
             (value.is_primitive() && !value.is_discarded() ? value.dump() : "-") + "\n";
    return keeps(depth, event, value);
  };
}
Told by_library(const std::string& text, const Keeps& keeps) {
  Told told;
  told.tree = Json::parse(text, noting(told.asked, keeps), false);
  return told;
}
Told by_us(const std::string& text, const Keeps& keeps) {
  Told told;
  Keeps noted = noting(told.asked, keeps);
  told.tree = parse_json<Json>(text, noted).tree;
  return told;
}

// The library keeps a refused member in its object as a value that cannot be written.
Json without_refused(const Json& tree) {
  if (!tree.is_structured()) return tree;
  Json out = tree.is_array() ? Json::array() : Json::object();
  for (const auto& [key, value] : tree.items()) {
    if (value.is_discarded()) continue;
    if (tree.is_array()) {
      out.push_back(without_refused(value));
    } else {
      out[key] = without_refused(value);
    }
  }
  return out;
}

void check_same(const std::string& text, const Keeps& keeps) {
  Told expected = by_library(text, keeps), found = by_us(text, keeps);
  CHECK(found.asked == expected.asked);
  CHECK(found.tree.is_discarded() == expected.tree.is_discarded());
  if (!expected.tree.is_discarded())
    CHECK(found.tree.dump() == without_refused(expected.tree).dump());
}

}  // namespace

TEST_CASE("a tree of JSON is the library's, whatever is refused of it") {
  Dice dice{std::mt19937_64(1)};
  const Keeps all = [](int, Event, Json&) { return true; };
  const Keeps no_k2 = [](int, Event event, Json& value) {
    return event != Event::key || value != "k2";
  };
  const Keeps no_ends = [](int depth, Event event, Json&) {
    return depth != 2 || (event != Event::object_end && event != Event::array_end);
  };
  const Keeps no_lists = [](int, Event event, Json&) { return event != Event::array_start; };
  const Keeps nothing = [](int, Event, Json&) { return false; };
  for (int round = 0; round < 1500; ++round) {
    const std::string text = random_json(dice, 0).dump(round % 2 == 0 ? -1 : 1);
    for (const Keeps& keeps : {all, no_k2, no_ends, no_lists, nothing}) check_same(text, keeps);
  }
}

TEST_CASE("text that is not JSON is not a tree for us where it is none for the library") {
  Dice dice{std::mt19937_64(2)};
  const Keeps all = [](int, Event, Json&) { return true; };
  for (int round = 0; round < 1500; ++round) {
    std::string text = random_json(dice, 0).dump();
    text[static_cast<std::size_t>(dice(static_cast<int>(text.size())))] =
        "{}[],:\"0-x"[static_cast<std::size_t>(dice(10))];
    check_same(text, all);
    check_same(text.substr(0, text.size() / 2), all);
    std::string problem;
    std::size_t byte = 0;
    try {
      const Json tree = Json::parse(text);
      CHECK_FALSE(tree.is_discarded());
    } catch (const Json::parse_error& error) {
      problem = error.what();
      byte = error.byte;
    } catch (const Json::exception& error) {
      problem = error.what();
    }
    auto parsed = parse_json<Json>(text, all);
    CHECK(parsed.problem == problem);
    CHECK(parsed.byte.value_or(0) == byte);
  }
}

TEST_CASE("a number that is too large is a problem without a byte") {
  const std::string text = "[1e999]";
  const Keeps all = [](int, Event, Json&) { return true; };
  auto parsed = parse_json<Json>(text, all);
  CHECK(parsed.tree.is_discarded());
  CHECK(parsed.problem.find("1e999") != std::string::npos);
  CHECK_FALSE(parsed.byte.has_value());
}

TEST_CASE("json: more levels than any file has are refused before a tree is made of them") {
  auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  CHECK(parse_json<Json>(nested(kDeepestJson)).tree.is_array());
  for (std::size_t levels : {kDeepestJson + 1, std::size_t{100'000}}) {
    auto parsed = parse_json<Json>(nested(levels));
    CHECK(parsed.tree.is_discarded());
    CHECK(json_error_text(parsed).find("nested") != std::string::npos);
  }
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  CHECK(parse_json<Json>(objects).tree.is_discarded());
}

TEST_CASE("json: a text with a zero byte, or with bytes that are not UTF-8, is not JSON") {
  CHECK(parse_json<Json>(std::string_view("{}\0", 3)).tree.is_discarded());
  CHECK(parse_json<Json>(std::string_view("\0{}", 3)).tree.is_discarded());
  CHECK(parse_json<Json>("[\"\xff\"]").tree.is_discarded());
  CHECK(parse_json<Json>("[\"\xc3\xa9\"]").tree.is_array());
}

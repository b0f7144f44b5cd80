#include "core/verbs/recent.h"

#include <doctest/doctest.h>

#include <random>

#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::verbs;

TEST_CASE("what was opened is kept, the last first and each once") {
  RecentPlaces places;
  for (int i = 0; i < 40; ++i)
    places = with_place(std::move(places), {"/runs/" + std::to_string(i), "", "", ""});
  CHECK(places.size() == kMaxRecent);
  places = with_place(std::move(places), {"/runs/20", "spec.json", "", "dp=4", "clean", "fine"});
  CHECK(places.size() == kMaxRecent);
  CHECK(places[0].spec == "spec.json");
  CHECK(places[1].path == "/runs/39");
  CHECK(parse_recent(to_text(places)) == places);
  auto same = with_place(places, {"/not \xff text", "", "", ""});
  CHECK(same == places);
}

TEST_CASE("the file is made with the folders on its way, and replaced as a whole") {
  TemporaryFolder folder;
  std::string file = folder / "state/shardwright/recent.json";
  CHECK(read_recent(file).empty());
  RecentPlaces places{{"/runs/7", "", "", "", "findings", "3 findings"}};
  REQUIRE(write_recent(posix_store(), file, places).has_value());
  CHECK(read_recent(file) == places);
  put(file + ".new", "what a killed run left");
  places.push_back({"/runs/8", "", "", ""});
  REQUIRE(write_recent(posix_store(), file, places).has_value());
  CHECK(read_recent(file) == places);
  CHECK_FALSE(std::filesystem::exists(file + ".new"));
}

TEST_CASE("whatever is in the file of recent places does no harm") {
  for (const char* text :
       {"", "{", "[]", "null", "{\"recent\": 3}", "{\"recent\": [3, null, {}, {\"path\": 4}]}",
        "{\"recent\": [{\"path\": \"\"}]}", "{\"recent\": {\"path\": \"/a\"}}"}) {
    CAPTURE(text);
    CHECK(parse_recent(text).empty());
  }
  CHECK(parse_recent("{\"recent\": [{\"path\": \"/a\", \"verdict\": 7, \"more\": []}, 5]}") ==
        RecentPlaces{{"/a", "", "", ""}});
  std::string deep = "{\"recent\": " + std::string(100'000, '[');
  CHECK(parse_recent(deep).empty());
  std::string good = to_text({{"/runs/7", "s", "a", "m", "clean", "x"}});
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    bad[random() % bad.size()] = static_cast<char>(random());
    CHECK(parse_recent(bad).size() <= 1);
  }
}

TEST_CASE("where the file of recent places is is said by the environment") {
  CHECK(recent_file("/state", "/home/me") == "/state/shardwright/recent.json");
  CHECK(recent_file("relative", "/home/me") == "/home/me/.local/state/shardwright/recent.json");
  CHECK(recent_file(nullptr, "/home/me") == "/home/me/.local/state/shardwright/recent.json");
  CHECK(recent_file(nullptr, nullptr).empty());
  CHECK(recent_file("", "").empty());
}

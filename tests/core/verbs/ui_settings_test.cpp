#include "core/verbs/ui_settings.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "core/io/store.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::verbs;

namespace {

const UiSettings kOwn{UiTheme::kLight, 1.5,  {true, 0.25}, {false, 0}, SortKey::kBytes, true,
                      UiPanel::kBytes, true, {},           8};

std::string text_in_file(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void put_text(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("settings are read back as they were written, and as shipped where there is no file") {
  auto again = parse_ui_settings(to_text(kOwn));
  REQUIRE(again);
  CHECK(*again == kOwn);
  CHECK(*parse_ui_settings(R"({"shardwright-desk": 1})") == UiSettings{});
  TemporaryFolder folder;
  LoadedUiSettings none = read_ui_settings(posix_store(), folder / "desk.json");
  CHECK(none.settings == UiSettings{});
  CHECK(none.refused.empty());
}

TEST_CASE("settings with one key that makes no sense are refused whole, and say which") {
  struct Wrong {
    const char* text;
    const char* says;
  };
  for (Wrong wrong :
       {Wrong{"", "not JSON"}, Wrong{"{", "not JSON"}, Wrong{"[1]", "another program"},
        Wrong{R"({"theme": "light"})", "another program"},
        Wrong{R"({"shardwright-desk": 1, "theme": "sepia", "scale": 2})", "\"theme\""},
        Wrong{R"({"shardwright-desk": 1, "theme": 3})", "dark, light, contrast"},
        Wrong{R"({"shardwright-desk": 1, "scale": "2"})", "\"scale\" is not a number"},
        Wrong{R"({"shardwright-desk": 1, "scale": 1e999})", "not JSON"},
        Wrong{R"({"shardwright-desk": 1, "left": 4})", "\"left\" is not an object"},
        Wrong{R"({"shardwright-desk": 1, "left": {"open": 1}})", "\"open\""},
        Wrong{R"({"shardwright-desk": 1, "sort": null})", "\"sort\""},
        Wrong{R"({"shardwright-desk": 1, "tour_seen": "yes"})", "\"tour_seen\""}}) {
    CAPTURE(wrong.text);
    auto parsed = parse_ui_settings(wrong.text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().message.find(wrong.says) != std::string::npos);
  }
}

TEST_CASE("numbers out of bounds are brought into them, and unknown keys are passed over") {
  auto wide = parse_ui_settings(
      R"({"shardwright-desk": 9, "scale": 1e300, "left": {"part": -4}, "right": {"part": 7,
          "weight": 1}, "from the future": {"a": [1, 2]}})");
  REQUIRE(wide);
  CHECK(wide->scale == kMaxScale);
  CHECK(wide->left.part == 0);
  CHECK(wide->right.part == doctest::Approx(0.9));
  CHECK(parse_ui_settings(R"({"shardwright-desk": 1, "scale": -1})")->scale == kMinScale);
  CHECK(parse_ui_settings(R"({"shardwright-desk": 1, "left": {"part": 1e-9}})")->left.part > 0.01);
}

TEST_CASE("whatever a settings file holds, it is taken or refused") {
  std::string whole = to_text(kOwn);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    bool all = at + 1 == whole.size();  // without the last line end
    CHECK(parse_ui_settings(whole.substr(0, at)).has_value() == all);
    for (char c : {'\0', '"', '{', ']', '9', '\xFF'}) {
      std::string changed = whole;
      changed[at] = c;
      auto parsed = parse_ui_settings(changed);
      if (!parsed) continue;
      CHECK(parsed->scale >= kMinScale);
      CHECK(parsed->scale <= kMaxScale);
    }
  }
  std::string deep = R"({"shardwright-desk": 1, "x": )" + std::string(100'000, '[');
  CHECK_FALSE(parse_ui_settings(deep));
  CHECK_FALSE(parse_ui_settings(deep + std::string(100'000, ']') + "}"));
}

TEST_CASE("a settings file that was refused is set aside before ours takes its name") {
  TemporaryFolder folder;
  std::string file = folder / "config/shardwright/desk.json";
  REQUIRE(write_ui_settings(posix_store(), file, kOwn, false));  // folders are made
  CHECK(read_ui_settings(posix_store(), file).settings == kOwn);
  put_text(file, "set -o vi\n");
  LoadedUiSettings kept = read_ui_settings(posix_store(), file);
  CHECK(kept.refused == "it is not JSON");
  CHECK(kept.settings == UiSettings{});
  REQUIRE(write_ui_settings(posix_store(), file, kOwn, true));
  CHECK(read_ui_settings(posix_store(), file).settings == kOwn);
  CHECK(text_in_file(file + ".old") == "set -o vi\n");
  put_text(file, std::string((1 << 20) + 1, ' '));
  CHECK(read_ui_settings(posix_store(), file).refused.find("too many") != std::string::npos);
}

TEST_CASE("where the settings are is said by the environment") {
  CHECK(ui_settings_file("/config", "/home/me") == "/config/shardwright/desk.json");
  CHECK(ui_settings_file("relative", "/home/me") == "/home/me/.config/shardwright/desk.json");
  CHECK(ui_settings_file(nullptr, nullptr).empty());
}

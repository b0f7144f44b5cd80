// Names that JSON cannot store unchanged: names from torch's pickles may contain lone surrogates,
// be empty, or begin like the escapes of other names.
#include <doctest/doctest.h>

#include <set>

#include "core/base/utf8.h"
#include "core/transform/drawn_plan.h"

using namespace shw;

namespace {

const std::string kSurrogate = "w\xED\xB2\x80.weight";

}  // namespace

TEST_CASE("every name comes back from its text, and other text is itself") {
  const std::vector<std::string> names{"",
                                       "w",
                                       "/w",
                                       "//w",
                                       "w\xFF",
                                       "//\xFF",
                                       kSurrogate,
                                       escape_name("w\xFF"),
                                       escape_name("//w"),
                                       "\n"};
  std::set<std::string> texts;
  for (const std::string& name : names) {
    CAPTURE(name);
    const std::string text = escape_name(name);
    CHECK(is_utf8(text));
    CHECK(unescape_name(text) == name);
    CHECK(texts.insert(text).second);
  }
  for (const char* typed : {"//w", "//net/share", "w\\xff", "//w\\x41", "//w\\xf"})
    CHECK(unescape_name(typed) == typed);
}

TEST_CASE("a path that is not UTF-8 is pickled as Python has it") {
  CHECK(python_path_text("/a/\xC3\xA4") == "/a/\xC3\xA4");
  CHECK(python_path_text("a\xFF\x80z") == "a\xED\xB3\xBF\xED\xB2\x80z");
  CHECK(python_path_text("\xC3") == "\xED\xB3\x83");
  // Bytes that are not valid in UTF-8, one by one.
  CHECK(python_path_text("\xED\xB2\x80") == "\xED\xB3\xAD\xED\xB2\xB2\xED\xB2\x80");
  CHECK(is_utf8_or_surrogates(python_path_text("\xF0\x9F x \xFE")));
}

TEST_CASE("metadata that names a folder that is not UTF-8 can be loaded by Python") {
  MemoryStore store;
  auto folder = store.make_folder("/ck");
  REQUIRE(folder.has_value());
  auto sink = (*folder)->create(".metadata");
  REQUIRE(sink.has_value());
  DcpMetadata metadata;
  metadata.checkpoint_id = "/o\xFFt";
  REQUIRE(write_dcp_metadata(metadata, **sink));
  REQUIRE((*sink)->finish());
  const Bytes bytes = store.get("/ck/.metadata").value();
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  CHECK(text.find("/o\xED\xB3\xBFt") != text.npos);
  CHECK(text.find("/o\xFFt") == text.npos);
}

TEST_CASE("what is resharded and renamed under odd names is proved, with and without its source") {
  test::DrawnPlan plan;
  test::Dice dice(3);
  for (const char* fqn : {"", "//x", "plain", kSurrogate.c_str(), "y\xED\xA0\x80"})
    plan.wanted[fqn] = test::random_tensor(Dtype::kFloat32, {6, 5}, dice);
  test::save_in(plan.store, plan.wanted, dice);
  plan.steps = {ReshardStep{{"", "//x", "plain", kSurrogate, "y\xED\xA0\x80"},
                            {{{"dp", 2}}},
                            {{Placement::Kind::kShard, 0, 1}}},
                MaskStep{{kSurrogate}, {{{1, 0}, {2, 5}}}}, RenameStep{"plain", "new\xED\xB3\xBF"},
                RenameStep{"y\xED\xA0\x80", "y"}};
  for (const Step& step : plan.steps) std::visit(test::PlainSteps{plan.wanted}, step);
  const TargetState all = test::taken(test::open_in(plan.store, "/ck"), plan.steps);
  auto made = make_target(plan.store, all, test::run_into(plan, all, "/out"), nullptr);
  if (!made) FAIL(made.error().message);
  test::proved_files(plan, all, "/out");
}

TEST_CASE("a step gives no entry an empty name where none has it") {
  test::DrawnPlan plan;
  test::Dice dice(4);
  plan.wanted["a"] = test::random_tensor(Dtype::kFloat32, {6, 5}, dice);
  test::save_in(plan.store, plan.wanted, dice);
  auto renamed =
      apply_steps(target_state_of(test::open_in(plan.store, "/ck")), {RenameStep{"a", ""}});
  REQUIRE_FALSE(renamed.has_value());
  CHECK(renamed.error().message.find("needs a name") != std::string::npos);
}

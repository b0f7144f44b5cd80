// Commands next to a checkpoint: explaining an error message, a report, the demo.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/rules/rules.h"
#include "core/session/session.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

namespace fs = std::filesystem;

std::string whole_text(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string broken_fixture() {
  return std::string(SHW_TEST_DATA) + "/torch-2.14/s1_placement_not_transposed/";
}

}  // namespace

TEST_CASE("an error message of several lines is one line of a replay") {
  for (std::string text : {"one line", "two\nlines", "C:\\new\\nothing\r\n", "\\\\n"}) {
    std::string line = to_text(ExplainErrorCommand{text});
    CAPTURE(line);
    CHECK(line.find('\n') == std::string::npos);
    auto again = parse_command(line);
    REQUIRE(again);
    CHECK(std::get<ExplainErrorCommand>(*again).text == text);
  }
  for (const char* line : {"explain-error", "explain-error a\\", "explain-error \\x", "demo"})
    CHECK_FALSE(parse_command(line));
  for (const char* line : {"report", "report /tmp/my reports", "demo /tmp/a demo"})
    CHECK(to_text(*parse_command(line)) == line);
}

TEST_CASE("a session says what an error message can mean with nothing open") {
  Session session;
  session.apply(
      ExplainErrorCommand{"Size mismatch between saved torch.Size([288, 8192, 640]) and current: "
                          "torch.Size([288, 4096, "
                          "1280])"});
  session.wait();
  auto snapshot = session.snapshot();
  REQUIRE(snapshot->explained != nullptr);
  REQUIRE_FALSE(snapshot->explained->explanation.hypotheses.empty());
  CHECK(snapshot->explained->explanation.hypotheses[0].rule->id == "placement-axis-moved");
  session.apply(ExplainErrorCommand{"the coffee is cold"});
  session.wait();
  CHECK(session.snapshot()->explained->explanation.parsed.messages.empty());
}

TEST_CASE("a report goes next to the checkpoint under a name that is free, and over nothing") {
  TemporaryFolder folder;
  fs::create_directories(folder / "run");
  fs::copy(broken_fixture() + "ckpt", folder / "run/ckpt",
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  Session session;
  session.apply(ReportCommand{});
  session.wait();
  CHECK(session.snapshot()->error.has_value());  // nothing is open
  session.apply({OpenCommand{folder / "run/ckpt", broken_fixture() + "spec.json"}, CheckCommand{},
                 ReportCommand{}});
  session.wait();
  auto first = session.snapshot()->written;
  REQUIRE(first != nullptr);
  CHECK(first->path == fs::canonical(folder.path()).string() + "/run/ckpt-report.html");
  std::string page = whole_text(first->path);
  CHECK(page.size() == first->bytes);
  CHECK(page.find("placement-axis-moved") != std::string::npos);
  CHECK(page.find("What was checked") == std::string::npos);  // the finding has a picture of it
  // With another tensor on the screen the report shows that one, and is written to a second file.
  auto opened = session.snapshot();
  std::string other;
  for (std::uint32_t t = 0; t < opened->checkpoint->tensor_count(); ++t) {
    std::string fqn(opened->checkpoint->fqn(TensorId{t}));
    bool named = false;
    for (const Finding& finding : opened->report->findings)
      named = named || std::find(finding.subjects.begin(), finding.subjects.end(), fqn) !=
                           finding.subjects.end();
    if (!named) other = fqn;
  }
  REQUIRE_FALSE(other.empty());
  session.apply({SelectTensorCommand{other}, ReportCommand{}});
  session.wait();
  auto second = session.snapshot()->written;
  CHECK(second->path.ends_with("/run/ckpt-report-2.html"));
  page = whole_text(second->path);
  CHECK(page.find("What was checked") != std::string::npos);
  CHECK(page.find("Tiles of <code>" + other) != std::string::npos);
  CHECK(whole_text(first->path).size() == first->bytes);
}

TEST_CASE("a report goes where it is said, but neither over a file nor into the checkpoint") {
  TemporaryFolder folder;
  fs::create_directories(folder / "pages");
  std::ofstream(folder / "mine.html") << "mine";
  fs::copy(broken_fixture() + "ckpt", folder / "ckpt");
  Session session;
  session.apply({OpenCommand{folder / "ckpt"}, CheckCommand{}, ReportCommand{folder / "pages/"}});
  session.wait();
  CHECK(fs::exists(folder / "pages/ckpt-report.html"));
  session.apply(ReportCommand{folder / "new.html"});
  session.wait();
  CHECK(fs::exists(folder / "new.html"));
  for (const char* refused : {"mine.html", "ckpt/report.html", "ckpt", "no/such/folder.html"}) {
    CAPTURE(refused);
    auto before = session.snapshot()->written;
    session.apply(ReportCommand{folder / refused});
    session.wait();
    CHECK(session.snapshot()->error.has_value());
    CHECK(session.snapshot()->written == before);
  }
  CHECK(whole_text(folder / "mine.html") == "mine");
  CHECK_FALSE(fs::exists(folder / "ckpt/report.html"));
  CHECK_FALSE(fs::exists(folder / "ckpt/ckpt-report.html"));
}

TEST_CASE("the demo is made in a folder that is not there yet, and opened with its spec") {
  TemporaryFolder folder;
  Session session;
  session.apply({DemoCommand{folder / "cache/gui/demo"}, CheckCommand{}});
  session.wait();
  auto snapshot = session.snapshot();
  REQUIRE(snapshot->checkpoint != nullptr);
  CHECK(snapshot->options.spec.ends_with("/spec.json"));
  REQUIRE(snapshot->report != nullptr);
  REQUIRE_FALSE(snapshot->report->findings.empty());
  CHECK(snapshot->report->findings[0].rule == "placement-axis-moved");
  fs::create_directories(folder / "other/step_9000");
  std::ofstream(folder / "other/step_9000/file") << "mine";
  session.apply(DemoCommand{folder / "other"});
  session.wait();
  CHECK(session.snapshot()->error.has_value());
  CHECK(whole_text(folder / "other/step_9000/file") == "mine");
}

// Results whose certificate, or whose other files, cannot be read.
#include <doctest/doctest.h>

#include "core/formats/open.h"
#include "core/repair/repaired.h"

using namespace shw;

TEST_CASE("a certificate that goes on behind a NUL is none") {
  Repaired made;
  put(made.out + "/certificate.json", contents(made.out + "/certificate.json") + '\0' + "more");
  CHECK(outcome_of(made.out) != "proved");
}

TEST_CASE("a certificate that is damaged is broken and one that cannot be read is undecided") {
  Repaired made;
  const std::string text = contents(made.out + "/certificate.json");
  for (const std::string& other :
       {std::string(), text.substr(0, text.size() / 2), std::string("[]"),
        std::string("{\"schema\":\"shardwright/2\"}")}) {
    CAPTURE(other);
    put(made.out + "/certificate.json", other);
    auto report = verify_repair(made.out);
    REQUIRE(report.has_value());
    CHECK(report->outcome == VerifyReport::Outcome::kBroken);
    CHECK(report->reasons[0].find("certificate.json") != std::string::npos);
  }
  put(made.out + "/certificate.json", R"({"schema":"shardwright/9"})");
  CHECK(outcome_of(made.out) == "undecided");

  put(made.out + "/certificate.json", text);
  auto refusing = faulty_directory(
      *open_directory(made.out),
      [](const std::string& path, std::uint64_t, std::size_t) -> std::optional<Error> {
        if (path != "certificate.json") return std::nullopt;
        return Error{ErrorKind::kIo, "cannot be read: Input/output error", {path}, ""};
      });
  auto checkpoint = open_checkpoint(refusing);
  REQUIRE(checkpoint.has_value());
  auto report = verify_repair(**checkpoint);
  REQUIRE(report.has_value());
  CHECK(report->outcome == VerifyReport::Outcome::kUndecided);
  CHECK(report->reasons[0] == "certificate.json: cannot be read: Input/output error");
}

TEST_CASE("what does not open any more next to a certificate that holds is broken") {
  Repaired made;
  std::string bytes = contents(made.out + "/.metadata");
  put(made.out + "/.metadata", bytes.substr(0, bytes.size() / 2));
  auto report = verify_repair(made.out);
  REQUIRE(report.has_value());
  CHECK(report->outcome == VerifyReport::Outcome::kBroken);
  CHECK(report->reasons[0].find(".metadata") != std::string::npos);
  put(made.out + "/certificate.json", "{}");
  CHECK_FALSE(verify_repair(made.out).has_value());
}

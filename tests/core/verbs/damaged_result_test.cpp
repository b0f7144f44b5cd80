// Results whose certified files are missing or changed, whatever the folder looks like.
#include <doctest/doctest.h>

#include <filesystem>

#include "core/make_zip.h"
#include "core/repair/proof/verify.h"
#include "core/temporary_folder.h"
#include "core/verbs/transforms.h"
#include "core/verbs/verbs.h"

using namespace shw;
using namespace shw::test;

namespace {

struct ProvedResult {
  TemporaryFolder folder;
  std::string out;
  explicit ProvedResult(const std::string& to) : out(folder / "out") {
    put(folder / "m.pt",
        make_zip({{"m/data.pkl", as_pickle("}" + pickled_text("w") + tensor_call({}) + "s")},
                  {"m/version", "3\n"},
                  {"m/data/0", std::string(24, '\1')}}));
    VerbOptions options;
    options.checkpoint = folder / "m.pt";
    options.to = to;
    auto opened = verbs::open(options);
    REQUIRE(opened.has_value());
    REQUIRE(verbs::repair(*opened, verbs::plan_convert(*opened, options).value(), {out}, nullptr));
  }
  std::string certified() const {
    for (const auto& entry : std::filesystem::directory_iterator(out)) {
      const std::string name = entry.path().filename().string();
      if (name == "model.pt" || name == "model.safetensors" || name == ".metadata") return name;
    }
    return {};
  }
};

void check_is_broken(const std::string& out, const std::string& by) {
  auto proof = verify_repair(out, nullptr);
  REQUIRE_MESSAGE(proof.has_value(), proof.error().message);
  CHECK(proof->outcome == VerifyReport::Outcome::kBroken);
  REQUIRE_FALSE(proof->reasons.empty());
  CHECK(proof->reasons[0].find(by) != std::string::npos);
}

}  // namespace

TEST_CASE("a proved result whose file is zeroed, replaced, cut off or gone is broken") {
  for (const char* to : {"torch", "safetensors", "dcp"}) {
    CAPTURE(to);
    const ProvedResult made(to);
    const std::string name = made.certified();
    REQUIRE_FALSE(name.empty());
    const std::string path = made.out + "/" + name;
    const std::string was = contents(path);
    for (const std::string& now : {std::string(was.size(), '\0'), std::string("another file"),
                                   was.substr(0, was.size() - 30), std::string()}) {
      CAPTURE(now.size());
      put(path, now);
      check_is_broken(made.out, name);
      auto against = verbs::verify(made.out, nullptr, made.folder / "m.pt");
      REQUIRE(against.has_value());
      CHECK(against->outcome == VerifyReport::Outcome::kBroken);
    }
    std::filesystem::remove(path);
    check_is_broken(made.out, name);
    put(path, was);
    CHECK(verify_repair(made.out, nullptr)->outcome == VerifyReport::Outcome::kProved);
  }
}

TEST_CASE("a folder that holds nothing is broken by its certificate alone, and only by one") {
  const ProvedResult made("torch");
  std::filesystem::remove(made.out + "/model.pt");
  check_is_broken(made.out, "model.pt: is certified, but missing");
  std::filesystem::remove(made.out + "/certificate.json");
  CHECK_FALSE(verify_repair(made.out, nullptr).has_value());
}

TEST_CASE("a file next to a whole result that hides it is not damage of the result") {
  const ProvedResult made("safetensors");
  put(made.out + "/consolidated.safetensors", contents(made.out + "/model.safetensors"));
  auto proof = verify_repair(made.out, nullptr);
  CHECK((!proof.has_value() || proof->outcome != VerifyReport::Outcome::kBroken));
}

TEST_CASE("a file that a verb wrote is proved by the certificate next to it") {
  for (const char* to : {"torch", "safetensors", "dcp"}) {
    CAPTURE(to);
    const ProvedResult made(to);
    const std::string file = made.out + "/" + made.certified();
    auto proof = verbs::verify(file, nullptr);
    REQUIRE_MESSAGE(proof.has_value(), proof.error().message);
    CHECK(proof->outcome == VerifyReport::Outcome::kProved);
    auto against = verbs::verify(file, nullptr, made.folder / "m.pt");
    REQUIRE_MESSAGE(against.has_value(), against.error().message);
    CHECK(against->outcome == VerifyReport::Outcome::kProved);
    put(file, contents(file).substr(0, 40));
    check_is_broken(file, made.certified());
  }
}

TEST_CASE("a file of which the certificate next to it says nothing is not proved by it") {
  const ProvedResult made("torch");
  put(made.out + "/other.pt", contents(made.out + "/model.pt"));
  auto proof = verbs::verify(made.out + "/other.pt", nullptr);
  REQUIRE(proof.has_value());
  CHECK(proof->outcome == VerifyReport::Outcome::kUndecided);
}

// Malformed versions of every text input, from users and from folders.
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>

#include "core/exec/journal.h"
#include "core/facts/reference/model_config.h"
#include "core/formats/open.h"
#include "core/repair/proof/certificate.h"
#include "core/rules/on_fixtures.h"
#include "core/spec/spec.h"
#include "core/temporary_folder.h"
#include "core/verbs/certificate_list.h"
#include "core/verbs/check_context.h"
#include "core/verbs/options.h"
#include "core/verbs/transforms.h"
#include "core/verbs/verbs.h"

using namespace shw;
using namespace shw::test;

namespace {

struct Reader {
  const char* name;
  const char* file;
  std::function<bool(const TemporaryFolder&, const std::string& path)> takes;
};

verbs::Opened sound_checkpoint() {
  verbs::Opened opened;
  opened.checkpoint = opened_fixture("torch-2.14/healthy_grid");
  return opened;
}

const std::vector<Reader>& readers() {
  static const std::vector<Reader> kReaders = {
      {"a spec", "spec.json",
       [](const TemporaryFolder&, const std::string& path) { return load_spec(path).has_value(); }},
      {"a plan", "plan.json",
       [](const TemporaryFolder&, const std::string& path) {
         return verbs::read_plan(sound_checkpoint(), path).has_value();
       }},
      {"steps", "steps.json",
       [](const TemporaryFolder&, const std::string& path) {
         return verbs::read_plan(sound_checkpoint(), path).has_value();
       }},
      {"placements", "placements.json",
       [](const TemporaryFolder&, const std::string& path) {
         VerbOptions verb_options;
         verb_options.mesh = "dp=2";
         verb_options.placements = path;
         return verbs::plan_reshard(sound_checkpoint(), verb_options).has_value();
       }},
      {"a baseline", "baseline.json",
       [](const TemporaryFolder&, const std::string& path) {
         return verbs::read_check_request(path, {}).has_value();
       }},
      {"policies", "policies.json",
       [](const TemporaryFolder&, const std::string& path) {
         return verbs::read_check_request({}, path).has_value();
       }},
      {"a certificate", kCertificateFile,
       [](const TemporaryFolder& folder, const std::string&) {
         return verbs::read_certificate_list(folder.path()).has_value();
       }},
      {"a journal", kJournalFile,
       [](const TemporaryFolder& folder, const std::string&) {
         return read_journal(**open_directory(folder.path())).has_value();
       }},
      {"a config", "config.json",
       [](const TemporaryFolder& folder, const std::string&) {
         return read_model_config(**open_directory(folder.path())).has_value();
       }},
      {"an index of DCP", ".metadata",
       [](const TemporaryFolder& folder, const std::string&) {
         return open_checkpoint(folder.path()).has_value();
       }},
      {"an index of safetensors", "model.safetensors.index.json",
       [](const TemporaryFolder& folder, const std::string&) {
         return open_checkpoint(folder.path()).has_value();
       }},
  };
  return kReaders;
}

std::string nested(const std::string& begin, std::size_t levels) {
  return begin + std::string(levels, '[') + std::string(levels, ']') + "}";
}

}  // namespace

TEST_CASE("hostile inputs: deep, broken and foreign text is refused by every reader") {
  const std::string texts[] = {
      nested(R"({"schema":"shardwright/1","plan":)", 100'000),
      nested(R"({"steps":)", 100'000),
      nested(R"({"model_type":"llama","require":)", 200),
      "hello",
      "{",
      std::string("{}\0{", 4),
      "{\"a\": \"\xff\", \"model_type\": \"llama\"}",
  };
  for (const Reader& reader : readers()) {
    for (const std::string& text : texts) {
      CAPTURE(std::string(reader.name));
      CAPTURE(text.substr(0, 60));
      const TemporaryFolder folder;
      put(folder / reader.file, text);
      CHECK_FALSE(reader.takes(folder, folder / reader.file));
    }
  }
}

TEST_CASE("hostile inputs: a sparse file of 1 TB is refused before memory is taken") {
  for (const Reader& reader : readers()) {
    CAPTURE(reader.name);
    const TemporaryFolder folder;
    put(folder / reader.file, "{");
    std::error_code error;
    std::filesystem::resize_file(folder / reader.file, std::uintmax_t{1} << 40, error);
    if (error) return;  // this file system does not support such files
    CHECK_FALSE(reader.takes(folder, folder / reader.file));
  }
}

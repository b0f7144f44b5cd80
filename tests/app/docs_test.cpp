// Tests README, CONTRIBUTING and docs/: docs/verbs.md equals the program's output, sentences are
// short, and every link leads somewhere.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "app/process.h"

using namespace shw::test;

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SHW_SOURCE_DIR;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), path.string());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<fs::path> pages() {
  std::vector<fs::path> all = {kRoot / "README.md", kRoot / "CONTRIBUTING.md"};
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() == ".md") all.push_back(entry.path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool is_bullet(const std::string& line) {
  std::size_t at = line.find_first_not_of(' ');
  return at != line.npos && line.size() > at + 1 && line[at + 1] == ' ' &&
         (line[at] == '-' || line[at] == '*' || line[at] == '+');
}

// Paragraphs and list items, without code, tables, headings and pictures.
std::vector<std::string> paragraphs_of(const std::string& text) {
  std::vector<std::string> all(1);
  bool in_code = false;
  for (std::string line : lines_of(text)) {
    if (line.starts_with("```")) in_code = !in_code;
    const bool is_prose = !in_code && !line.empty() && !line.starts_with("```") &&
                          !line.starts_with("|") && !line.starts_with("#") &&
                          !line.starts_with("    ") && !line.starts_with("![");
    if (!is_prose || is_bullet(line)) all.emplace_back();
    if (!is_prose) continue;
    if (is_bullet(line)) line = line.substr(line.find_first_not_of(' ') + 2);
    all.back() += (all.back().empty() ? "" : " ") + line;
  }
  return all;
}

std::size_t words_in(const std::string& text) {
  std::istringstream stream(text);
  std::size_t count = 0;
  for (std::string word; stream >> word;) ++count;
  return count;
}

// Splits at the ends of sentences: "." and the like before a space.
std::vector<std::string> sentences_of(const std::string& paragraph) {
  std::vector<std::string> all(1);
  for (std::size_t i = 0; i < paragraph.size(); ++i) {
    all.back() += paragraph[i];
    const bool ends = std::string(".!?").find(paragraph[i]) != std::string::npos;
    if (ends && i + 1 < paragraph.size() && paragraph[i + 1] == ' ') all.emplace_back();
  }
  return all;
}

struct Lengths {
  std::vector<std::size_t> sentences;
  std::size_t longest_paragraph = 0;
};

Lengths measured(const std::string& text) {
  Lengths lengths;
  for (const std::string& paragraph : paragraphs_of(text)) {
    lengths.longest_paragraph = std::max(lengths.longest_paragraph, words_in(paragraph));
    for (const std::string& sentence : sentences_of(paragraph)) {
      if (std::size_t words = words_in(sentence); words >= 3) lengths.sentences.push_back(words);
    }
  }
  std::sort(lengths.sentences.begin(), lengths.sentences.end());
  return lengths;
}

}  // namespace

TEST_CASE("docs: the page of verbs is what the program prints") {
  Run run = shardwright({"completion", "markdown"});
  REQUIRE(run.code == 0);
  // `shardwright completion markdown > docs/verbs.md` rewrites it.
  CHECK(run.out == text_of(kRoot / "docs" / "verbs.md"));
}

TEST_CASE("docs: README's table of formats is the one that the program prints") {
  const auto table_in = [](const std::string& text) {
    const std::size_t begin = text.find("<!-- formats -->"), end = text.find("<!-- end of formats");
    REQUIRE(begin != text.npos);
    REQUIRE(end != text.npos);
    return text.substr(begin, end - begin);
  };
  CHECK(table_in(text_of(kRoot / "README.md")) == table_in(text_of(kRoot / "docs" / "verbs.md")));
}

TEST_CASE("docs: sentences and paragraphs of every page are short") {
  for (const fs::path& page : pages()) {
    CAPTURE(page.string());
    Lengths lengths = measured(text_of(page));
    REQUIRE_FALSE(lengths.sentences.empty());
    std::size_t sum = 0;
    for (std::size_t words : lengths.sentences) sum += words;
    CHECK(sum <= 15 * lengths.sentences.size());
    CHECK(lengths.sentences[lengths.sentences.size() * 9 / 10] <= 25);
    CHECK(lengths.sentences.back() <= 40);
    CHECK(lengths.longest_paragraph <= 80);
  }
}

TEST_CASE("docs: README and CONTRIBUTING have at most 150 lines") {
  for (const char* name : {"README.md", "CONTRIBUTING.md"}) {
    CAPTURE(name);
    CHECK(lines_of(text_of(kRoot / name)).size() <= 150);
  }
}

TEST_CASE("docs: every link to a file leads somewhere") {
  const std::regex link(R"(\]\(([^)#:]+)(#[^)]*)?\))");
  for (const fs::path& page : pages()) {
    CAPTURE(page.string());
    const std::string text = text_of(page);
    for (std::sregex_iterator found(text.begin(), text.end(), link), end; found != end; ++found) {
      const std::string target = (*found)[1].str();
      CAPTURE(target);
      CHECK(fs::exists(page.parent_path() / target));
    }
  }
}

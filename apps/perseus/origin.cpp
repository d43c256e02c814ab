#include "origin.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "io/formats/file.h"
#include "io/formats/number.h"
#include "io/formats/sha256.h"
#include "perseus_commit.h"

namespace perseus::cli {
namespace {

std::string time_text() {
  const char* fixed = std::getenv("SOURCE_DATE_EPOCH");
  const auto given = formats::number_in<std::int64_t>(fixed != nullptr ? fixed : "");
  return fmt::format("{:%FT%TZ}", fmt::gmtime(given ? static_cast<std::time_t>(*given) : std::time(nullptr)));
}

/// The words of this process, quoted where a shell needs it.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string words((std::istreambuf_iterator<char>(file)), {});
  std::string text;
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find('\0', begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    const bool is_plain = word.find_first_of(" \t\n'\"\\$`&|;<>()*?[]{}#~") == std::string::npos;
    text += (text.empty() ? "" : " ") + (is_plain ? word : "'" + word + "'");
    begin = end + 1;
  }
  return text;
}

}  // namespace

std::string version_text() { return PERSEUS_VERSION " (commit " PERSEUS_COMMIT ")"; }

std::vector<report::ReportFact> origin_facts(const std::vector<std::string>& inputs) {
  std::vector<report::ReportFact> facts{
      {"Perseus", version_text()}, {"written", time_text()}, {"command", command_line()}};
  for (const std::string& path : inputs) {
    if (path.empty()) continue;
    if (const Result<std::string> text = formats::read_file(path)) {
      facts.push_back({"SHA-256 of " + std::filesystem::path(path).filename().string(), formats::sha256(*text)});
    }
  }
  return facts;
}

}  // namespace perseus::cli

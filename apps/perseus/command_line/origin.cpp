#include "command_line/origin.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "io/formats/file.h"
#include "io/formats/number.h"
#include "perseus_commit.h"

namespace perseus::cli {
namespace {

std::string time_text() {
  const char* fixed = std::getenv("SOURCE_DATE_EPOCH");
  const auto given = formats::number_in<std::int64_t>(fixed != nullptr ? fixed : "");
  return fmt::format("{:%FT%TZ}", fmt::gmtime(given ? static_cast<std::time_t>(*given) : std::time(nullptr)));
}

/// The words of this process.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string words((std::istreambuf_iterator<char>(file)), {});
  std::string text;
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find('\0', begin), words.size());
    text += (text.empty() ? "" : " ") + shell_word(words.substr(begin, end - begin));
    begin = end + 1;
  }
  return text;
}

}  // namespace

std::string version_text() { return PERSEUS_VERSION " (commit " PERSEUS_COMMIT ")"; }

std::vector<report::ReportFact> origin_facts() {
  std::vector<report::ReportFact> facts{
      {"Perseus", version_text()}, {"written", time_text()}, {"command", command_line()}};
  const auto has = [&](const std::string& name) {
    return std::ranges::find(facts, name, &report::ReportFact::name) != facts.end();
  };
  for (const formats::FileRead& file : formats::files_read()) {
    std::string name = "SHA-256 of " + std::filesystem::path(file.path).filename().string();
    if (has(name)) name = "SHA-256 of " + file.path;
    facts.push_back({std::move(name), file.sha256});
  }
  return facts;
}

std::vector<report::ReportFact> with_origin(std::vector<report::ReportFact> facts) {
  std::ranges::move(origin_facts(), std::back_inserter(facts));
  return facts;
}

boost::json::object origin_json() {
  boost::json::object origin;
  for (const report::ReportFact& fact : origin_facts()) origin[fact.name] = fact.value;
  return origin;
}

std::string shell_word(const std::string& word) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace perseus::cli

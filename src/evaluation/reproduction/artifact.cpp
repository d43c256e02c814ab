#include "evaluation/reproduction/artifact.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <tuple>

#include "io/formats/csv.h"
#include "io/formats/file.h"
#include "io/formats/number.h"
#include "io/formats/profile_csv.h"

namespace perseus::reproduction {
namespace {

namespace fs = std::filesystem;

// Scaling of a profile in the artifact: layers of a tenth of the time, one of eight tensor-parallel GPUs.
constexpr double kTimeScale = 10;
constexpr double kEnergyScale = 80;

/// Rows of a CSV file by column name.
class NamedColumns {
 public:
  NamedColumns(std::string_view text, std::string name) : csv_(text, std::move(name)) {}

  Status read_header(const std::vector<std::string_view>& wanted) {
    Result<bool> more = csv_.next();
    if (!more) return more.error();
    if (!*more) return csv_.error("an empty file; expected a header line");
    for (const std::string_view column : wanted) {
      const auto found = std::ranges::find(csv_.fields(), column);
      if (found == csv_.fields().end()) return csv_.error(fmt::format("missing column: {}", column));
      columns_.emplace_back(column, found - csv_.fields().begin());
    }
    width_ = csv_.fields().size();
    return Ok{};
  }
  Result<bool> next() {
    while (true) {
      Result<bool> more = csv_.next();
      if (!more || !*more) return more;
      if (!csv_.blank()) return true;
    }
  }
  /// Call for every row before its fields.
  [[nodiscard]] Status check_width() const {
    if (csv_.fields().size() == width_) return Ok{};
    return csv_.error(fmt::format("{} fields; the header has {}", csv_.fields().size(), width_));
  }
  /// `column` is an index into the columns passed to read_header().
  [[nodiscard]] std::string_view text(std::size_t column) const { return csv_.fields()[columns_[column].second]; }
  [[nodiscard]] Result<double> positive(std::size_t column) const {
    const auto value = formats::number_in<double>(text(column));
    if (value && *value > 0 && *value <= 1e15) return *value;
    return csv_.error(fmt::format("{}: '{}'; allowed: a number above 0 and up to 1e15", columns_[column].first,
                                  text(column).substr(0, 64)));
  }
  [[nodiscard]] Result<int> count(std::size_t column) const {
    const auto value = formats::number_in<int>(text(column));
    if (value && *value > 0) return *value;
    return csv_.error(
        fmt::format("{}: '{}'; allowed: a whole number above 0", columns_[column].first, text(column).substr(0, 64)));
  }

 private:
  formats::CsvReader csv_;
  std::vector<std::pair<std::string_view, std::size_t>> columns_;
  std::size_t width_ = 0;
};

/// The file, or its gzipped form; nothing if neither exists.
std::optional<fs::path> either_form(fs::path path) {
  std::error_code error;
  if (fs::exists(path, error)) return path;
  path += ".gz";
  return fs::exists(path, error) ? std::optional(path) : std::nullopt;
}

Result<PublishedIteration> envpipe_row(const NamedColumns& rows) {
  if (Status whole = rows.check_width(); !whole) return whole.error();
  const Result<int> microbatches = rows.count(2);
  if (!microbatches) return microbatches.error();
  const Result<double> time_s = rows.positive(3);
  if (!time_s) return time_s.error();
  const Result<double> energy_j = rows.positive(4);
  if (!energy_j) return energy_j.error();
  return PublishedIteration{std::string(rows.text(0)), std::string(rows.text(1)), *microbatches,
                            Seconds(*time_s / kTimeScale), Joules(*energy_j / kEnergyScale)};
}

/// Adds the usable rows; skips the others.
void read_envpipe(const fs::path& folder, Artifact& artifact) {
  const auto path = either_form(folder / "emulation" / "envpipe_result.csv");
  if (!path) return;
  const Result<std::string> text = formats::read_file(path->string());
  if (!text) return artifact.left_out.push_back(text.error().message);
  NamedColumns rows(*text, path->string());
  if (Status header = rows.read_header({"model", "device", "num_microbatches", "iteration_time", "energy"}); !header) {
    return artifact.left_out.push_back(header.error().message);
  }
  while (true) {
    const Result<bool> more = rows.next();
    if (!more) return artifact.left_out.push_back(more.error().message);
    if (!*more) return;
    const Result<PublishedIteration> row = envpipe_row(rows);
    if (row) {
      artifact.envpipe.push_back(*row);
    } else {
      artifact.left_out.push_back(row.error().message);
    }
  }
}

/// "MODEL+GPU_bf16.csv" or its gzipped form -> model and GPU.
std::optional<std::pair<std::string, std::string>> names_in(std::string_view file_name) {
  constexpr std::string_view ending = "_bf16.csv";
  if (file_name.ends_with(".gz")) file_name.remove_suffix(3);
  if (!file_name.ends_with(ending)) return std::nullopt;
  file_name.remove_suffix(ending.size());
  const std::size_t plus = file_name.rfind('+');
  if (plus == std::string_view::npos || plus == 0 || plus + 1 == file_name.size()) return std::nullopt;
  return std::pair(std::string(file_name.substr(0, plus)), std::string(file_name.substr(plus + 1)));
}

}  // namespace

const PublishedIteration* Artifact::envpipe_of(const EmulatedProfile& profile, int microbatches) const {
  const auto found = std::ranges::find_if(envpipe, [&](const PublishedIteration& p) {
    return p.model == profile.model && p.gpu == profile.gpu && p.microbatches == microbatches;
  });
  return found == envpipe.end() ? nullptr : &*found;
}

Result<Artifact> read_artifact(const fs::path& folder) {
  const fs::path profiles = folder / "emulation" / "stage_profile";
  std::error_code error;
  if (!fs::is_directory(profiles, error)) {
    return Error{ErrorCode::not_found, fmt::format("{}: no such directory; expected the published artifact's layout: "
                                                   "DATA_DIR/emulation/stage_profile/MODEL+GPU_bf16.csv",
                                                   profiles.string())};
  }
  std::vector<fs::path> files;
  fs::directory_iterator entry(profiles, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) files.push_back(entry->path());
  if (error) return Error{ErrorCode::not_found, fmt::format("{}: {}", profiles.string(), error.message())};
  std::ranges::sort(files);  // a file before its gzipped form

  Artifact artifact;
  std::optional<Error> first;
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    if (name.starts_with('.')) continue;  // hidden files of desktops and version control
    const auto names = names_in(name);
    if (!names) {
      artifact.left_out.push_back(fmt::format("{}: not named MODEL+GPU_bf16.csv", file.string()));
      continue;
    }
    const auto same = [&](const EmulatedProfile& p) { return p.model == names->first && p.gpu == names->second; };
    if (std::ranges::any_of(artifact.profiles, same)) {
      artifact.left_out.push_back(fmt::format("{}: also exists without .gz; that file is used", file.string()));
      continue;
    }
    Result<model::Profile> profile = formats::read_profile_csv(file.string());
    if (!profile) {
      if (!first) first = profile.error();
      artifact.left_out.push_back(profile.error().message);
      continue;
    }
    artifact.profiles.push_back({names->first, names->second, *std::move(profile)});
  }
  if (artifact.profiles.empty()) {
    return first ? *first
                 : Error{ErrorCode::not_found,
                         fmt::format("{}: no profiles; expected files named MODEL+GPU_bf16.csv", profiles.string())};
  }
  std::ranges::sort(artifact.profiles, {}, [](const EmulatedProfile& p) { return std::tie(p.model, p.gpu); });
  read_envpipe(folder, artifact);
  return artifact;
}

namespace {

fs::path frontiers_of(const fs::path& folder, const EmulatedProfile& profile) {
  return folder / "emulation" / "iteration_time_energy" / profile.gpu;
}

}  // namespace

std::vector<int> published_microbatches(const fs::path& folder, const Artifact& artifact,
                                        const EmulatedProfile& profile) {
  std::vector<int> all;
  for (const PublishedIteration& p : artifact.envpipe) {
    if (p.model == profile.model && p.gpu == profile.gpu) all.push_back(p.microbatches);
  }
  const std::string before = profile.model + "_bf16_mb";
  std::error_code error;
  fs::directory_iterator entry(frontiers_of(folder, profile), error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    std::string_view name = file;
    if (name.ends_with(".gz")) name.remove_suffix(3);
    if (!name.starts_with(before) || !name.ends_with(".csv")) continue;
    name.remove_suffix(4);
    const auto microbatches = formats::number_in<int>(name.substr(before.size()));
    if (microbatches && *microbatches > 0) all.push_back(*microbatches);
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

Result<std::optional<std::vector<PublishedPoint>>> read_published_frontier(const fs::path& folder,
                                                                           const EmulatedProfile& profile,
                                                                           int microbatches) {
  const auto path =
      either_form(frontiers_of(folder, profile) / fmt::format("{}_bf16_mb{}.csv", profile.model, microbatches));
  if (!path) return std::optional<std::vector<PublishedPoint>>{};
  const Result<std::string> text = formats::read_file(path->string());
  if (!text) return text.error();
  NamedColumns rows(*text, path->string());
  if (Status header = rows.read_header({"time", "energy"}); !header) return header.error();
  std::vector<PublishedPoint> points;
  while (true) {
    const Result<bool> more = rows.next();
    if (!more) return more.error();
    if (!*more) break;
    if (Status whole = rows.check_width(); !whole) return whole.error();
    const Result<double> time_s = rows.positive(0);
    if (!time_s) return time_s.error();
    const Result<double> energy_j = rows.positive(1);
    if (!energy_j) return energy_j.error();
    points.push_back({Seconds(*time_s), Joules(*energy_j)});
  }
  if (points.empty()) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: no rows after the header", path->string())};
  }
  return std::optional(std::move(points));
}

}  // namespace perseus::reproduction

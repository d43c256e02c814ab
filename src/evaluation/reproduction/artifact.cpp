#include "evaluation/reproduction/artifact.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <tuple>

#include "io/formats/csv_table.h"
#include "io/formats/file.h"
#include "io/formats/number.h"
#include "io/formats/profile_csv.h"

namespace perseus::reproduction {
namespace {

namespace fs = std::filesystem;

// Scaling of a profile in the artifact: layers of a tenth of the time, one of eight tensor-parallel GPUs.
constexpr double kTimeScale = 10;
constexpr double kEnergyScale = 80;

struct EnvPipeColumn {
  enum : std::size_t { model, gpu, microbatches, time, energy };
};
constexpr std::array<formats::CsvColumn, 5> kEnvPipeColumns{
    {{"model", true}, {"device", true}, {"num_microbatches", true}, {"iteration_time", true}, {"energy", true}}};

struct FrontierColumn {
  enum : std::size_t { time, energy };
};
constexpr std::array<formats::CsvColumn, 2> kFrontierColumns{{{"time", true}, {"energy", true}}};

constexpr formats::CsvRange kPositive{false, 1e15, "a number > 0 and <= 1e15"};

/// The file, or its gzipped form; nothing if neither exists.
std::optional<fs::path> either_form(fs::path path) {
  std::error_code error;
  if (fs::exists(path, error)) return path;
  path += ".gz";
  return fs::exists(path, error) ? std::optional(path) : std::nullopt;
}

Result<PublishedIteration> envpipe_row(formats::CsvTable& table) {
  const int microbatches = table.integer(EnvPipeColumn::microbatches, 1, 1 << 30);
  const double time_s = table.number(EnvPipeColumn::time, kPositive);
  const double energy_j = table.number(EnvPipeColumn::energy, kPositive);
  if (const auto error = table.take_error()) return *error;
  return PublishedIteration{std::string(table.field(EnvPipeColumn::model)),
                            std::string(table.field(EnvPipeColumn::gpu)), microbatches, Seconds(time_s / kTimeScale),
                            Joules(energy_j / kEnergyScale)};
}

/// Adds the usable rows; skips the others.
void read_envpipe(const fs::path& folder, Artifact& artifact) {
  const auto path = either_form(folder / "emulation" / "envpipe_result.csv");
  if (!path) return;
  const Result<std::string> text = formats::read_file(path->string());
  if (!text) return artifact.left_out.push_back(text.error().message);
  formats::CsvTable table(*text, path->string());
  if (Status header = table.read_header(kEnvPipeColumns, formats::OtherColumns::ignored); !header) {
    return artifact.left_out.push_back(header.error().message);
  }
  while (true) {
    const Result<bool> more = table.next();
    if (!more) return artifact.left_out.push_back(more.error().message);
    if (!*more) return;
    const Result<PublishedIteration> row = envpipe_row(table);
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
  formats::CsvTable table(*text, path->string());
  if (Status header = table.read_header(kFrontierColumns, formats::OtherColumns::ignored); !header) {
    return header.error();
  }
  std::vector<PublishedPoint> points;
  while (true) {
    const Result<bool> more = table.next();
    if (!more) return more.error();
    if (!*more) break;
    const Seconds time(table.number(FrontierColumn::time, kPositive));
    const Joules energy(table.number(FrontierColumn::energy, kPositive));
    if (const auto error = table.take_error()) return *error;
    points.push_back({time, energy});
  }
  if (points.empty()) return table.no_rows("a row per point");
  return std::optional(std::move(points));
}

}  // namespace perseus::reproduction

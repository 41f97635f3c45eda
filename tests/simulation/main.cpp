// SPDX-License-Identifier: LGPL-2.1-or-later
// simulation: runs many seeds and says what was injected, or one seed and what happened in it.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

#include "host/text_file.h"
#include "world.h"

namespace {

using namespace nvmepolicy;
using namespace nvmepolicy::simulation;

struct Options {
    std::uint64_t first = 1;
    std::uint64_t seeds = 1000;
    std::uint64_t seed = 0;
    unsigned jobs = 1;
    bool trace = false;
    bool twice = false;
    std::string expect;
    std::string drives = NVMEPOLICY_SOURCE_DIR "/tests/drives";
};

std::vector<DriveFile> read_drives(const std::string& directory)
{
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
        files.push_back(entry.path().string());
    std::ranges::sort(files);
    std::vector<DriveFile> drives;
    for (const std::string& file : files) {
        const auto text = read_text_file(file, largest_drive_file);
        const auto drive = text ? parse_drive_file(file, *text) : Result<DriveFile>(text.error());
        if (!drive)
            throw std::runtime_error(drive.error().text());
        drives.push_back(*drive);
    }
    return drives;
}

struct Report {
    Counts counts;
    std::uint64_t steps = 0;
    std::uint64_t failures = 0;
    std::string broken; ///< the invariant that broke last
};

/// 0: in order; the trace is printed only where asked.
bool run_seed(std::uint64_t seed, const std::vector<DriveFile>& drives, const Options& options, Report& report)
{
    Ending ending = World(seed, drives, options.trace, options.twice).run(report.counts);
    report.steps += ending.steps;
    if (options.twice) {
        Counts again;
        if (World(seed, drives, false, true).run(again).fingerprint != ending.fingerprint && !ending.violation)
            ending.violation = Violation{"one seed, one run", "the second run went another way"};
    }
    if (!ending.violation)
        return true;
    report.broken = ending.violation->invariant;
    fmt::print("seed {}: BROKEN: {}: {}\n", seed, ending.violation->invariant, ending.violation->text);
    return false;
}

int run_range(std::uint64_t first, std::uint64_t last, std::uint64_t stride, const std::vector<DriveFile>& drives,
              const Options& options, Report& report)
{
    for (std::uint64_t seed = first; seed <= last; seed += stride)
        if (!run_seed(seed, drives, options, report) && ++report.failures >= 10)
            break;
    return report.failures == 0 ? 0 : 1;
}

/// For a build with a fault in it: one of the seeds must break that invariant.
int run_until_broken(const std::vector<DriveFile>& drives, const Options& options)
{
    Report report;
    for (std::uint64_t seed = options.first; seed < options.first + options.seeds; ++seed)
        if (!run_seed(seed, drives, options, report) && report.broken == options.expect)
            return 0;
    fmt::print("{} seeds did not break this: {}\n", options.seeds, options.expect);
    return 1;
}

void print(const Report& report)
{
    fmt::print("steps {}\n", report.steps);
    for (const auto& [what, times] : report.counts)
        fmt::print("{:>10}  {}\n", times, what);
}

/// Processes, since whatever one seed does must not be able to touch another.
int run_all(const std::vector<DriveFile>& drives, const Options& options)
{
    const auto began = std::chrono::steady_clock::now();
    std::vector<pid_t> children;
    std::vector<int> pipes;
    for (unsigned job = 0; job < options.jobs; ++job) {
        int ends[2];
        if (::pipe(ends) < 0)
            throw std::runtime_error("pipe");
        std::fflush(nullptr);
        const pid_t child = ::fork();
        if (child == 0) {
            Report report;
            const int code =
                run_range(options.first + job, options.first + options.seeds - 1, options.jobs, drives, options, report);
            std::string text = fmt::format("{}\n", report.steps);
            for (const auto& [what, times] : report.counts)
                text += fmt::format("{} {}\n", times, what);
            if (::write(ends[1], text.data(), text.size()) != static_cast<ssize_t>(text.size()))
                ::_exit(3);
            std::fflush(nullptr);
            ::_exit(code);
        }
        ::close(ends[1]);
        children.push_back(child);
        pipes.push_back(ends[0]);
    }
    Report all;
    int worst = 0;
    for (std::size_t i = 0; i < children.size(); ++i) {
        std::FILE* const file = ::fdopen(pipes[i], "r");
        char line[256];
        if (std::fgets(line, sizeof line, file))
            all.steps += std::strtoull(line, nullptr, 10);
        while (std::fgets(line, sizeof line, file)) {
            char* rest = nullptr;
            const std::uint64_t times = std::strtoull(line, &rest, 10);
            std::string what(rest + 1);
            what.pop_back();
            all.counts[what] += times;
        }
        std::fclose(file);
        int status = 0;
        ::waitpid(children[i], &status, 0);
        worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 4);
    }
    print(all);
    fmt::print("{} seeds in {:.1f} s: {}\n", options.seeds,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(),
               worst == 0 ? "no invariant broken" : "BROKEN");
    return worst;
}

} // namespace

int main(int argc, char** argv)
{
    Options options;
    CLI::App app("Runs the service's reconciler on a simulated machine, in many orders of events.");
    app.add_option("--seeds", options.seeds, "how many");
    app.add_option("--first", options.first, "the first of them");
    app.add_option("--jobs", options.jobs, "how many processes");
    app.add_option("--seed", options.seed, "only this one");
    app.add_flag("--trace", options.trace, "print what happens");
    app.add_option("--expect", options.expect, "run until this invariant breaks, and fail if none breaks it");
    app.add_flag("--twice", options.twice, "run each seed twice and compare");
    app.add_option("--drives", options.drives, "a directory of drive files");
    CLI11_PARSE(app, argc, argv);
    try {
        const std::vector<DriveFile> drives = read_drives(options.drives);
        if (!options.expect.empty())
            return run_until_broken(drives, options);
        if (options.seed == 0)
            return run_all(drives, options);
        Report report;
        const bool well = run_seed(options.seed, drives, options, report);
        print(report);
        return well ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "simulation: {}\n", error.what());
        return 2;
    }
}

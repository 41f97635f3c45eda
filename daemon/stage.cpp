// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stage.h"

#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

#include "host/installation.h"
#include "host/linux_host.h"
#include "simulation/load_drives.h"

namespace nvmepolicy {
namespace {

const char* word(Restored::Result result)
{
    switch (result) {
    case Restored::Result::put_back: return "put back";
    case Restored::Result::already: return "was there already";
    case Restored::Result::left_to_another: return "not put back, somebody else has written since";
    case Restored::Result::gone: return "not put back, the controller has left";
    case Restored::Result::not_forgotten: return "needs nothing more, but the record of it could not be changed";
    case Restored::Result::failed: break;
    }
    return "NOT put back";
}

/// What has to hold before anything is written.
Result<InstanceLock> may_write(const Installation& here)
{
    if (::geteuid() != 0)
        return Refusal{"", "", "only root can change a drive", RefusalKind::denied};
    if (const auto writable = check_sysfs_writable(); !writable)
        return writable.error();
    return InstanceLock::take(here.runtime_directory);
}

std::unique_ptr<ProfileStore> profile_store(const std::string& directory)
{
    return directory.empty() ? std::make_unique<ProfileStore>() : std::make_unique<ProfileStore>(directory);
}

} // namespace

std::unique_ptr<Host> Stage::hurried(std::chrono::milliseconds time) const
{
    const auto* real = dynamic_cast<const LinuxHost*>(host.get());
    return real ? std::make_unique<LinuxHost>(*real, Patience{time, Patience::Clock::now() + time}) : nullptr;
}

LeftBehind* Stage::left_behind() const
{
    auto* real = dynamic_cast<LinuxHost*>(host.get());
    return real ? &real->left_behind() : nullptr;
}

SimulatedHost* Stage::simulated() const
{
    return dynamic_cast<SimulatedHost*>(host.get());
}

std::optional<Stage> set_stage(const Options& options, bool to_write, const Log& log)
{
    Stage stage;
    if (options.simulate) {
        LoadedDrives drives = load_drives(*options.simulate);
        for (const Refusal& error : drives.errors)
            log.say(LogLevel::error, error.text());
        if (!drives.host)
            return std::nullopt;
        if (options.story) {
            stage.cast = Cast::choose(drives.host->kernel());
            if (!stage.cast) {
                log.say(LogLevel::error, *options.simulate + ": a story needs a drive that can sleep, and there is none");
                return std::nullopt;
            }
        }
        stage.host = std::move(drives.host);
        stage.ledger = std::make_unique<LedgerStore>();
        stage.breaker = std::make_unique<BreakerStore>();
        stage.profile = profile_store(std::getenv("STATE_DIRECTORY") ? this_installation().state_directory : "");
        return stage;
    }
    const Installation here = this_installation();
    stage.profile = profile_store(to_write ? here.state_directory : "");
    if (to_write) {
        auto lock = may_write(here);
        if (!lock) {
            log.say(LogLevel::error, lock.error().text());
            return std::nullopt;
        }
        stage.lock.emplace(*std::move(lock));
    }
    auto ledger = LedgerStore::open(here.runtime_directory + "/originals.json");
    if (!ledger && to_write) {
        log.say(LogLevel::error, ledger.error().text());
        return std::nullopt;
    }
    if (!ledger) // Looking is what one needs most when something is damaged.
        log.say(LogLevel::warning, "looking without the record of earlier runs: " + ledger.error().text());
    stage.ledger = ledger ? *std::move(ledger) : std::make_unique<LedgerStore>();
    stage.host = std::make_unique<LinuxHost>(patience_beyond_the_kernel(), here.device_program());
    std::optional<Refusal> complaint;
    stage.breaker = to_write ? BreakerStore::open(here.state_directory, here.runtime_directory, complaint)
                             : BreakerStore::read(here.state_directory, complaint);
    if (complaint)
        log.say(LogLevel::warning, complaint->text());
    return stage;
}

std::string restored_text(const Restored& r)
{
    return fmt::format("{}: original latency tolerance {} {}{}{}", r.name, r.first.kernel_text(), word(r.result),
                       r.found ? " (found " + r.found->kernel_text() + ")" : "", r.error ? ": " + r.error->text() : "");
}

} // namespace nvmepolicy

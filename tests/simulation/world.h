// SPDX-License-Identifier: LGPL-2.1-or-later
// One seed: a machine, a service on it, and what befalls both.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "invariants.h"
#include "process.h"

namespace nvmepolicy::simulation {

/// How often each kind of thing happened.
using Counts = std::map<std::string, std::uint64_t>;

struct Ending {
    std::optional<Violation> violation;
    std::uint64_t fingerprint = 0;
    std::uint64_t steps = 0;
};

class World {
public:
    /// `drives`: what can be plugged in. `print`: the trace, to standard output.
    World(std::uint64_t seed, const std::vector<DriveFile>& drives, bool print, bool fingerprint);

    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;
    World(World&&) = delete;
    World& operator=(World&&) = delete;

    /// Lives through it. `counts` is added to.
    Ending run(Counts& counts);

private:
    using Held = SimulatedKernel::Held;

    void set_up(const std::vector<DriveFile>& drives);
    [[nodiscard]] Policy any_policy();

    // The machine goes on.
    bool go_on();
    void advance();
    void let_time_pass();
    void until_rest();
    void announce(const Uevent& event);
    void udev_delivers();

    // What befalls it.
    void befall();
    void count(const std::string& what) { ++(*counts_)[what]; }
    [[nodiscard]] Held any_controller();
    void in_the_kernel(const std::string& what, std::function<void()> work);
    void plug();
    void unplug();
    void reset();
    void new_firmware();
    void activate_firmware();
    void somebody_writes();
    void ac_plug();
    void reload();
    void sicken();
    void refuse();
    void lose_events();
    void disturb_events();
    void set_clock();
    void fill_storage();
    void clear_storage();
    void administrate();
    void start_service();
    void kill_service();
    void start_restore();
    void heal();
    void check_rest();
    void end();

    Dice dice_;
    Trace trace_;
    Scheduler scheduler_{dice_, trace_};
    SimulatedKernel kernel_{scheduler_};
    MemoryStorage storage_;
    std::optional<Milliseconds> storage_is_cleared_at_; ///< none: it is not full
    bool dies_in_append_ = false;                       ///< the service's next one is where it is killed
    Invariants invariants_{kernel_, storage_};
    bool udev_runs_ = true;
    Milliseconds asleep_{0};
    std::deque<Uevent> udevd_; ///< at work on
    Milliseconds udevd_done_at_{0};

    std::vector<PluggedDrive> drives_;
    std::vector<bool> inside_; ///< each of them: it is in a slot
    std::vector<DriveFile> firmwares_;
    std::unique_ptr<Process> service_;
    std::uint64_t processes_ = 0;
    bool restoring_ = false; ///< `nvmepolicyd --restore` runs
    bool restore_failed_ = false;
    bool befalling_ = false;
    std::size_t left_to_befall_ = 0;
    Milliseconds next_befalls_at_{0};
    Counts* counts_ = nullptr;
    std::uint64_t steps_ = 0;
};

} // namespace nvmepolicy::simulation

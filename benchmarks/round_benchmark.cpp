// SPDX-License-Identifier: LGPL-2.1-or-later
// How the work grows with the number of controllers. They are simulated, so what is measured is ours and not a drive's.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "inputs.h"
#include "reconcile/parallel.h"
#include "reconcile/round.h"
#include "simulation/simulated_host.h"

namespace nvmepolicy {
namespace {

const std::vector<DriveFile>& drives()
{
    static const std::vector<DriveFile> read = all_drives();
    return read;
}

const Policy& policy()
{
    static const Policy read = vendor_policy();
    return read;
}

/// A directory of its own, which goes away.
class Place {
public:
    explicit Place(const std::string& above) : path_(must(make(above))) {}
    ~Place() { std::filesystem::remove_all(path_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
    static Result<std::string> make(const std::string& above)
    {
        std::string name = above + "/nvmepolicyd-benchmark-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr)
            return Refusal{name, "", "cannot be made", RefusalKind::failed};
        return name;
    }
    std::string path_;
};

enum class LedgerIn { memory, file };

struct World {
    SimulatedHost host;
    BreakerStore breaker;
    Place ram{"/dev/shm"}; ///< as /run is
    std::unique_ptr<LedgerStore> ledger;
    Circumstances now;
    std::string last; ///< the same drive, however many there are

    World(std::int64_t controllers, LedgerIn where)
        : ledger(where == LedgerIn::memory ? std::make_unique<LedgerStore>() : *LedgerStore::open(ram.file("originals.json")))
    {
        for (std::int64_t i = 0; i < controllers - 1; ++i)
            host.add(drives()[static_cast<std::size_t>(i) % drives().size()]);
        last = host.add(*std::ranges::find(drives(), "samsung-990-evo-plus-4tb", &DriveFile::slug)).name;
        now.machine = host.machine;
        now.policy = policy();
        now.wish.profile = policy().daemon.profile.value;
        now.breaker = &breaker;
    }
};

double processor_seconds()
{
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

void sizes(benchmark::internal::Benchmark* benchmark)
{
    for (const int controllers : {1, 64, 1024, 4096})
        benchmark->Arg(controllers);
    benchmark->Unit(benchmark::kMillisecond)->Complexity(benchmark::oN);
}

/// Nothing was ever written to any of them.
template <LedgerIn where>
void cold_round(benchmark::State& state)
{
    for (auto _ : state) {
        World world(state.range(0), where);
        const double begun = processor_seconds();
        const Round round = run_round(world.host, policy(), *world.ledger, world.breaker, Intent::reconcile);
        state.SetIterationTime(processor_seconds() - begun);
        const auto changed = std::ranges::count_if(round.outcomes, [](const Outcome& o) { return o.applied; });
        if (changed == 0)
            state.SkipWithError("nothing was changed");
        state.counters["changed"] = static_cast<double>(changed);
    }
    state.SetComplexityN(state.range(0));
}
BENCHMARK(cold_round<LedgerIn::memory>)->Apply(sizes)->UseManualTime();
BENCHMARK(cold_round<LedgerIn::file>)->Apply(sizes)->UseManualTime();

/// One of them holds another value than wanted; everybody else is in order and not touched.
template <LedgerIn where>
void one_changed(benchmark::State& state)
{
    World world(state.range(0), where);
    static_cast<void>(run_round(world.host, policy(), *world.ledger, world.breaker, Intent::reconcile));
    SimulatedController& controller = *world.host.find(world.last);
    for (auto _ : state) {
        world.host.write_tolerance(controller, LatencyTolerance::of(Microseconds{100'000}));
        const Outcome outcome = reconcile(world.host, world.last, world.now, *world.ledger);
        if (!outcome.applied)
            state.SkipWithError("nothing was changed");
    }
}
BENCHMARK(one_changed<LedgerIn::memory>)->Arg(1)->Arg(64)->Arg(1024)->Unit(benchmark::kMicrosecond);
BENCHMARK(one_changed<LedgerIn::file>)->Arg(1)->Arg(64)->Arg(1024)->Unit(benchmark::kMicrosecond);

/// The first looks of a service at that many drives that all go deeper than at boot, as far as the breaker is concerned: on the
/// disk of the temporary directory, from as many threads as the service has.
void first_trials(benchmark::State& state)
{
    constexpr std::size_t workers = 32;
    for (auto _ : state) {
        const Place disk(std::filesystem::temp_directory_path().string());
        const Place ram("/dev/shm");
        std::optional<Refusal> complaint;
        const auto store = BreakerStore::open(disk.file("state"), ram.file(""), complaint);
        std::atomic<bool> refused = false;
        const auto begun = std::chrono::steady_clock::now();
        for_each_in_parallel(
            static_cast<std::size_t>(state.range(0)),
            [&](std::size_t i) {
                const std::string serial = fmt::format("S7U8NJ0X{:06}", i);
                if (!store->begin_trial({"nqn.1994-11.com.samsung:nvme:990EVOPlus:M.2:" + serial, serial, 1, {}}))
                    refused = true;
            },
            workers);
        state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
        if (refused || complaint)
            state.SkipWithError("a trial is not on disk");
    }
    state.SetComplexityN(state.range(0));
}
BENCHMARK(first_trials)->Apply(sizes)->UseManualTime();

} // namespace
} // namespace nvmepolicy

BENCHMARK_MAIN();

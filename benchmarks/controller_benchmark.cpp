// SPDX-License-Identifier: LGPL-2.1-or-later
// What one controller costs, step by step. One iteration is one controller; they are taken in turn from all captured drives.
#include <algorithm>

#include <benchmark/benchmark.h>

#include "host/observe.h"
#include "inputs.h"
#include "nvmepolicy/decode.h"
#include "nvmepolicy/explain.h"
#include "simulation/simulated_host.h"

namespace nvmepolicy {
namespace {

/// A controller as it is found, and everything that is concluded from it.
struct Example {
    Controller controller;
    std::vector<std::uint8_t> page;
    ControllerPolicy policy;
    ApstDecision decision;
    Verdict verdict;
};

struct Examples {
    Policy policy = vendor_policy();
    SimulatedHost host;
    Wish wish;
    std::vector<Example> all;

    [[nodiscard]] ApstQuestion question(const Example& e) const { return {e.controller, host.machine, e.policy, wish, {}}; }

    Examples()
    {
        for (const DriveFile& drive : all_drives()) {
            const std::string name = host.add(drive).name;
            Sighting sighting = *observe_controller(host, name);
            Example e;
            e.controller = sighting.controller;
            e.page = must(sighting.device->identify_controller());
            e.policy = policy_for(policy, e.controller);
            e.decision = decide_apst(question(e));
            e.verdict = verify_apst(question(e), e.decision);
            all.push_back(std::move(e));
        }
    }
};

const Examples& examples()
{
    static const Examples made;
    return made;
}

template <class Step>
void for_each_controller(benchmark::State& state, const Step& step)
{
    const Examples& given = examples();
    std::size_t i = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(step(given, given.all[i]));
        i = i + 1 == given.all.size() ? 0 : i + 1;
    }
}

void decode_identify_page(benchmark::State& state)
{
    const std::string where = "nvme0: Identify Controller";
    for_each_controller(state, [&](const Examples&, const Example& e) { return decode_identify(where, e.page); });
}
BENCHMARK(decode_identify_page);

void read_and_decode_identify_page(benchmark::State& state)
{
    Examples given;
    std::vector<std::unique_ptr<Directory>> directories;
    std::vector<std::unique_ptr<ControllerDevice>> devices;
    for (const Example& e : given.all) {
        directories.push_back(*given.host.open_directory("class/nvme/" + e.controller.name));
        devices.push_back(given.host.open_device(*directories.back(), e.controller.name));
    }
    std::size_t i = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(decode_identify("nvme0: Identify Controller", *devices[i]->identify_controller()));
        i = i + 1 == devices.size() ? 0 : i + 1;
    }
}
BENCHMARK(read_and_decode_identify_page);

void predict(benchmark::State& state)
{
    const LatencyTolerance tolerance = LatencyTolerance::of(Microseconds{25'000});
    for_each_controller(state, [&](const Examples& given, const Example& e) {
        return predict_apst_table(kernel_inputs(e.controller, given.host.machine), tolerance);
    });
}
BENCHMARK(predict);

void match_policy(benchmark::State& state)
{
    for_each_controller(state, [](const Examples& given, const Example& e) { return policy_for(given.policy, e.controller); });
}
BENCHMARK(match_policy);

void decide(benchmark::State& state)
{
    for_each_controller(state, [](const Examples& given, const Example& e) { return decide_apst(given.question(e)); });
}
BENCHMARK(decide);

void verify(benchmark::State& state)
{
    for_each_controller(state,
                        [](const Examples& given, const Example& e) { return verify_apst(given.question(e), e.decision); });
}
BENCHMARK(verify);

void explain(benchmark::State& state)
{
    for_each_controller(
        state, [](const Examples& given, const Example& e) { return explain_apst(given.question(e), e.decision, e.verdict); });
}
BENCHMARK(explain);

void parse_policy(benchmark::State& state)
{
    const std::vector<PolicyText> texts = vendor_policy_texts();
    std::size_t bytes = 0;
    for (const PolicyText& text : texts)
        bytes += text.text.size();
    for (auto _ : state)
        benchmark::DoNotOptimize(read_policy(texts));
    state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}
BENCHMARK(parse_policy)->Unit(benchmark::kMicrosecond);

} // namespace
} // namespace nvmepolicy

BENCHMARK_MAIN();

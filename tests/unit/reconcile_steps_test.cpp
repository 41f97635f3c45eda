// SPDX-License-Identifier: LGPL-2.1-or-later
// What can go wrong at any step of a reconcile: the drive leaves, something is refused, nonsense is read.
#include <set>

#include "reconcile_bench.h"

namespace nvmepolicy {
namespace {

/// The calls of a reconcile that goes well.
std::vector<std::string> calls_of_a_reconcile()
{
    Bench bench;
    static_cast<void>(bench.reconcile());
    return bench.host.calls;
}

TEST(ADriveThatLeaves, AtAnyStepIsGoneAndNeverWrittenToAfterwards)
{
    const auto steps = calls_of_a_reconcile();
    ASSERT_GT(steps.size(), 20U);
    for (std::size_t at = 0; at < steps.size(); ++at) {
        SCOPED_TRACE("before call " + std::to_string(at) + ", " + steps[at]);
        Bench bench;
        std::size_t tried_after = 0;
        bench.host.before = [&](const std::string& call, std::size_t number) -> Answer {
            if (number == at)
                bench.simulated.remove("nvme0");
            tried_after += number > at && call.starts_with("write-tolerance") ? 1 : 0;
            return {};
        };
        const ControllerId id = bench.drive.id;
        const Outcome outcome = bench.reconcile();
        EXPECT_EQ(tried_after, 0U);
        const bool last_look_done = outcome.in_order(); // Unplugged after everything had been read.
        EXPECT_TRUE(outcome.gone() || last_look_done);
        for (const Restored& restored : restore(bench.host, bench.ledger))
            EXPECT_EQ(restored.result, Restored::Result::gone);
        EXPECT_EQ(bench.ledger.find(id), std::nullopt);
    }
}

TEST(AnyRefusal, AtAnyStepLeavesAMachineThatCanBeMendedAndRestored)
{
    const auto steps = calls_of_a_reconcile();
    for (const RefusalKind kind : every_kind)
        for (std::size_t at = 0; at < steps.size(); ++at) {
            SCOPED_TRACE(std::string(word(kind)) + " at call " + std::to_string(at) + ", " + steps[at]);
            Bench bench;
            bench.host.before = [&](const std::string&, std::size_t number) -> Answer {
                return number == at ? Answer{refusal_of(kind)} : Answer{};
            };
            const Outcome outcome = bench.reconcile();
            EXPECT_LE(bench.drive.set_features, 4);
            if (bench.drive.tolerance != us(100000)) {
                EXPECT_EQ(bench.entry().first, us(100000)) << "written without a record";
                EXPECT_TRUE(bench.entry().is_ours(bench.drive.tolerance));
            }
            bench.host.before = nullptr;
            const Outcome next = bench.reconcile();
            EXPECT_TRUE(next.in_order());
            EXPECT_EQ(bench.drive.tolerance, us(25000));
            EXPECT_EQ(bench.drive.apst.deepest_state(), 3);
            const auto restored = restore(bench.host, bench.ledger);
            ASSERT_EQ(restored.size(), 1U);
            EXPECT_EQ(restored[0].result, Restored::Result::put_back);
            EXPECT_EQ(bench.drive.tolerance, us(100000));
            EXPECT_EQ(bench.drive.apst.deepest_state(), 4);
        }
}

TEST(ATransientRefusal, IsNeverTakenForADeparture)
{
    // "Gone" is no failure and makes restore forget the original, so it must be true.
    const auto steps = calls_of_a_reconcile();
    for (const RefusalKind kind : {RefusalKind::try_later, RefusalKind::denied, RefusalKind::timed_out, RefusalKind::failed})
        for (std::size_t at = 0; at < steps.size(); ++at) {
            Bench bench;
            bench.host.before = [&](const std::string&, std::size_t number) -> Answer {
                return number == at ? Answer{refusal_of(kind)} : Answer{};
            };
            EXPECT_FALSE(bench.reconcile().gone()) << word(kind) << " at call " << at << ", " << steps[at];
        }
}

TEST(Garbage, AtAnyStepNeverMakesUsGoDeeperThanTheBound)
{
    const std::string texts[] = {"",
                                 "\n",
                                 "(efault)\n",
                                 std::string("\0\0\0\0", 4),
                                 std::string(4096, '\0'),
                                 std::string(4096, '\xff'),
                                 std::string(256, '\xff'),
                                 std::string(100'000, 'A'),
                                 "-1\n",
                                 "99999999999999999999\n",
                                 "\x1b[2J\n",
                                 "live\n",
                                 "auto\n",
                                 "0x64\n",
                                 "pm_qos_latency_tolerance_us"};
    const auto steps = calls_of_a_reconcile();
    for (const std::string& text : texts)
        for (std::size_t at = 0; at < steps.size(); ++at) {
            SCOPED_TRACE("\"" + text.substr(0, 20) + "\" at call " + std::to_string(at) + ", " + steps[at]);
            Bench bench;
            bench.host.before = [&](const std::string&, std::size_t number) -> Answer {
                return number == at ? Answer{text} : Answer{};
            };
            static_cast<void>(bench.reconcile());
            EXPECT_LE(bench.drive.set_features, 4);
            for (const std::string& write : bench.host.writes)
                EXPECT_TRUE(write == "nvme0 25000" || write == "nvme0 24999") << write;
            bench.host.before = nullptr;
            EXPECT_TRUE(bench.reconcile().in_order());
            EXPECT_EQ(bench.drive.tolerance, us(25000));
        }
}

TEST(GarbageThatStays, InAnyAttributeIsReportedAndNeverFatal)
{
    std::set<std::string> names;
    for (const std::string& call : calls_of_a_reconcile())
        names.insert(call);
    for (const std::string& text :
         {std::string("(efault)\n"), std::string(), std::string(4096, '\xff'), std::string("\x1b[31m\n")})
        for (const std::string& name : names) {
            if (name.starts_with("open ") || name.starts_with("write-"))
                continue;
            SCOPED_TRACE(name);
            Bench bench;
            bench.host.before = [&](const std::string& call, std::size_t) -> Answer {
                return call == name ? Answer{text} : Answer{};
            };
            const Outcome outcome = bench.reconcile();
            for (const std::string& write : bench.host.writes)
                EXPECT_TRUE(write == "nvme0 25000" || write == "nvme0 24999") << write;
            if (outcome.error) {
                for (const char c : outcome.error->text())
                    EXPECT_TRUE(c >= ' ' && c <= '~') << outcome.error->text();
            }
            for (const char c : outcome.verdict.reason)
                EXPECT_TRUE(c >= ' ' && c <= '~') << outcome.verdict.reason;
        }
}

TEST(Efault, IsReadAgainLater)
{
    for (const char* attribute : {"serial", "subsysnqn"}) {
        Bench bench;
        bench.host.before = [&](const std::string& call, std::size_t) -> Answer {
            return call == attribute ? Answer{std::string("(efault)\n")} : Answer{};
        };
        const Outcome outcome = bench.reconcile();
        ASSERT_TRUE(outcome.error);
        EXPECT_EQ(outcome.error->text(), std::string("/sys/class/nvme/nvme0/") + attribute
                                             + ": \"(efault)\": the kernel has not identified this controller yet");
        EXPECT_EQ(outcome.error->kind, RefusalKind::try_later);
        EXPECT_FALSE(outcome.gone());
    }
}

} // namespace
} // namespace nvmepolicy

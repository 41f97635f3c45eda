// SPDX-License-Identifier: LGPL-2.1-or-later
// The reconciler on simulated drives, driven by the loop, with events at the worst moments.
#include "daemon_bench.h"

namespace nvmepolicy {
namespace {

using Writes = std::vector<std::string>;

TEST(TheReconciler, ServesWhatIsThereWhenItBegins)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    d.simulated.add(evo_plus());
    d.simulated.add(bc501());
    d.begin().then([&] {
        EXPECT_EQ(d.host.writes(), (Writes{"nvme0 25000", "nvme1 25000"}));
        EXPECT_EQ(log.lines().size(), 4U);
    });
    d.run();
}

TEST(TheReconciler, DecidesNothingBeforeItKnowsThePowerSource)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    d.simulated.machine.power_source = PowerSource::battery;
    d.simulated.add(evo_plus());
    d.then([&] {
         d.reconciler->enumerate();
         d.reconciler->mark_dirty("nvme0");
     })
        .settle()
        .then([&] {
            EXPECT_EQ(d.host.looks("nvme0"), 0);
            d.reconciler->look_at_power();
        })
        .settle()
        .then([&] {
            EXPECT_EQ(d.simulated.find("nvme0")->tolerance, us(100000));
            EXPECT_EQ(log.count("on battery"), 0) << "that is how it was found";
        });
    d.run();
}

TEST(TheReconciler, MakesAFewLooksOfAHundredMarks)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    d.simulated.add(evo_plus());
    d.begin()
        .then([&] {
            static_cast<void>(d.host.looks("nvme0"));
            for (int i = 0; i < 100; ++i)
                d.reconciler->mark_dirty("nvme0");
        })
        .settle()
        .then([&] {
            EXPECT_EQ(d.host.looks("nvme0"), 1);
            for (int i = 0; i < 100; ++i)
                d.loop.post([&] { d.reconciler->mark_dirty("nvme0"); });
        })
        .settle()
        .then([&] { EXPECT_LE(d.host.looks("nvme0"), 2); });
    d.run();
}

TEST(TheReconciler, LooksThreeTimesAtAFileThatIsWrittenAHundredTimes)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    d.simulated.add(evo_plus());
    d.begin().then([&] { static_cast<void>(d.host.looks("nvme0")); });
    for (int i = 0; i < 10; ++i)
        d.then([&] {
             for (int n = 0; n < 10; ++n)
                 d.reconciler->written("nvme0");
         }).settle();
    d.then([&] {
        EXPECT_LE(d.host.looks("nvme0"), 3) << "the next one in five seconds";
        d.reconciler->written("nvme7"); // never heard of
        d.reconciler->removed("nvme7");
    });
    d.run();
}

TEST(TheReconciler, LooksAgainWhenItIsMarkedDuringAJob)
{
    StandardError log;
    Daemon& d = Daemon::start(log, {}, 4);
    auto gate = std::make_shared<Gate>();
    d.simulated.add(evo_plus());
    d.host.before([gate](const std::string&, const std::string& call) -> Answer {
        if (call == "read-tolerance")
            gate->pass();
        return {};
    });
    d.then([&] {
         d.reconciler->look_at_power();
         d.reconciler->enumerate();
     })
        .until([gate] { return gate->reached() == 1; })
        .then([&, gate] {
            for (int i = 0; i < 50; ++i)
                d.reconciler->mark_dirty("nvme0");
            gate->open();
        })
        .until([gate] { return gate->reached() >= 3; }) // read, read back, and the second look
        .then([&] { EXPECT_EQ(d.host.looks("nvme0"), 2); });
    d.run();
}

TEST(ANewWish, IsTheLastOneWhateverTheRunningJobWasBegunFor)
{
    StandardError log;
    Daemon& d = Daemon::start(log, {}, 4);
    auto gate = std::make_shared<Gate>();
    d.simulated.add(evo_plus());
    d.host.before([gate](const std::string&, const std::string& call) -> Answer {
        if (call == "get-feature")
            gate->pass();
        return {};
    });
    d.then([&] {
         d.reconciler->look_at_power();
         d.reconciler->enumerate();
     })
        .until([gate] { return gate->reached() == 1; })
        .then([&, gate] {
            for (int i = 0; i < 20; ++i)
                d.reconciler->configure(policy_with(i % 2 == 0 ? "power-saver" : "balanced"));
            d.reconciler->configure(policy_with("performance"));
            gate->open();
        })
        .until([&] { return log.count("(profile performance)") == 1; })
        .then([&] {
            EXPECT_EQ(d.host.writes(), Writes{"nvme0 0"}) << "none of the earlier ones";
            EXPECT_EQ(log.lines().size(), 2U);
        });
    d.run();
}

TEST(ANewWish, ReachesEveryDriveWhileOneHangs)
{
    StandardError log;
    Daemon& d = Daemon::start(log, {}, 8);
    auto gate = std::make_shared<Gate>();
    d.simulated.add(evo_plus());
    d.simulated.add(evo_plus());
    d.host.before([gate](const std::string& controller, const std::string& call) -> Answer {
        if (controller == "nvme0" && call == "identify")
            gate->pass();
        return {};
    });
    d.then([&] {
         d.reconciler->look_at_power();
         d.reconciler->enumerate();
     })
        .until([&] { return log.count("nvme1: latency tolerance 100000 -> 25000") == 1; })
        .then([&] { d.reconciler->configure(policy_with("performance")); })
        .until([&] { return log.count("nvme1: latency tolerance 25000 -> 0") == 1; })
        .then([&, gate] {
            EXPECT_EQ(gate->reached(), 1) << "one job a controller";
            gate->open();
        })
        .until([&] { return log.count("nvme0: latency tolerance 100000 -> 0") == 1; });
    d.run();
}

TEST(ANewWish, ClaimsBackWhatSomebodyElseWrote)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    SimulatedController& drive = d.simulated.add(evo_plus());
    d.begin()
        .then([&] {
            d.simulated.write_tolerance(drive, us(60000));
            d.reconciler->written("nvme0");
        })
        .settle()
        .then([&] {
            EXPECT_EQ(drive.tolerance, us(60000));
            d.reconciler->configure({});
        })
        .settle()
        .then([&] { EXPECT_EQ(drive.tolerance, us(25000)); });
    d.run();
}

TEST(ANewWish, ClaimsBackAlsoWhenTheDriveDoesNotAnswerAtFirst)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    SimulatedController& drive = d.simulated.add(evo_plus());
    d.begin()
        .then([&] {
            d.simulated.write_tolerance(drive, us(60000));
            d.reconciler->written("nvme0");
        })
        .settle()
        .then([&] {
            drive.faults["get-feature"] = refusal_of(RefusalKind::try_later); // a reset, a firmware commit
            d.reconciler->configure({});
        })
        .settle()
        .then([&] { drive.faults.clear(); })
        .then([&] { d.reconciler->mark_dirty("nvme0"); })
        .settle()
        .then([&] { EXPECT_EQ(drive.tolerance, us(25000)) << "the wish was never carried out, so it still holds"; });
    d.run();
}

TEST(ANewWish, ClaimsBackAfterTheResetThatItMet)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    SimulatedController& drive = d.simulated.add(evo_plus());
    d.begin()
        .then([&] {
            d.simulated.write_tolerance(drive, us(60000));
            d.reconciler->written("nvme0");
        })
        .settle()
        .then([&] {
            drive.state = ControllerState::connecting;
            d.reconciler->configure({});
        })
        .settle()
        .then([&] {
            drive.state = ControllerState::live;
            d.reconciler->connected("nvme0");
        })
        .settle()
        .then([&] { EXPECT_EQ(drive.tolerance, us(25000)); });
    d.run();
}

TEST(ThePowerSource, ChangesTheBoundAndIsSaidOnce)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    SimulatedController& drive = d.simulated.add(evo_plus());
    d.begin()
        .then([&] {
            static_cast<void>(d.host.writes());
            d.simulated.machine.power_source = PowerSource::battery;
            for (int i = 0; i < 10; ++i)
                d.reconciler->look_at_power();
        })
        .settle()
        .then([&] {
            EXPECT_EQ(d.host.writes(), Writes{"nvme0 100000"});
            EXPECT_EQ(log.count("on battery"), 1);
            d.simulated.machine.power_source = PowerSource::ac;
            d.reconciler->look_at_power();
        })
        .settle()
        .then([&] {
            EXPECT_EQ(log.count("on AC"), 1);
            EXPECT_EQ(drive.tolerance, us(25000));
        });
    d.run();
}

TEST(ThePowerSource, IsTheOneThatWasReadLastHoweverSlowAnEarlierReadingIs)
{
    StandardError log;
    Daemon& d = Daemon::start(log, {}, 4);
    SimulatedController& drive = d.simulated.add(evo_plus());
    auto gate = std::make_shared<Gate>();
    auto slow = std::make_shared<std::atomic<bool>>(false);
    auto late = std::make_shared<std::atomic<bool>>(false);
    d.then([&] {
         d.reconciler->look_at_power();
         d.reconciler->enumerate();
     })
        .until([&] { return log.lines().size() == 2; })
        .then([&] {
            slow->store(true);
            // The first reading finds the mains supply online, and firmware takes its time to say so.
            d.host.before([gate, slow, late](const std::string&, const std::string& call) -> Answer {
                if (call != "AC/online" || !slow->exchange(false))
                    return {};
                gate->pass();
                late->store(true);
                return std::string("1\n");
            });
            d.reconciler->look_at_power();
        })
        .until([gate] { return gate->reached() == 1; })
        .then([&] {
            d.simulated.machine.power_source = PowerSource::battery;
            d.reconciler->look_at_power();
        })
        .until([&] { return log.count("on battery") == 1 && log.count("25000 -> 100000") == 1; })
        .then([gate] { gate->open(); })
        .until([late] { return late->load(); })
        .idle()
        .then([&] {
            EXPECT_EQ(log.count("on AC"), 0) << "an old reading";
            EXPECT_EQ(drive.tolerance, us(100000));
        });
    d.run();
}

TEST(AParameter, ThatCannotBeReadIsComplainedOfOnce)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    d.simulated.add(evo_plus());
    const SharedHost::Before unreadable = [](const std::string&, const std::string& call) -> Answer {
        return call == "apst_primary_timeout_ms" ? Answer{refusal_of(RefusalKind::failed)} : Answer{};
    };
    d.host.before(unreadable);
    d.begin();
    for (int i = 0; i < 5; ++i) // a battery that reports
        d.then([&] { d.reconciler->look_at_power(); }).settle();
    d.then([&] {
         EXPECT_EQ(log.count("a fault put here by the test"), 1);
         d.host.before({});
         d.reconciler->look_at_power();
     })
        .settle()
        .then([&] {
            d.host.before(unreadable);
            d.reconciler->look_at_power();
        })
        .settle()
        .then([&] { EXPECT_EQ(log.count("a fault put here by the test"), 2) << "it could be read in between"; });
    d.run();
}

TEST(AController, ThatLeavesDuringItsJobIsForgottenWithIt)
{
    StandardError log;
    Daemon& d = Daemon::start(log, {}, 4);
    auto gate = std::make_shared<Gate>();
    d.simulated.add(evo_plus());
    d.host.before([gate](const std::string&, const std::string& call) -> Answer {
        if (call == "get-feature")
            gate->pass();
        return {};
    });
    d.then([&] {
         d.reconciler->look_at_power();
         d.reconciler->enumerate();
     })
        .until([gate] { return gate->reached() == 1; })
        .then([&, gate] {
            d.simulated.remove("nvme0");
            d.reconciler->removed("nvme0");
            gate->open();
        })
        .settle()
        .then([&] {
            EXPECT_EQ(d.host.writes(), Writes{});
            EXPECT_EQ(log.lines(), Writes{}) << "it was never introduced";
        });
    d.run();
}

TEST(AController, ThatTakesTheNameOfOneThatLeftDuringItsJobIsLookedAtByItself)
{
    StandardError log;
    Daemon& d = Daemon::start(log, {}, 4);
    auto gate = std::make_shared<Gate>();
    auto first = std::make_shared<std::atomic<bool>>(true);
    d.simulated.add(evo_plus());
    d.host.before([gate, first](const std::string&, const std::string& call) -> Answer {
        if (call == "get-feature" && first->exchange(false))
            gate->pass();
        return {};
    });
    d.then([&] {
         d.reconciler->look_at_power();
         d.reconciler->enumerate();
     })
        .until([gate] { return gate->reached() == 1; })
        .then([&] {
            d.simulated.remove("nvme0");
            d.reconciler->removed("nvme0");
            d.simulated.add(bc501());
            d.reconciler->connected("nvme0");
        })
        .until([&] { return log.count("latency tolerance 100000 -> 25000") == 1; })
        .then([gate] { gate->open(); })
        .idle()
        .then([&] {
            EXPECT_EQ(log.count("BC501A"), 1);
            EXPECT_EQ(log.count("990 EVO"), 0);
            EXPECT_EQ(d.host.writes(), Writes{"nvme0 25000"});
        });
    d.run();
}

TEST(AController, ThatIsRenumberedKeepsItsHistory)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    SimulatedController& a = d.simulated.add(evo_plus());
    SimulatedController& b = d.simulated.add(bc501());
    d.begin()
        .then([&] {
            static_cast<void>(d.host.writes());
            d.simulated.rename(a, "nvme2"); // 0 and 1 change places, and the events were lost
            d.simulated.rename(b, "nvme0");
            d.simulated.rename(a, "nvme1");
            d.reconciler->enumerate();
        })
        .settle()
        .then([&] {
            EXPECT_EQ(d.host.writes(), Writes{}) << "both hold ours";
            EXPECT_EQ(log.count("nvme0: BC501A"), 1);
            EXPECT_EQ(log.count("nvme1: Samsung SSD 990 EVO Plus"), 1);
            EXPECT_EQ(d.ledger.find(a.id)->first, us(100000));
            EXPECT_EQ(d.ledger.snapshot().entries.size(), 2U);
        });
    d.run();
}

TEST(AController, ThatVanishedWithoutAnEventIsMissedByAnEnumeration)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    d.simulated.add(evo_plus());
    d.begin()
        .then([&] {
            d.simulated.remove("nvme0");
            d.simulated.rename(d.simulated.add(bc501()), "nvme1");
            d.reconciler->enumerate();
        })
        .settle()
        .then([&] {
            EXPECT_EQ(log.count("nvme0: left (Samsung SSD 990 EVO Plus"), 1);
            EXPECT_EQ(log.count("nvme1: latency tolerance 100000 -> 25000"), 1);
        });
    d.run();
}

TEST(AController, ThatComesWhileAnEnumerationRunsIsNotTakenForOneThatLeft)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    d.simulated.add(evo_plus());
    auto once = std::make_shared<std::atomic<bool>>(true);
    d.begin()
        .then([&] {
            d.host.before([&d, once](const std::string&, const std::string& call) -> Answer {
                if (call != "list /sys/class/nvme" || !once->exchange(false))
                    return {};
                // The directory has been read; now the kernel adds one, and its event is handled first.
                d.loop.post([&d] {
                    d.simulated.add(bc501());
                    d.reconciler->connected("nvme1");
                });
                return std::string("nvme0");
            });
            d.reconciler->enumerate();
        })
        .settle()
        .then([&] {
            EXPECT_EQ(log.count("left"), 0) << log.lines().back();
            EXPECT_EQ(d.simulated.find("nvme1")->tolerance, us(25000));
            EXPECT_EQ(log.count("nvme1: latency tolerance 100000 -> 25000"), 1);
        });
    d.run();
}

TEST(AController, ThatAnswersSomethingPassingIsLookedAtAgain)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    SimulatedController& drive = d.simulated.add(evo_plus());
    drive.faults["identify"] = refusal_of(RefusalKind::try_later); // ENXIO after a firmware commit
    d.begin()
        .then([&] {
            EXPECT_EQ(d.host.writes(), Writes{});
            drive.faults.clear();
        })
        .until([&] { return log.count("latency tolerance 100000 -> 25000") == 1; });
    d.run();
}

TEST(AController, ThatComesLiveWithoutAnEventIsLookedAtAgain)
{
    for (const ControllerState state : {ControllerState::resetting, ControllerState::connecting}) {
        StandardError log;
        Daemon& d = Daemon::start(log);
        SimulatedController& drive = d.simulated.add(evo_plus());
        drive.state = state; // a firmware is being activated
        d.begin()
            .then([&] {
                EXPECT_EQ(d.host.writes(), Writes{});
                drive.state = ControllerState::live;
            })
            .until([&] { return log.count("latency tolerance 100000 -> 25000") == 1; });
        d.run();
    }
}

TEST(ThePauses, GrowToAMinuteAndEndWhereTheControllerIsNotLive)
{
    const std::vector<int> expected = {500, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000, 60000, 60000};
    for (int failures = 0; failures < 12; ++failures)
        for (const bool not_live : {false, true})
            EXPECT_EQ(pause_before_next_look(failures, not_live), Milliseconds{expected.at(static_cast<std::size_t>(failures))})
                << failures;
    EXPECT_EQ(pause_before_next_look(12, true), std::nullopt);
    EXPECT_EQ(pause_before_next_look(1'000'000, true), std::nullopt);
    EXPECT_EQ(pause_before_next_look(1'000'000, false), Milliseconds{60'000}) << "it answers, or it hangs: that passes";
}

TEST(AController, ThatRefusesForGoodIsNotAskedAllTheTime)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    SimulatedController& drive = d.simulated.add(evo_plus());
    drive.faults["identify"] = refusal_of(RefusalKind::denied);
    auto end = std::make_shared<std::atomic<bool>>(false);
    auto timer = std::make_shared<EventLoop::Source>();
    d.begin()
        .then([&, end, timer] {
            static_cast<void>(d.host.looks("nvme0"));
            *timer = d.loop.after(std::chrono::milliseconds{900}, [end] { end->store(true); });
        })
        .until([end] { return end->load(); })
        .then([&] { EXPECT_EQ(d.host.looks("nvme0"), 0); });
    d.run();
}

TEST(AReset, DuringARepairInVainMakesItWorthAnotherTry)
{
    StandardError log;
    Daemon& d = Daemon::start(log, {}, 4);
    SimulatedController& drive = d.simulated.add(evo_plus());
    drive.refuses_apst = true;
    auto gate = std::make_shared<Gate>();
    auto tables_read = std::make_shared<std::atomic<int>>(0);
    d.host.before([gate, tables_read](const std::string&, const std::string& call) -> Answer {
        if (call == "get-feature" && ++*tables_read == 3) // at first, after the write, after the repair
            gate->pass();
        return {};
    });
    d.then([&] {
         d.reconciler->look_at_power();
         d.reconciler->enumerate();
     })
        .until([gate] { return gate->reached() == 1; })
        .then([&, gate] {
            EXPECT_EQ(d.host.writes(), (Writes{"nvme0 25000", "nvme0 24999", "nvme0 25000"}));
            drive.refuses_apst = false;
            d.reconciler->connected("nvme0");
            gate->open();
        })
        .until([&] { return log.count("in order again") == 1 || log.count("(repair)") == 2; })
        .then([&] {
            EXPECT_EQ(d.host.writes(), (Writes{"nvme0 24999", "nvme0 25000"}));
        });
    d.run();
}

TEST(AForeignValue, ThatIsFoughtIsToldAlsoWhenTheFirstLookWasSuperseded)
{
    StandardError log;
    Policy policy;
    policy.apst.on_conflict.value = OnConflict::enforce;
    Daemon& d = Daemon::start(log, policy, 4);
    SimulatedController& drive = d.simulated.add(evo_plus());
    auto gate = std::make_shared<Gate>();
    d.then([&] {
         d.reconciler->look_at_power();
         d.reconciler->enumerate();
     })
        .until([&] { return log.lines().size() == 2; })
        .then([&, gate] {
            d.simulated.write_tolerance(drive, us(60000));
            auto first = std::make_shared<std::atomic<bool>>(true);
            d.host.before([gate, first](const std::string&, const std::string& call) -> Answer {
                if (call == "read-tolerance" && first->exchange(false))
                    gate->pass();
                return {};
            });
            d.reconciler->written("nvme0");
        })
        .until([gate] { return gate->reached() == 1; })
        .then([&, gate] {
            d.simulated.machine.power_source = PowerSource::battery;
            d.reconciler->look_at_power();
        })
        .until([&] { return log.count("on battery") == 1; })
        .then([gate] { gate->open(); })
        .until([&] { return log.count("60000 -> 100000") == 1; })
        .then([&] { EXPECT_EQ(log.count("somebody else set the latency tolerance to 60000"), 1); });
    d.run();
}

// --- the breaker ---------------------------------------------------------------------------------------------------------

/// A drive that was kept out of PS4 at boot (25 ms) and is let into it by us.
Daemon& deep_daemon(StandardError& log, Policy policy = policy_with("power-saver"))
{
    Daemon& d = Daemon::start(log, policy, 1, 25000);
    d.simulated.add(evo_plus());
    d.begin();
    return d;
}

TEST(ThreeDropOuts, PutTheDriveBackToItsBootValue)
{
    StandardError log;
    Daemon& d = deep_daemon(log);
    d.then([&] { EXPECT_EQ(d.host.writes(), Writes{"nvme0 any"}); });
    for (int i = 0; i < 2; ++i)
        d.then([&] { d.reconciler->connected("nvme0"); }).settle();
    d.then([&] {
         EXPECT_EQ(d.host.writes(), Writes{});
         d.reconciler->connected("nvme0");
     })
        .settle()
        .then([&] {
            EXPECT_EQ(d.host.writes(), Writes{"nvme0 25000"});
            EXPECT_TRUE(d.breaker.tripped(d.simulated.find("nvme0")->id));
            EXPECT_EQ(log.count("it dropped out three times within an hour"), 2)
                << "the breaker's line, and the change's reason";
            d.reconciler->configure(policy_with("power-saver"));
        })
        .settle()
        .then([&] { EXPECT_EQ(d.host.writes(), Writes{}) << "until the administrator clears it"; });
    d.run();
}

TEST(ThreeDropOuts, CountWhenTheDriveLeavesAndComesBack)
{
    StandardError log;
    Daemon& d = deep_daemon(log);
    for (int i = 0; i < 3; ++i)
        d.then([&] {
             const std::string name = "nvme0";
             const ControllerId id = d.simulated.find(name)->id;
             d.simulated.remove(name);
             d.reconciler->removed(name);
             SimulatedController& back = d.simulated.add(evo_plus());
             back.id = id;
             d.reconciler->connected(back.name);
         }).settle();
    d.then([&] {
        EXPECT_EQ(d.simulated.find("nvme0")->tolerance, us(25000));
        EXPECT_EQ(log.count("it is kept at the latency tolerance it had at boot"), 1);
    });
    d.run();
}

TEST(ThreeDropOuts, DoNotCountRightAfterAResume)
{
    StandardError log;
    Daemon& d = deep_daemon(log);
    d.then([&] { d.reconciler->resumed(); }).settle();
    for (int i = 0; i < 5; ++i)
        d.then([&] { d.reconciler->connected("nvme0"); }).settle();
    d.then([&] { EXPECT_EQ(log.count("dropped out"), 0); });
    d.run();
}

TEST(ThreeDropOuts, DoNotCountWhenTheyAreHandledBeforeTheResume)
{
    StandardError log;
    Daemon& d = deep_daemon(log);
    d.then([&] { d.asleep += Milliseconds{501}; });
    for (int i = 0; i < 5; ++i)
        d.then([&] { d.reconciler->connected("nvme0"); }).settle();
    d.then([&] { EXPECT_EQ(log.count("dropped out"), 0); });
    d.run();
}

TEST(ThreeDropOuts, CountWhereTheClocksWereOnlyReadInAHurry)
{
    StandardError log;
    Daemon& d = deep_daemon(log);
    for (int i = 0; i < 3; ++i)
        d.then([&] {
             d.asleep += Milliseconds{500};
             d.reconciler->connected("nvme0");
         }).settle();
    d.then([&] { EXPECT_EQ(log.count("it is kept at the latency tolerance it had at boot"), 1); });
    d.run();
}

TEST(ThreeDropOuts, CountAgainHalfAMinuteAfterAResume)
{
    for (const bool told : {true, false}) { // by the timer, or by the clocks alone
        StandardError log;
        Daemon& d = deep_daemon(log);
        d.then([&, told] {
             d.asleep += Milliseconds{3'600'000};
             d.later += Milliseconds{3'600'000};
             if (told)
                 d.reconciler->resumed();
             else
                 d.reconciler->connected("nvme0");
         }).settle();
        d.then([&] { d.later += Milliseconds{30'000}; });
        for (int i = 0; i < 3; ++i)
            d.then([&] { d.reconciler->connected("nvme0"); }).settle();
        d.then([&, told] { EXPECT_EQ(log.count("it is kept at the latency tolerance it had at boot"), 1) << told; });
        d.run();
    }
}

TEST(ThreeDropOuts, DoNotCountInMoreThanAnHour)
{
    StandardError log;
    Daemon& d = deep_daemon(log);
    for (int i = 0; i < 6; ++i)
        d.then([&] {
             d.later += Milliseconds{1'801'000};
             d.reconciler->connected("nvme0");
         }).settle();
    d.then([&] { EXPECT_EQ(log.count("dropped out"), 0); });
    d.run();
}

TEST(TheClocks, DoNotSayThatMoreOfTheTimeWasSleepThanThereWas)
{
    const Clocks clocks = read_clocks();
    EXPECT_GE(clocks.asleep, Milliseconds{0});
    EXPECT_LE(clocks.asleep, clocks.since_boot);
}

TEST(ThreeDropOuts, DoNotCountAtTheDepthOfTheBoot)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    d.simulated.add(evo_plus());
    d.begin();
    for (int i = 0; i < 5; ++i)
        d.then([&] { d.reconciler->connected("nvme0"); }).settle();
    d.then([&] { EXPECT_EQ(log.count("dropped out"), 0); });
    d.run();
}

TEST(ThreeDropOuts, DoNotCountWhereWeOnlyObserve)
{
    StandardError log;
    Policy policy = policy_with("power-saver");
    policy.apst.mode.value = ManageMode::observe;
    Daemon& d = deep_daemon(log, policy);
    for (int i = 0; i < 5; ++i)
        d.then([&] { d.reconciler->connected("nvme0"); }).settle();
    d.then([&] {
        EXPECT_EQ(d.simulated.find("nvme0")->tolerance, us(25000)) << "never was deeper";
        EXPECT_EQ(log.count("dropped out"), 0);
        EXPECT_FALSE(d.breaker.tripped(d.simulated.find("nvme0")->id));
    });
    d.run();
}

TEST(ThreeDropOuts, DoNotCountInADryRun)
{
    StandardError log;
    Policy policy = policy_with("power-saver");
    policy.daemon.dry_run.value = true;
    Daemon& d = deep_daemon(log, policy);
    for (int i = 0; i < 5; ++i)
        d.then([&] { d.reconciler->connected("nvme0"); }).settle();
    d.then([&] {
        EXPECT_EQ(d.host.writes(), Writes{});
        EXPECT_EQ(log.count("dropped out"), 0);
    });
    d.run();
}

TEST(ThreeDropOuts, CountAlsoWhenALookHasMetTheDriveWhileItWasAway)
{
    StandardError log;
    Daemon& d = deep_daemon(log);
    SimulatedController* drive = d.simulated.find("nvme0");
    for (int i = 0; i < 3; ++i)
        d.then([&, drive] {
             drive->state = ControllerState::connecting;
             d.reconciler->mark_dirty("nvme0"); // a battery, a reload, a retry
         })
            .settle()
            .then([&, drive] {
                drive->state = ControllerState::live;
                d.reconciler->connected("nvme0");
            })
            .settle();
    d.then([&, drive] {
        EXPECT_EQ(drive->tolerance, us(25000));
        EXPECT_EQ(log.count("it is kept at the latency tolerance it had at boot"), 1);
    });
    d.run();
}

TEST(ThreeDropOuts, CountAlsoWhenTheDriveStoppedAnsweringBefore)
{
    StandardError log;
    Daemon& d = deep_daemon(log);
    SimulatedController* drive = d.simulated.find("nvme0");
    for (int i = 0; i < 3; ++i)
        d.then([&, drive] {
             drive->faults["identify"] = refusal_of(RefusalKind::timed_out);
             d.reconciler->mark_dirty("nvme0");
         })
            .settle()
            .then([&, drive] {
                drive->faults.clear();
                d.reconciler->connected("nvme0"); // the kernel has reset it
            })
            .settle();
    d.then([&, drive] { EXPECT_EQ(drive->tolerance, us(25000)); });
    d.run();
}

// --- the end -------------------------------------------------------------------------------------------------------------

TEST(AfterStop, NothingIsStarted)
{
    StandardError log;
    Daemon& d = Daemon::start(log);
    d.simulated.add(evo_plus());
    d.begin()
        .then([&] {
            static_cast<void>(d.host.writes());
            static_cast<void>(d.host.looks("nvme0"));
            d.reconciler->configure(policy_with("performance"));
            d.reconciler->stop();
            d.reconciler->mark_dirty("nvme0");
            d.reconciler->connected("nvme0");
            d.reconciler->written("nvme0");
            d.reconciler->configure(policy_with("power-saver"));
        })
        .settle()
        .then([&] {
            EXPECT_EQ(d.host.writes(), Writes{});
            EXPECT_EQ(d.host.looks("nvme0"), 0);
        });
    d.run();
}

TEST(AfterStop, ARunningJobWritesNothing)
{
    StandardError log;
    Daemon& d = Daemon::start(log, {}, 4);
    auto gate = std::make_shared<Gate>();
    auto passed = std::make_shared<std::atomic<bool>>(false);
    d.simulated.add(evo_plus());
    d.host.before([gate, passed](const std::string&, const std::string& call) -> Answer {
        if (call == "get-feature") {
            gate->pass();
            passed->store(true);
        }
        return {};
    });
    d.then([&] {
         d.reconciler->look_at_power();
         d.reconciler->enumerate();
     })
        .until([gate] { return gate->reached() == 1; })
        .then([&, gate] {
            d.reconciler->stop();
            gate->open();
        })
        .until([passed] { return passed->load(); })
        .idle()
        .then([&] {
            EXPECT_EQ(d.host.writes(), Writes{});
            EXPECT_EQ(d.simulated.find("nvme0")->tolerance, us(100000));
        });
    d.run();
}

TEST(AfterStop, AJobThatWasAboutToWriteDoesNotUndoTheRestore)
{
    StandardError log;
    Daemon& d = Daemon::start(log, {}, 4);
    auto gate = std::make_shared<Gate>();
    auto restored = std::make_shared<std::atomic<bool>>(false);
    auto written = std::make_shared<std::atomic<bool>>(false);
    d.simulated.add(evo_plus());
    auto first = std::make_shared<std::atomic<bool>>(true);
    d.host.before([gate, first](const std::string&, const std::string& call) -> Answer {
        if (call == "write-tolerance" && first->exchange(false))
            gate->pass(); // waits for its turn behind another drive, or for the processor
        return {};
    });
    d.then([&] {
         d.reconciler->look_at_power();
         d.reconciler->enumerate();
     })
        .until([gate] { return gate->reached() == 1; })
        .then([&, restored] {
            d.reconciler->stop();
            d.pool.submit([&d, restored] { // as Service::stop() does
                static_cast<void>(restore(d.host, d.ledger));
                restored->store(true);
            });
        })
        .until([restored] { return restored->load(); })
        .then([gate] { gate->open(); })
        .idle()
        .then([&] {
            EXPECT_EQ(d.simulated.find("nvme0")->tolerance, us(100000)) << "restored, and then written to once more";
            EXPECT_EQ(d.ledger.snapshot().entries.size(), 0U);
        });
    d.run();
}

} // namespace
} // namespace nvmepolicy

// SPDX-License-Identifier: LGPL-2.1-or-later
// Every combination of the inputs, and for each the one sentence that must hold: write through only if … . The rules are told
// again here, as the reference has them, and share nothing with the code under test.
#include <functional>

#include "cache_case.h"

namespace nvmepolicy {
namespace {

using Feature = Result<std::optional<WriteCacheFeature>>;

Feature feature(bool now, std::optional<bool> by_default, std::optional<bool> saved = {}, bool saveable = false,
                bool of_namespace = false)
{
    return std::optional{WriteCacheFeature{now, by_default, saved, saveable, of_namespace, true}};
}

// Every value of the drive: VWC, ONCS, what feature 06h says, and whether anybody answers.
enum class Wce { off, on, unread };
enum class AfterReset { off, on, unknown };
struct Drive {
    bool live, identified, vwc, select;
    Wce now;
    AfterReset after;
    bool saveable, of_namespace;

    void make(CacheCase& c) const
    {
        if (!live)
            c.controller.state = ControllerState::resetting;
        c.identify(vwc ? 7 : 6, select ? 0x10 : 0x0f);
        const auto after_value = after == AfterReset::unknown ? std::optional<bool>{} : after == AfterReset::on;
        // Where it is saveable the default is the opposite, so that a mix-up shows.
        const auto opposite = after == AfterReset::unknown ? std::optional(false) : std::optional(after != AfterReset::on);
        if (now == Wce::unread)
            c.controller.write_cache = Refusal{"06h", "", "no answer"};
        else
            c.controller.write_cache = saveable ? feature(now == Wce::on, opposite, after_value, true, of_namespace)
                                                : feature(now == Wce::on, after_value, {}, false, of_namespace);
        if (!identified)
            c.controller.identify = Refusal{"identify", "", "no answer"};
    }
    [[nodiscard]] bool known() const { return live && identified && vwc && now != Wce::unread && !of_namespace; }
    [[nodiscard]] bool known_off() const { return known() && now == Wce::off; }
    [[nodiscard]] bool stays_off() const { return select && after == AfterReset::off; }
    [[nodiscard]] bool known_without_cache() const { return live && identified && !vwc; }
};

std::vector<Drive> all_drives()
{
    std::vector<Drive> drives;
    for (int bits = 0; bits < 64; ++bits)
        for (const Wce now : {Wce::off, Wce::on, Wce::unread})
            for (const AfterReset after : {AfterReset::off, AfterReset::on, AfterReset::unknown})
                drives.push_back({(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, now, after,
                                  (bits & 16) != 0, (bits & 32) != 0});
    return drives;
}

struct Queue {
    const char* mode; ///< null: unread
    std::optional<bool> fua;
    void make(CacheCase& c) const
    {
        if (mode)
            c.mode(mode, fua);
        else
            c.leaf().cache_mode = Refusal{"write_cache", "", "no answer"};
        c.leaf().fua = fua;
    }
};

std::vector<Queue> all_queues()
{
    std::vector<Queue> queues;
    for (const char* mode : {write_back, write_through, "none", static_cast<const char*>(nullptr)})
        for (const std::optional<bool> fua : {std::optional(true), std::optional(false), std::optional<bool>{}})
            queues.push_back({mode, fua});
    return queues;
}

// What is around the drive. `ok`: nothing that would have to be excused; `excusable`: by allow_stacked, shared.
enum class Bad { no, unless_allowed, always };
struct Surrounding {
    const char* name;
    Bad bad;
    std::function<void(CacheCase&)> make;
};

const std::vector<Surrounding> all_stacks{
    {"nothing", Bad::no, [](CacheCase&) {}},
    {"dm on a kernel that samples", Bad::unless_allowed,
     [](CacheCase& c) {
         c.layer({"dm-0", write_back, "", ""});
     }},
    {"dm on a kernel that does not", Bad::no,
     [](CacheCase& c) {
         c.machine.dm_samples_cache_mode = false;
         c.layer({"dm-0", write_back, "", ""});
     }},
    {"a deaf dm", Bad::unless_allowed,
     [](CacheCase& c) {
         c.machine.dm_samples_cache_mode = false;
         c.layer({"dm-0", write_through, "", ""});
     }},
    {"raid1", Bad::no,
     [](CacheCase& c) {
         c.layer({"md0", write_back, "raid1", "bitmap"});
     }},
    {"raid5 with a journal", Bad::unless_allowed,
     [](CacheCase& c) {
         c.layer({"md0", write_back, "raid5", "journal"});
     }},
    {"raid5 with a bitmap", Bad::no,
     [](CacheCase& c) {
         c.layer({"md0", write_back, "raid5", "bitmap"});
     }},
    {"bcache", Bad::unless_allowed,
     [](CacheCase& c) {
         c.layer({"bcache0", write_back, "", ""});
     }},
    {"a holder without a layer", Bad::unless_allowed, [](CacheCase& c) { c.leaf().holders = {"md0"}; }},
    {"an export", Bad::unless_allowed, [](CacheCase& c) { c.leaf().exports = {"iblock_0/x"}; }},
};

// `unless_allowed` here: allowed by shared = true, but not where a reset brings the own cache back.
const std::vector<Surrounding> all_sharings{
    {"alone", Bad::no, [](CacheCase& c) { c.shared_with({}); }},
    {"with one that is off", Bad::unless_allowed,
     [](CacheCase& c) {
         c.shared_with({2});
         c.peers = {{2, feature(false, false)}};
     }},
    {"with one that is on", Bad::always,
     [](CacheCase& c) {
         c.shared_with({2});
         c.peers = {{2, feature(true, false)}};
     }},
    {"with one that a reset switches on", Bad::always,
     [](CacheCase& c) {
         c.shared_with({2});
         c.peers = {{2, feature(false, false, true, true)}};
     }},
    {"with one that did not answer", Bad::always,
     [](CacheCase& c) {
         c.shared_with({2});
         c.peers = {{2, Refusal{}}};
     }},
    {"with one that is off and one that is not reached", Bad::always,
     [](CacheCase& c) {
         c.shared_with({2, 3});
         c.peers = {{2, feature(false, false)}};
     }},
    {"nobody knows with whom", Bad::always, [](CacheCase& c) { c.leaf().shared_with = Refusal{}; }},
};

const std::vector<Surrounding> all_warnings{
    {"none", Bad::no, [](CacheCase& c) { c.controller.critical_warning = std::uint8_t{0}; }},
    {"spare is low", Bad::no, [](CacheCase& c) { c.controller.critical_warning = std::uint8_t{0x01}; }},
    {"backup failed", Bad::always, [](CacheCase& c) { c.controller.critical_warning = std::uint8_t{0x10}; }},
    {"unread", Bad::always, [](CacheCase& c) { c.controller.critical_warning = Refusal{}; }},
};

// `unless_allowed` here: allowed by watch = "poll".
const std::vector<Surrounding> all_detections{
    {"none", Bad::always,
     [](CacheCase& c) {
         c.detection = {CacheDetection::Method::none, "no tracefs"};
     }},
    {"tracepoint", Bad::no,
     [](CacheCase& c) {
         c.detection = {CacheDetection::Method::tracepoint, {}};
     }},
    {"poll", Bad::unless_allowed,
     [](CacheCase& c) {
         c.detection = {CacheDetection::Method::poll, {}};
     }},
};

/// Counts what was reached, so that a test that never sees write through does not pass for one that proves something.
struct Seen {
    long all = 0, through = 0, back = 0, is_unsafe = 0;
};

void check(const CacheCase& c, const Drive& drive, const Queue& queue, const Surrounding& stack, const Surrounding& sharing,
           const Surrounding& warning, const Surrounding& detection, Seen& seen)
{
    const WriteCachePolicy& p = c.policy;
    const CacheDecision decision = c.decide();
    const LeafDecision& d = decision.leaves.at(0);
    const auto changes = plan_cache(c.question(), decision);
    const bool reads_through = queue.mode == write_through;
    const bool reads_back = queue.mode == write_back;
    const bool by_user = reads_through && queue.fua != false;

    const bool reset_is_fine = drive.stays_off() || p.trust_current.value;
    const bool stack_is_fine = stack.bad == Bad::no || p.allow_stacked.value;
    const bool sharing_is_fine =
        sharing.bad == Bad::no || (sharing.bad == Bad::unless_allowed && p.shared.value && drive.stays_off());
    const bool watched =
        detection.bad == Bad::no || (detection.bad == Bad::unless_allowed && p.watch.value == CacheWatch::poll);
    const bool may_be_through = drive.known_off() && queue.fua == true && (reads_back || reads_through) && reset_is_fine
                                && stack_is_fine && sharing_is_fine && warning.bad == Bad::no && watched;

    // Write through only if …, and where all of that holds it is.
    ASSERT_EQ(d.wants_write_through(), may_be_through) << show(d.rule) << ": " << d.reason;
    ASSERT_EQ(d.rule == CacheRule::trusted, may_be_through && !drive.stays_off());
    const bool is_ours = !drive.known_without_cache() && !(drive.known_off() && reads_through && queue.fua == false);
    ASSERT_EQ(d.wants_write_back(), is_ours && !may_be_through) << show(d.rule);
    ASSERT_EQ(d.unsafe, by_user && !drive.known_off() && !drive.known_without_cache());
    ASSERT_FALSE(d.reason.empty());
    ASSERT_FALSE(decision.reason.empty());

    ASSERT_LE(changes.size(), 1U);
    const bool managed = p.mode.value == CacheMode::reconcile;
    const bool to_back = managed && by_user && is_ours && !may_be_through;
    const bool to_through = managed && reads_back && may_be_through;
    ASSERT_EQ(changes.size(), to_back || to_through ? 1U : 0U);
    if (!changes.empty()) {
        ASSERT_EQ(changes[0].to, to_through ? write_through : write_back);
        ASSERT_EQ(changes[0].from, to_through ? write_back : write_through);
        ASSERT_EQ(changes[0].leaf, "nvme0n1");
    }
    // Never left unsafe where we manage.
    if (managed && d.unsafe) {
        ASSERT_TRUE(to_back);
    }
    ++seen.all;
    seen.through += to_through ? 1 : 0;
    seen.back += to_back ? 1 : 0;
    seen.is_unsafe += d.unsafe ? 1 : 0;
}

TEST(WriteThrough, IsChosenOnlyIfEverythingSpeaksForIt)
{
    Seen seen;
    for (const Drive& drive : all_drives())
        for (const Queue& queue : all_queues()) {
            // Everything around a drive that says nothing of itself is tried, too, but not everything at once.
            const bool all_policies = drive.known_off() && queue.fua == true && queue.mode;
            for (const Surrounding& stack : all_stacks)
                for (const Surrounding& sharing : all_sharings)
                    for (const Surrounding& warning : all_warnings)
                        for (const Surrounding& detection : all_detections) {
                            const int bad = (stack.bad != Bad::no) + (sharing.bad != Bad::no) + (warning.bad != Bad::no)
                                            + (detection.bad != Bad::no);
                            if (!all_policies && bad > 1)
                                continue;
                            CacheCase c;
                            drive.make(c);
                            queue.make(c);
                            for (const Surrounding* one : {&stack, &sharing, &warning, &detection})
                                one->make(c);
                            for (int bits = 0; bits < 32; ++bits) {
                                if (!all_policies && bits != 0 && bits != 30)
                                    continue;
                                c.policy.mode.value = (bits & 1) != 0 ? CacheMode::observe : CacheMode::reconcile;
                                c.policy.trust_current.value = (bits & 2) != 0;
                                c.policy.allow_stacked.value = (bits & 4) != 0;
                                c.policy.shared.value = (bits & 8) != 0;
                                c.policy.watch.value = (bits & 16) != 0 ? CacheWatch::poll : CacheWatch::automatic;
                                check(c, drive, queue, stack, sharing, warning, detection, seen);
                                if (testing::Test::HasFatalFailure()) {
                                    ADD_FAILURE() << stack.name << ", " << sharing.name << ", " << warning.name << ", "
                                                  << detection.name << ", policy " << bits;
                                    return;
                                }
                            }
                        }
        }
    EXPECT_GT(seen.all, 1'000'000);
    EXPECT_GT(seen.through, 100);
    EXPECT_GT(seen.back, 1'000);
    EXPECT_GT(seen.is_unsafe, 1'000);
}

} // namespace
} // namespace nvmepolicy

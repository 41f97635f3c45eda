// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cache_lane.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace nvmepolicy {
namespace {

using std::chrono::milliseconds;

/// For a record to come out of the trace, on a busy machine.
constexpr milliseconds longest_wait_for_the_trace{2'000};
/// No Set Features is under way longer than that: the driver has reset the controller. Source: nvme_core.admin_timeout.
constexpr milliseconds longest_command{65'000};
/// Whoever switches the cache on and off all the time gets write back.
constexpr milliseconds first_pause{1'000};
constexpr milliseconds longest_pause{300'000};
constexpr milliseconds peace{600'000};

/// The N of nvmeN.
std::uint32_t number_of(const std::string& controller)
{
    std::uint32_t number = UINT32_MAX;
    const std::string_view digits = std::string_view(controller).substr(std::min<std::size_t>(controller.size(), 4));
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
}

} // namespace

CacheDetection CacheLane::expected(const WriteCachePolicy& policy) const
{
    const std::lock_guard lock(mutex_);
    if (!blind_because_)
        return {CacheDetection::Method::tracepoint, {}};
    if (policy.watch.value == CacheWatch::poll)
        return {CacheDetection::Method::poll, {}};
    return {CacheDetection::Method::none, *blind_because_};
}

CacheDetection CacheLane::watch(const WriteCachePolicy& policy)
{
    if (expected(policy).method == CacheDetection::Method::tracepoint) {
        const auto armed = in_.arm();
        const std::lock_guard lock(mutex_);
        if (!armed)
            blind_because_ = armed.error().text();
    }
    return expected(policy);
}

std::uint64_t CacheLane::doubts(const std::string& controller) const
{
    const std::lock_guard lock(mutex_);
    const auto found = doubts_.find(controller);
    return doubts_about_all_ + (found == doubts_.end() ? 0 : found->second.count);
}

std::shared_ptr<CacheGuard> CacheLane::guard_of(const Sighting& s)
{
    const std::lock_guard lock(mutex_);
    Held& held = held_[s.controller.object];
    if (!held.guard) {
        held.name = s.controller.name;
        held.guard = in_.host.open_guard(*s.directory, s.controller.name);
    }
    return held.guard;
}

Result<void> CacheLane::confirm_disabled(const Sighting& s, const CacheDetection& detection)
{
    const std::string where = s.controller.name + ": Get Features 06h";
    const std::uint32_t number = number_of(s.controller.name);
    std::unique_lock lock(mutex_);
    const std::uint64_t before = seen_[number];
    lock.unlock();
    const auto enabled = read_write_cache_enabled(s);
    if (!enabled)
        return enabled.error();
    if (*enabled)
        return Refusal{where, "1", "the cache has been enabled meanwhile", RefusalKind::try_later};
    if (detection.method != CacheDetection::Method::tracepoint)
        return {};
    lock.lock();
    if (in_.waiting.wait_until(lock, in_.waiting.now() + longest_wait_for_the_trace, [&] { return seen_[number] > before; }))
        return {};
    blind_because_ = "the kernel's trace does not show the service's own Get Features";
    return Refusal{where, "", *blind_because_, RefusalKind::failed};
}

Result<void> CacheLane::switch_over(const Sighting& s, CacheGuard& guard, const std::vector<CacheModeChange>& changes,
                                    const CacheDetection& detection, std::uint64_t doubts)
{
    // The way back is walked first, and what was acknowledged under write back is flushed.
    for (const CacheModeChange& change : changes)
        if (const auto ready = guard.hold(change.leaf); !ready)
            return ready;
    if (const auto off = confirm_disabled(s, detection); !off)
        return off;
    const Refusal doubted{s.controller.name + ": write cache", "",
                          "not written through: feature 06h may have changed meanwhile", RefusalKind::try_later};
    // A doubt that comes after this line reaches the guard, which then does not write or takes it back.
    const std::uint64_t guards_doubts = guard.doubts();
    if (this->doubts(s.controller.name) != doubts)
        return doubted;
    for (const CacheModeChange& change : changes)
        if (const auto written = guard.write_through(change.leaf, guards_doubts); !written)
            return written;
    if (const auto off = confirm_disabled(s, detection); !off)
        return off;
    for (const CacheModeChange& change : changes) {
        const std::string attribute = change.leaf + "/queue/write_cache";
        const auto raw = s.device->read_attribute(attribute);
        if (!raw)
            return raw.error();
        if (*raw != std::string(write_through) + "\n")
            return Refusal{s.controller.name + ": " + attribute, *raw, "was written write through and reads otherwise",
                           RefusalKind::try_later};
    }
    return this->doubts(s.controller.name) == doubts ? Result<void>{} : Result<void>(doubted);
}

Result<void> CacheLane::write_through(const Sighting& s, const std::vector<CacheModeChange>& changes,
                                      const CacheDetection& detection, std::uint64_t doubts)
{
    if (detection.method == CacheDetection::Method::none)
        return Refusal{s.controller.name + ": write cache", "", detection.why_not, RefusalKind::unsupported};
    const auto guard = guard_of(s);
    auto switched = switch_over(s, *guard, changes, detection, doubts);
    if (switched) {
        const std::lock_guard lock(mutex_);
        for (const CacheModeChange& change : changes)
            held_[s.controller.object].through.insert(change.leaf);
        return switched;
    }
    for (const CacheModeChange& change : changes)
        if (const auto back = guard->write_back(change.leaf); !back) {
            const std::lock_guard lock(mutex_);
            held_[s.controller.object].unsettled.insert(change.leaf);
            return Refusal{back.error().where, back.error().value,
                           back.error().reason + "; before that: " + switched.error().text(), back.error().kind};
        }
    return switched;
}

Result<void> CacheLane::write_back(const Controller& controller, const std::string& leaf)
{
    std::unique_lock lock(mutex_);
    const auto found = held_.find(controller.object);
    if (found == held_.end())
        return {};
    const auto guard = found->second.guard;
    lock.unlock();
    auto back = guard->write_back(leaf);
    lock.lock();
    if (back)
        if (const auto still = held_.find(controller.object); still != held_.end()) {
            still->second.through.erase(leaf);
            still->second.unsettled.erase(leaf);
        }
    return back;
}

std::vector<std::string> CacheLane::unsettled(const Controller& controller) const
{
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(controller.object);
    return found == held_.end() ? std::vector<std::string>{}
                                : std::vector<std::string>(found->second.unsettled.begin(), found->second.unsettled.end());
}

void CacheLane::dismiss_if_idle(const Controller& controller)
{
    std::shared_ptr<CacheGuard> idle; // It is dropped outside of the lock.
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(controller.object);
    if (found == held_.end() || !found->second.through.empty() || !found->second.unsettled.empty())
        return;
    idle = std::move(found->second.guard);
    held_.erase(found);
}

bool CacheLane::holds(const Controller& controller, const std::string& leaf) const
{
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(controller.object);
    return found != held_.end() && found->second.through.contains(leaf);
}

bool CacheLane::holds_any(const Controller& controller) const
{
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(controller.object);
    return found != held_.end() && !found->second.through.empty();
}

std::optional<Milliseconds> CacheLane::pause(const std::string& controller) const
{
    const std::lock_guard lock(mutex_);
    const Time now = in_.waiting.now();
    Time until = nobody_before_;
    if (const auto found = doubts_.find(controller); found != doubts_.end()) {
        const Doubts& d = found->second;
        until = std::max({until, d.not_before, d.under_way.empty() ? Time{} : d.last + longest_command});
    }
    return until <= now ? std::nullopt : std::optional(std::chrono::ceil<Milliseconds>(until - now));
}

void CacheLane::release_all()
{
    std::map<std::uint64_t, Held> all;
    {
        const std::lock_guard lock(mutex_);
        all.swap(held_);
    }
    for (auto& [object, held] : all)
        held.guard->doubt(); // All of them at once; each is waited for when it is dropped.
}

void CacheLane::doubt_locked(const std::string& controller)
{
    Doubts& d = doubts_[controller];
    const Time now = in_.waiting.now();
    if (now - d.last > peace)
        d.lately = 0;
    ++d.count;
    d.last = now;
    d.not_before = now + std::min(first_pause * (1LL << std::min(d.lately++, 10)), longest_pause);
    for (auto& [object, held] : held_)
        if (held.name == controller) {
            held.guard->doubt();
            held.unsettled.merge(held.through);
            held.through.clear();
        }
}

void CacheLane::doubt(const std::string& controller)
{
    const std::lock_guard lock(mutex_);
    doubt_locked(controller);
}

std::set<std::string> CacheLane::doubt_all_locked()
{
    ++doubts_about_all_;
    std::set<std::string> names;
    for (const auto& [object, held] : held_)
        names.insert(held.name);
    for (const std::string& name : names)
        doubt_locked(name);
    return names;
}

std::set<std::string> CacheLane::doubt_all()
{
    const std::lock_guard lock(mutex_);
    return doubt_all_locked();
}

std::set<std::string> CacheLane::heard(const std::vector<TraceRecord>& records)
{
    std::set<std::string> concerned;
    const std::lock_guard lock(mutex_);
    for (const TraceRecord& r : records) {
        const std::string name = fmt::format("nvme{}", r.controller);
        switch (r.kind) {
        case TraceRecord::Kind::set_write_cache:
            doubt_locked(name);
            doubts_[name].under_way.insert(r.command);
            concerned.insert(name);
            break;
        case TraceRecord::Kind::get_write_cache:
            ++seen_[r.controller];
            in_.waiting.wake();
            break;
        case TraceRecord::Kind::completed:
            if (const auto found = doubts_.find(name); found != doubts_.end() && found->second.under_way.erase(r.command) != 0)
                concerned.insert(name);
            break;
        case TraceRecord::Kind::other: break;
        case TraceRecord::Kind::lost:
        case TraceRecord::Kind::unknown:
            concerned.merge(doubt_all_locked());
            nobody_before_ = in_.waiting.now() + longest_command;
            break;
        }
    }
    return concerned;
}

void CacheLane::left(const std::string& controller)
{
    const std::lock_guard lock(mutex_);
    std::erase_if(held_, [&](auto& entry) {
        if (entry.second.name != controller)
            return false;
        in_.dispose(std::move(entry.second.guard));
        return true;
    });
    doubts_[controller].under_way.clear();
    ++doubts_[controller].count;
}

} // namespace nvmepolicy

// SPDX-License-Identifier: LGPL-2.1-or-later
// Write through only where a flush has nothing to do, and where somebody notices as soon as it has. Each rule is one `if` in
// judge(), under its number; what is not known counts as what is worse.
#include "nvmepolicy/decide_cache.h"

#include <algorithm>
#include <fmt/format.h>

namespace nvmepolicy {
namespace {

struct Judgement {
    CacheRule rule;
    std::string reason;
};

/// Why something must stay write back; none: nothing speaks against it.
using Objection = std::optional<std::string>;

/// What the drive itself says of its cache.
struct Reading {
    std::optional<bool> present;              ///< VWC bit 0
    std::optional<WriteCacheFeature> feature; ///< only where it was read, and counts for every namespace
    std::optional<Judgement> unknown;         ///< there may be a cache, and this is why nothing more is known of it
};

Reading read_of(const Controller& c)
{
    // S3: what was true before a reset is not true any more.
    if (c.state != ControllerState::live)
        return {{}, {}, Judgement{CacheRule::not_live, fmt::format("the controller is {}, not live", show(c.state))}};
    const auto unread = [](std::optional<bool> present, std::string why) {
        return Reading{present, {}, Judgement{CacheRule::unread, std::move(why)}};
    };
    if (!c.identify)
        return unread({}, c.identify.error().text());
    if (!c.identify->has_write_cache())
        return {false, {}, {}};
    if (!c.write_cache)
        return unread(true, c.write_cache.error().text());
    if (!c.write_cache->has_value())
        return unread(true, "the drive was not asked for feature 06h");
    Reading reading{true, **c.write_cache, {}};
    if (reading.feature->namespace_specific)
        return unread(true, "each namespace has a feature 06h of its own, so the controller's says little");
    if (!c.identify->selects_features()) {
        reading.feature->saveable = false;
        reading.feature->saved.reset();
        reading.feature->by_default.reset();
    }
    return reading;
}

/// "the default WCE is 1": what a reset brings, or why that is unknown.
std::string after_reset_clause(const Controller& c, const WriteCacheFeature& f)
{
    if (!c.identify->selects_features())
        return fmt::format("what a reset brings is unknown, since the drive tells no default and saved values (ONCS {:#06x})",
                           c.identify->oncs);
    const char* const which = f.saveable ? "saved" : "default";
    return f.after_reset() ? fmt::format("the {} WCE, which a reset brings, is {}", which, *f.after_reset() ? 1 : 0)
                           : fmt::format("the {} WCE, which a reset brings, could not be read", which);
}

std::string joined(const std::vector<std::string>& names)
{
    return fmt::format("{}", fmt::join(names, ", "));
}

/// S10: the kernel's own write through has no FUA; one that was written has. Source: queue_wc_store(), blk_validate_limits().
bool found_by_kernel(const Leaf& leaf)
{
    return leaf.cache_mode && *leaf.cache_mode == write_through && leaf.fua == false;
}

/// What must be known of the queue before it may be switched, so that every later look can tell who has written it.
Objection against_leaf(const Leaf& leaf)
{
    if (leaf.name.empty())
        return "the disk has no name";
    if (!leaf.cache_mode)
        return leaf.cache_mode.error().text();
    if (*leaf.cache_mode != write_back && *leaf.cache_mode != write_through)
        return fmt::format("its cache mode reads \"{}\", which is neither of the two that are known", *leaf.cache_mode);
    if (!leaf.fua)
        return "its queue/fua could not be read, which tells who has written the cache mode";
    if (!*leaf.fua && *leaf.cache_mode == write_back)
        return "it has no FUA, so later nobody could tell who has written the cache mode";
    return {};
}

Objection against_warning(const Result<std::uint8_t>& warning)
{
    if (!warning)
        return "no critical warning could be read: " + warning.error().text();
    if ((*warning & warning_backup_failed) != 0)
        return fmt::format("SMART critical warning {:#04x}: the backup of the drive's volatile memory has failed", *warning);
    return {};
}

/// Another controller through which a flush may go, or whose cache a write may go into.
Objection against_peer(const CacheQuestion& q, std::uint16_t cntlid)
{
    bool found = false;
    for (const CachePeer& peer : q.peers) {
        if (peer.cntlid != cntlid)
            continue;
        found = true;
        if (!peer.write_cache)
            return fmt::format("feature 06h of controller {} could not be read: {}", cntlid, peer.write_cache.error().text());
        if (!peer.write_cache->has_value())
            return fmt::format("feature 06h of controller {} was not asked", cntlid);
        const WriteCacheFeature& f = **peer.write_cache;
        if (f.namespace_specific)
            return fmt::format("controller {} has a feature 06h for each namespace", cntlid);
        if (f.enabled)
            return fmt::format("the cache of controller {} is enabled (WCE 1)", cntlid);
        if (f.after_reset() != false)
            return fmt::format("a reset brings back the cache of controller {}, or might", cntlid);
    }
    return found ? Objection{} : fmt::format("controller {} is not reached from here", cntlid);
}

/// `trust_current` does not help here: who resets another controller is not seen.
Objection against_sharing(const CacheQuestion& q, const Leaf& leaf, const WriteCacheFeature& own)
{
    if (!leaf.shared_with)
        return "which controllers have this namespace could not be read: " + leaf.shared_with.error().text();
    if (leaf.shared_with->empty())
        return {};
    const std::string others =
        fmt::format("controller{} {} of the subsystem ha{} this namespace too", leaf.shared_with->size() == 1 ? "" : "s",
                    fmt::join(*leaf.shared_with, ", "), leaf.shared_with->size() == 1 ? "s" : "ve");
    if (!q.policy.shared.value)
        return others + ", and write_cache.shared is false";
    if (own.after_reset() != false)
        return others + ", and " + after_reset_clause(q.controller, own);
    for (const std::uint16_t cntlid : *leaf.shared_with)
        if (const Objection objection = against_peer(q, cntlid))
            return others + ", and " + *objection;
    return {};
}

/// The levels that pass every flush on, whatever the mode below was once. raid456 looks once, at the device of its journal
/// or of its partial parity log. Source: r5l_init_log(), ppl_init_child_log().
bool md_passes_flushes_on(const Layer& layer)
{
    constexpr const char* always[] = {"raid0", "raid1", "raid10", "linear"};
    constexpr const char* with_parity[] = {"raid4", "raid5", "raid6"};
    return std::ranges::find(always, layer.raid_level) != std::end(always)
           || (std::ranges::find(with_parity, layer.raid_level) != std::end(with_parity)
               && (layer.consistency_policy == "resync" || layer.consistency_policy == "bitmap"));
}

Objection against_layer(const Layer& layer, const Machine& machine)
{
    if (layer.cache_mode == write_through)
        return fmt::format("{} reads write through and does not look again", layer.name);
    if (layer.cache_mode != write_back)
        return fmt::format("the cache mode of {} could not be read", layer.name);
    if (layer.name.starts_with("dm-"))
        return machine.dm_samples_cache_mode
                   ? fmt::format("{} takes over the cache mode when its table is loaded and does not look again", layer.name)
                   : Objection{};
    if (layer.name.starts_with("md") && !layer.raid_level.empty())
        return md_passes_flushes_on(layer)
                   ? Objection{}
                   : fmt::format("{} ({}, consistency policy {}) is not known to pass on every flush", layer.name,
                                 layer.raid_level, layer.consistency_policy.empty() ? "unread" : layer.consistency_policy);
    return fmt::format("{} is not of a kind that is known to pass on every flush", layer.name);
}

Objection against_stack(const Leaf& leaf, const Machine& machine)
{
    for (const std::string& holder : leaf.holders)
        if (std::ranges::find(leaf.layers, holder, &Layer::name) == leaf.layers.end())
            return fmt::format("nothing could be read of {}, which is on it", holder);
    for (const Layer& layer : leaf.layers)
        if (const Objection objection = against_layer(layer, machine))
            return objection;
    if (!leaf.exports.empty())
        return fmt::format("it is handed out to others by {}, which look at the cache mode only once", joined(leaf.exports));
    return {};
}

Objection against_detection(const CacheDetection& detection, const WriteCachePolicy& policy)
{
    switch (detection.method) {
    case CacheDetection::Method::tracepoint: return {};
    case CacheDetection::Method::poll:
        return policy.watch.value == CacheWatch::poll ? Objection{} : "polling is all there is, and watch is not \"poll\"";
    case CacheDetection::Method::none: break;
    }
    return detection.why_not.empty() ? "nobody watches feature 06h" : detection.why_not;
}

Judgement judge(const CacheQuestion& q, const Leaf& leaf, const Reading& drive)
{
    // S3, and the second row of the truth table: nothing is known.
    if (drive.unknown)
        return *drive.unknown;
    // First row of the truth table.
    if (!drive.feature)
        return {CacheRule::no_cache,
                fmt::format("the drive has no volatile write cache (VWC {:#04x})", q.controller.identify->vwc)};
    const WriteCacheFeature& feature = *drive.feature;
    // S10
    if (!feature.enabled && found_by_kernel(leaf))
        return {CacheRule::by_kernel, "handled by the kernel, which has found the cache disabled (WCE 0)"};
    // Second row: nothing is known of the queue.
    if (const Objection objection = against_leaf(leaf))
        return {CacheRule::unread, *objection};
    // Third row.
    if (feature.enabled)
        return {CacheRule::enabled, "the cache is enabled (WCE 1), so what was not flushed is lost with the power"};
    // Fourth row.
    if (feature.after_reset() != false && !q.policy.trust_current.value)
        return {CacheRule::lost_by_reset, "the cache is disabled (WCE 0), but " + after_reset_clause(q.controller, feature)};
    // S7
    if (const Objection objection = against_warning(q.controller.critical_warning))
        return {CacheRule::backup_failed, *objection};
    // S11
    if (const Objection objection = against_sharing(q, leaf, feature))
        return {CacheRule::shared, *objection};
    // S9
    if (const Objection objection = against_stack(leaf, q.machine); objection && !q.policy.allow_stacked.value)
        return {CacheRule::stacked, *objection};
    // S5
    if (const Objection objection = against_detection(q.detection, q.policy))
        return {CacheRule::unwatched, "nobody would notice when the cache is enabled again: " + *objection};
    // Fourth row, its exception.
    if (feature.after_reset() != false)
        return {CacheRule::trusted, "the cache is disabled (WCE 0); " + after_reset_clause(q.controller, feature)
                                        + ", a risk that trust_current = true takes"};
    // Fifth row.
    return {CacheRule::disabled, "the cache is disabled (WCE 0), and " + after_reset_clause(q.controller, feature)};
}

/// Flushes that matter do not reach the drive: the queue was made write through, and its cache is on or might be.
bool is_unsafe(const Leaf& leaf, const Reading& drive)
{
    const bool known_off = drive.present == false || (drive.feature && !drive.feature->enabled);
    return leaf.written_through() && !known_off;
}

std::vector<std::string> deaf_layers(const Leaf& leaf, const Reading& drive)
{
    std::vector<std::string> names;
    if (drive.present == true)
        for (const Layer& layer : leaf.layers)
            if (layer.cache_mode == write_through)
                names.push_back(layer.name);
    return names;
}

std::string reason_of(const Controller& c, const Reading& drive)
{
    if (drive.unknown)
        return drive.unknown->reason;
    if (!drive.feature)
        return fmt::format("the drive has no volatile write cache (VWC {:#04x})", c.identify->vwc);
    if (drive.feature->enabled)
        return "the cache is enabled (WCE 1)";
    return fmt::format("the cache is disabled (WCE 0), {} {}", drive.feature->after_reset() == false ? "and" : "but",
                       after_reset_clause(c, *drive.feature));
}

} // namespace

std::string show(CacheRule rule)
{
    switch (rule) {
    case CacheRule::no_cache: return "no cache";
    case CacheRule::by_kernel: return "handled by the kernel";
    case CacheRule::not_live: return "not live";
    case CacheRule::unread: return "unread";
    case CacheRule::enabled: return "enabled";
    case CacheRule::lost_by_reset: return "lost by reset";
    case CacheRule::backup_failed: return "backup failed";
    case CacheRule::shared: return "shared";
    case CacheRule::stacked: return "stacked";
    case CacheRule::unwatched: return "unwatched";
    case CacheRule::disabled: return "disabled";
    case CacheRule::trusted: return "trusted";
    }
    return "unread";
}

std::string show(CacheDetection::Method method)
{
    switch (method) {
    case CacheDetection::Method::tracepoint: return "tracepoint";
    case CacheDetection::Method::poll: return "poll";
    case CacheDetection::Method::none: break;
    }
    return "none";
}

bool CacheDecision::unsafe() const
{
    return std::ranges::any_of(leaves, [](const LeafDecision& leaf) {
        // S9: over an enabled cache a deaf layer is as bad as the leaf itself.
        const bool might_be_on = leaf.rule == CacheRule::enabled || leaf.rule == CacheRule::unread;
        return leaf.unsafe || (might_be_on && !leaf.deaf_layers.empty());
    });
}

CacheDecision decide_cache(const CacheQuestion& q)
{
    const Reading drive = read_of(q.controller);
    CacheDecision decision;
    decision.mode = q.policy.mode.value;
    decision.detection = q.detection;
    decision.reason = reason_of(q.controller, drive);
    for (const Leaf& leaf : q.controller.leaves) {
        Judgement judgement = judge(q, leaf, drive);
        decision.leaves.push_back(
            {leaf.name, judgement.rule, std::move(judgement.reason), is_unsafe(leaf, drive), deaf_layers(leaf, drive)});
    }
    return decision;
}

std::vector<CacheModeChange> plan_cache(const CacheQuestion& q, const CacheDecision& decision)
{
    std::vector<CacheModeChange> changes;
    // S6: what is merely observed is left as it is.
    if (decision.mode == CacheMode::observe)
        return changes;
    for (const Leaf& leaf : q.controller.leaves) {
        const auto found = std::ranges::find(decision.leaves, leaf.name, &LeafDecision::leaf);
        if (found == decision.leaves.end())
            continue;
        const bool back = found->wants_write_back() && leaf.written_through();
        const bool through =
            found->wants_write_through() && leaf.cache_mode && *leaf.cache_mode == write_back && leaf.fua == true;
        if (back || through)
            changes.push_back({q.controller.id, q.controller.name, leaf.name, *leaf.cache_mode,
                               back ? write_back : write_through, back ? "write cache, " + show(found->rule) : "write cache",
                               found->reason, q.controller.object});
    }
    return changes;
}

} // namespace nvmepolicy

// SPDX-License-Identifier: LGPL-2.1-or-later
// The guard of one controller's leaves: makes them write through when told to, and puts them back when told, when doubted, or
// when nobody is there any more to tell it. See src/host/cache_guard.h, and device_protocol.h for what is said.
//
// It is one thread and one loop; the loop does what is most urgent and comes round again:
//     wait -> doubts (S5) -> leaves that must go back (S1) -> one request
// A leaf only ever walks
//
//          hold                     write_through                a doubt, give-back, the end
//     (none) -> flushed (write back) ---------------> through ------------------------------.
//                  ^                                                                        v
//                  '---------- flushed <------ returning_flush <------------------ returning
//
// and what it owes survives whoever asked for it. The guard ends once nobody asks and nothing is owed.
//
// A write of the mode and a Flush are waited for as long as the kernel likes: whatever hangs here is this controller's, and a
// doubt that comes meanwhile could do nothing either.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "leaf.h"
#include "requests.h"

namespace nvmepolicy {

class Guard {
public:
    /// Until nobody asks and nothing is owed.
    void run();

private:
    enum class Standing {
        none,            ///< This place is free.
        flushed,         ///< Write back, and flushed since it was last write through by us. Nothing is owed.
        through,         ///< Write through, or may be: an attempt that failed may have been made all the same.
        returning,       ///< As `through`, and must go back.
        returning_flush, ///< Write back again; a Flush is owed for what was acknowledged meanwhile.
    };
    struct Leaf {
        Standing standing = Standing::none;
        std::array<char, leaf_name_size> name{};
        int mode_fd = -1;
        FlushRoute route;
        [[nodiscard]] bool owes() const { return standing == Standing::returning || standing == Standing::returning_flush; }
    };
    enum class Controller {
        live,
        not_live, ///< A write of the mode would wait for it, and with it this process.
        gone,     ///< Or is being taken away: there is nothing left to write to.
    };
    using Answer = device_protocol::AnswerLine;

    void hear_doubts();
    void read_requests();
    void serve_next_request();
    Answer serve_words(const char* request);
    Answer hold(const char* name);
    Answer write_through(const char* name, std::uint64_t doubts);
    Answer give_back(const char* name);

    void call_back(Leaf& leaf);
    void call_all_back();
    /// S1. One attempt at everything that is owed.
    void settle();
    Answer settle_mode(Leaf& leaf);
    Answer settle_flush(Leaf& leaf);
    void wait();

    [[nodiscard]] static Controller controller();
    [[nodiscard]] Leaf* find(const char* name);
    void forget(Leaf& leaf);
    void forget_all();
    [[nodiscard]] bool owes_any() const;
    [[nodiscard]] bool has_line() const;

    // All of it is there from the start: nothing is allocated once something is held.
    static constexpr std::size_t most_leaves = 64; ///< more are refused, and stay write back
    static constexpr int first_retry_ms = 100;
    static constexpr int longest_retry_ms = 6'400;
    std::array<Leaf, most_leaves> leaves_{};
    std::uint64_t doubts_ = 0; ///< that we were told of
    int retry_ms_ = first_retry_ms;
    bool over_ = false; ///< nobody asks any more
    std::array<char, 128> input_{};
    std::size_t input_used_ = 0;
};

/// Prepares the process, then guards. `doubts_fd` is open.
int guard();

} // namespace nvmepolicy

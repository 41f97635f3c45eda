// SPDX-License-Identifier: LGPL-2.1-or-later
// A function that can be left in the middle and gone on with later, on a stack of its own.
#pragma once

#include <boost/context/fiber.hpp>
#include <functional>

namespace nvmepolicy::simulation {

class Fiber {
public:
    explicit Fiber(std::function<void()> work);
    /// One that has not ended is unwound: its destructors run, and nothing else of it does.
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;
    Fiber(Fiber&&) = delete;
    Fiber& operator=(Fiber&&) = delete;

    /// Runs it until it pauses or ends.
    void resume();
    [[nodiscard]] bool ended() const { return ended_; }

    /// From inside: back to whoever resumed it.
    void pause();

private:
    struct Stack {
        void* bottom = nullptr;
        std::size_t size = 0;
    };
    void arrive(const Stack& from);

    std::function<void()> work_;
    boost::context::fiber inside_;  ///< where it goes on
    boost::context::fiber outside_; ///< whoever has resumed it
    Stack own_stack_;
    Stack outside_stack_;
    void* fake_stack_ = nullptr; ///< the address sanitizer's
    bool ended_ = false;
};

} // namespace nvmepolicy::simulation

// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fiber.h"

#include <sys/mman.h>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace nvmepolicy::simulation {
namespace {

// The sanitizer has to be told of each change of stacks.
#ifdef __SANITIZE_ADDRESS__
void leave_stack(void** fake, const void* to, std::size_t size)
{
    __sanitizer_start_switch_fiber(fake, to, size);
}
void enter_stack(void* fake, const void** from, std::size_t* size)
{
    __sanitizer_finish_switch_fiber(fake, from, size);
}
#else
void leave_stack(void** /*fake*/, const void* /*to*/, std::size_t /*size*/) {}
void enter_stack(void* /*fake*/, const void** /*from*/, std::size_t* /*size*/) {}
#endif

/// Stacks are used again and again: mapping one costs more than what most fibers do.
class Stacks {
public:
    static constexpr std::size_t size = std::size_t{256} * 1024;

    boost::context::stack_context allocate()
    {
        if (free_.empty()) {
            void* memory =
                ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
            if (memory == MAP_FAILED)
                throw std::bad_alloc();
            ::mprotect(memory, 4096, PROT_NONE); // an overflow must not be silent
            free_.push_back(memory);
        }
        boost::context::stack_context stack;
        stack.size = size;
        stack.sp = static_cast<char*>(free_.back()) + size;
        free_.pop_back();
        return stack;
    }
    void deallocate(boost::context::stack_context& stack) { free_.push_back(static_cast<char*>(stack.sp) - stack.size); }

private:
    std::vector<void*> free_;
};

Stacks& stacks()
{
    thread_local Stacks all;
    return all;
}

struct StackAllocator {
    boost::context::stack_context stack;
    boost::context::stack_context allocate() const { return stack; }
    static void deallocate(boost::context::stack_context& stack) { stacks().deallocate(stack); }
};

} // namespace

Fiber::Fiber(std::function<void()> work) : work_(std::move(work))
{
    const boost::context::stack_context stack = stacks().allocate();
    own_stack_ = {static_cast<char*>(stack.sp) - stack.size, stack.size};
    inside_ = boost::context::fiber(std::allocator_arg, StackAllocator{stack}, [this](boost::context::fiber&& outside) {
        outside_ = std::move(outside);
        void* none = nullptr;
        enter_stack(none, const_cast<const void**>(&outside_stack_.bottom), &outside_stack_.size);
        work_();
        ended_ = true;
        leave_stack(nullptr, outside_stack_.bottom, outside_stack_.size);
        return std::move(outside_);
    });
}

Fiber::~Fiber()
{
    if (ended_)
        return;
    void* fake = nullptr;
    leave_stack(&fake, own_stack_.bottom, own_stack_.size);
    inside_ = {}; // Unwinds it, by an exception thrown inside.
    enter_stack(fake, nullptr, nullptr);
}

void Fiber::resume()
{
    void* fake = nullptr;
    leave_stack(&fake, own_stack_.bottom, own_stack_.size);
    inside_ = std::move(inside_).resume();
    enter_stack(fake, nullptr, nullptr);
}

void Fiber::pause()
{
    leave_stack(&fake_stack_, outside_stack_.bottom, outside_stack_.size);
    outside_ = std::move(outside_).resume();
    enter_stack(fake_stack_, const_cast<const void**>(&outside_stack_.bottom), &outside_stack_.size);
}

} // namespace nvmepolicy::simulation

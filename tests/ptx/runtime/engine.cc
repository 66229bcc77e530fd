#include "tests/ptx/runtime/engine.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/ptx/runtime/errors.h"
#include "tests/ptx/runtime/kernel.h"

namespace tutti::cudart {
namespace {

constexpr auto kLong = std::chrono::seconds(30);        // Waits of this duration are reported.
constexpr auto kPause = std::chrono::microseconds(50);  // Between two looks at words that tasks wait for.

}  // namespace

Engine& engine() {
  static auto& instance = *new Engine;
  return instance;
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

TaskPtr Engine::add(int device, std::unique_ptr<Work> work, std::span<const TaskPtr> before, const TaskPtr& ahead) {
  begin();
  auto task = std::make_shared<Task>();
  task->device = device;
  task->work = std::move(work);
  choose_chain(*task, before);
  task->order.before = host_;
  for (const TaskPtr& each : before) {
    if (each == nullptr) continue;
    if (each->done) {
      task->order.before = ptx::join(task->order.before, each->order.before);
      continue;
    }
    each->next.push_back(task);
    ++task->missing;
  }
  if (ahead != nullptr && !ahead->left_queue) {
    ahead->behind.push_back(task);
    ++task->missing;
  }
  if (task->missing == 0) ready(task);
  return task;
}

// Continues the chain of a predecessor if it is the last of its chain. Otherwise begins a chain, or continues one whose
// last task the host knows to have ended.
void Engine::choose_chain(Task& task, std::span<const TaskPtr> before) {
  std::uint32_t chain = 0;
  const auto last = std::find_if(before.begin(), before.end(), [this](const TaskPtr& each) {
    return each != nullptr && chains_[each->order.chain] == each->order.number;
  });
  if (last != before.end()) {
    chain = (*last)->order.chain;
  } else {
    while (chain < chains_.size() && !ptx::contains(host_, chain, chains_[chain])) ++chain;
  }
  if (chain == chains_.size()) chains_.push_back(0);
  task.order = {nullptr, chain, ++chains_[chain]};
}

void Engine::observe(const Task& task) {
  if (ptx::contains(host_, task.order.before)) return;
  host_ = ptx::join(host_, task.order.before);
  machine().observe(host_);
}

void Engine::await(Lock& lock, const std::string& what, const std::function<bool()>& claim) {
  if (changed_.wait_for(lock, kLong, claim)) return;
  report("%s has waited for 30 s; running kernels: %s", what.c_str(), running_kernels().c_str());
  changed_.wait(lock, claim);
}

void Engine::await(Lock& lock, const std::string& what, const TaskPtr& task) {
  if (task == nullptr) return;
  await(lock, what, [&task] { return task->done; });
  observe(*task);
}

bool Engine::runs_kernel(int device) const {
  return std::any_of(running_.begin(), running_.end(), [device](const TaskPtr& task) {
    return task->device == device && task->work != nullptr && task->work->is_kernel();
  });
}

void Engine::fail(int device) {
  failed_.resize(std::max(failed_.size(), static_cast<std::size_t>(device) + 1));
  failed_[static_cast<std::size_t>(device)] = true;
}

std::string Engine::running_kernels() const {
  std::string text;
  for (const TaskPtr& task : running_) {
    if (task->work == nullptr) continue;
    text += (text.empty() ? "" : ", ") + task->work->name() + " on device " + std::to_string(task->device);
  }
  return text.empty() ? "none" : text;
}

void Engine::begin() {
  if (begun_) return;
  begun_ = true;
  std::thread([this] { run(); }).detach();
}

void Engine::ready(const TaskPtr& task) {
  if (task->work != nullptr) task->work->order = task->order;
  running_.push_back(task);
  if (task->work == nullptr || !task->work->holds_queue()) leave_queue(*task);
  looks_again_ = true;
  added_.notify_one();
}

void Engine::leave_queue(Task& task) {
  task.left_queue = true;
  satisfy(task.behind);
}

void Engine::look_again() {
  const std::lock_guard lock(mutex_);
  looks_again_ = true;
  added_.notify_one();
}

bool Engine::polls() const {
  return std::any_of(running_.begin(), running_.end(),
                     [](const TaskPtr& task) { return task->work != nullptr && task->work->polls(); });
}

void Engine::satisfy(std::vector<TaskPtr>& tasks) {
  std::vector<TaskPtr> taken;
  taken.swap(tasks);
  for (const TaskPtr& task : taken) {
    if (--task->missing == 0) ready(task);
  }
}

void Engine::finish(const TaskPtr& task) {
  task->done = true;
  task->done_ns = now_ns();
  const bool polled = task->work != nullptr && task->work->polls();
  if (polled) task->order.before = ptx::join(task->order.before, host_);  // The host may have stored the word.
  task->order.before = ptx::clock_after(task->order);
  for (const TaskPtr& next : task->next) next->order.before = ptx::join(next->order.before, task->order.before);
  task->work.reset();
  if (task->finished) task->finished();
  task->finished = nullptr;
  if (!task->left_queue) leave_queue(*task);
  satisfy(task->next);
}

bool Engine::pass(Lock& lock) {
  const std::vector<TaskPtr> tasks = running_;
  std::vector<TaskPtr> ended;
  const std::vector<bool> failed = failed_;
  lock.unlock();
  for (const TaskPtr& task : tasks) {
    const auto device = static_cast<std::size_t>(task->device);
    const bool abandoned = device < failed.size() && failed[device];
    if (abandoned && task->work != nullptr) task->work->abandon();
    if (abandoned || task->work == nullptr || task->work->advance()) ended.push_back(task);
  }
  lock.lock();
  for (const TaskPtr& task : ended) {
    running_.erase(std::find(running_.begin(), running_.end(), task));
    finish(task);
  }
  if (!ended.empty()) changed_.notify_all();
  return !ended.empty();
}

void Engine::run() {
  Lock lock(mutex_);
  while (true) {
    looks_again_ = false;
    if (pass(lock)) continue;
    if (polls()) {
      added_.wait_for(lock, kPause, [this] { return looks_again_; });
    } else {
      added_.wait(lock, [this] { return looks_again_; });
    }
  }
}

}  // namespace tutti::cudart

// One object of type T for each thread, created by the first get() of the thread and destroyed when the thread ends.
// thread_local does the same, but ends the process if the C library lacks memory to register the destructor.
#pragma once

#include <pthread.h>

#include <new>

namespace tutti {

// For objects with static storage duration. The main thread's T lives until the process ends.
template <typename T>
class PerThread {
 public:
  PerThread() : has_key_(::pthread_key_create(&key_, [](void* object) { delete static_cast<T*>(object); }) == 0) {}
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  // The object of the calling thread; null if it does not exist and there is no memory for it.
  T* get() {
    if (!has_key_) return nullptr;
    auto* object = static_cast<T*>(::pthread_getspecific(key_));
    if (object != nullptr) return object;
    object = new (std::nothrow) T();
    if (object == nullptr || ::pthread_setspecific(key_, object) == 0) return object;
    delete object;
    return nullptr;
  }

 private:
  pthread_key_t key_ = 0;
  bool has_key_;
};

}  // namespace tutti

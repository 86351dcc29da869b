/* A small thread pool for the parts of kernels.

   The caller works too, so a pool of n threads starts n - 1 workers. Parts are claimed one by one
   from a counter that holds the job's generation above the next part: a worker that comes late
   cannot claim a part of another job. The caller returns when all parts have finished.

   A job is refused, and run by the caller alone, while another one runs (two Python threads), and
   in a process that was forked from the one that started the workers.

   Where there are processors enough, workers keep off the caller's: a worker that wakes there waits
   for the caller, which waits for nobody. Schedulers put it there when other threads, as those of a
   library that wait by spinning, hold the other processors. */

#if defined(__linux__)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#else
#define _POSIX_C_SOURCE 200809L
#endif

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sched.h>
#include <unistd.h>

#define MAX_WORKERS 255
#define PART_BITS 40
#define PART_MASK (((uint64_t)1 << PART_BITS) - 1)
#define SPINS 4000

typedef void (*part_body)(void *context, int64_t part);

static pthread_mutex_t job_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t sleep_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;

static _Atomic uint64_t ticket; /* generation << PART_BITS | next part */
static _Atomic int64_t job_count;
static _Atomic(part_body) job_body;
static _Atomic(void *) job_context;
static _Atomic int64_t finished;
static _Atomic int sleeping;
static _Atomic int workers; /* that were started */
static _Atomic int wanted;  /* of them, that take part */
static _Atomic long owner;
#if defined(__linux__)
static pthread_t threads_started[MAX_WORKERS]; /* these two belong to who holds job_lock */
static int kept_off = -1; /* the processor that workers keep off */
#endif

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Have the workers keep off the processor that this thread, the caller, runs on. */
static void keep_off_caller(void)
{
#if defined(__linux__)
    const int here = sched_getcpu(), count = atomic_load(&workers);
    cpu_set_t others;
    if (here < 0 || here == kept_off)
        return;
    kept_off = here;
    if (here >= CPU_SETSIZE || sched_getaffinity(0, sizeof others, &others) != 0)
        return;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others) < count)
        return;
    for (int k = 0; k < count; k++)
        pthread_setaffinity_np(threads_started[k], sizeof others, &others);
#endif
}

/* Run parts of the job of `generation` until none is left to claim. */
static void work(uint64_t generation)
{
    for (;;) {
        uint64_t seen = atomic_load_explicit(&ticket, memory_order_acquire);
        if (seen >> PART_BITS != generation)
            return;
        int64_t part = (int64_t)(seen & PART_MASK);
        int64_t count = atomic_load_explicit(&job_count, memory_order_relaxed);
        part_body body = atomic_load_explicit(&job_body, memory_order_relaxed);
        void *context = atomic_load_explicit(&job_context, memory_order_relaxed);
        if (part >= count)
            return;
        /* If this succeeds the generation has not changed, so what was read belongs to it. */
        if (!atomic_compare_exchange_weak(&ticket, &seen, seen + 1))
            continue;
        body(context, part);
        atomic_fetch_add_explicit(&finished, 1, memory_order_release);
    }
}

static void *worker(void *number)
{
    uint64_t done = 0;
    for (;;) {
        uint64_t generation = atomic_load(&ticket) >> PART_BITS;
        for (int spin = 0; generation == done && spin < SPINS; spin++) {
            pause_briefly();
            generation = atomic_load_explicit(&ticket, memory_order_acquire) >> PART_BITS;
        }
        if (generation == done) {
            pthread_mutex_lock(&sleep_lock);
            atomic_fetch_add(&sleeping, 1);
            while ((generation = atomic_load(&ticket) >> PART_BITS) == done)
                pthread_cond_wait(&wake, &sleep_lock);
            atomic_fetch_sub(&sleeping, 1);
            pthread_mutex_unlock(&sleep_lock);
        }
        if ((intptr_t)number < atomic_load_explicit(&wanted, memory_order_relaxed))
            work(generation);
        done = generation;
    }
    return 0;
}

/* Have jobs run on `threads` threads with the caller, starting those that are missing; how many
   there are. */
int uopc_pool_start(int threads)
{
    pthread_attr_t attributes;
    atomic_store(&wanted, threads - 1);
    if (pthread_mutex_trylock(&job_lock) != 0)
        return atomic_load(&workers) + 1; /* a job runs: what is there will do */
    if (atomic_load(&owner) != (long)getpid()) {
        atomic_store(&owner, (long)getpid());
        atomic_store(&workers, 0);
        atomic_store(&sleeping, 0);
    }
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, (size_t)8 << 20); /* packed panels stand on it */
    /* Signals are the host's: its own thread handles them, when it has told it will. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (atomic_load(&workers) < threads - 1 && atomic_load(&workers) < MAX_WORKERS) {
        pthread_t thread;
        void *number = (void *)(intptr_t)atomic_load(&workers);
        if (pthread_create(&thread, &attributes, worker, number) != 0)
            break;
#if defined(__linux__)
        threads_started[atomic_load(&workers)] = thread;
        kept_off = -1;
#endif
        atomic_fetch_add(&workers, 1);
    }
    pthread_sigmask(SIG_SETMASK, &before, 0);
    pthread_attr_destroy(&attributes);
    int total = atomic_load(&workers) + 1;
    pthread_mutex_unlock(&job_lock);
    return total;
}

static void run_alone(int64_t count, part_body body, void *context)
{
    for (int64_t part = 0; part < count; part++)
        body(context, part);
}

/* Run body(context, part) for each part below count; returns when all have finished. */
void uopc_pool_run(int64_t count, part_body body, void *context)
{
    if (count < 2 || (uint64_t)count > PART_MASK || atomic_load(&workers) == 0 ||
        atomic_load(&owner) != (long)getpid() || pthread_mutex_trylock(&job_lock) != 0) {
        run_alone(count, body, context);
        return;
    }
    keep_off_caller();
    uint64_t generation = (atomic_load(&ticket) >> PART_BITS) + 1;
    /* No part of the last job is left, so nobody claims while the fields change. */
    atomic_store_explicit(&finished, 0, memory_order_relaxed);
    atomic_store_explicit(&job_count, count, memory_order_relaxed);
    atomic_store_explicit(&job_body, body, memory_order_relaxed);
    atomic_store_explicit(&job_context, context, memory_order_relaxed);
    atomic_store(&ticket, generation << PART_BITS);
    if (atomic_load(&sleeping) > 0) {
        pthread_mutex_lock(&sleep_lock);
        pthread_cond_broadcast(&wake);
        pthread_mutex_unlock(&sleep_lock);
    }
    work(generation);
    for (int spin = 0; atomic_load_explicit(&finished, memory_order_acquire) < count; spin++) {
        if (spin < SPINS)
            pause_briefly();
        else
            sched_yield();
    }
    pthread_mutex_unlock(&job_lock);
}
